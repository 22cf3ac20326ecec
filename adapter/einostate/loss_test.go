package einostate_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/eino/adk"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/tool"
)

const rounds = 100

var (
	notes  = &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	noting = state.MustSchema(notes, state.Team{"billing": {"search"}})
)

type noteInput struct {
	Text string `json:"text"`
}

// TestParallelAgents: of eino v0.9.13, agents that run in parallel share the
// session values. What one reads and writes, the other overwrites.
func TestParallelAgents(t *testing.T) {
	want := []string{"billing", "search"}
	einoTool, err := utils.InferTool("note", "Write a note.", func(ctx context.Context, in noteInput) (string, error) {
		value, _ := adk.GetSessionValue(ctx, "notes")
		list, _ := value.([]string)
		time.Sleep(time.Millisecond) // a request to somewhere
		adk.AddSessionValue(ctx, "notes", append(slices.Clone(list), in.Text))
		return "noted", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	own := func() []string {
		var got []string
		team, err := adk.NewParallelAgent(t.Context(), &adk.ParallelAgentConfig{Name: "team", SubAgents: []adk.Agent{
			agent("billing", noter("billing"), []einotool.BaseTool{einoTool}),
			agent("search", noter("search"), []einotool.BaseTool{einoTool}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		// A sequence, whose second agent reads what the first has left.
		last := &reader{func(ctx context.Context) {
			value, _ := adk.GetSessionValue(ctx, "notes")
			got, _ = value.([]string)
		}}
		all, err := adk.NewSequentialAgent(t.Context(), &adk.SequentialAgentConfig{Name: "all", SubAgents: []adk.Agent{team, last}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := drain(adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: all}).Query(t.Context(), "go")); err != nil {
			t.Error(err)
		}
		return got
	}
	if lost := adaptertest.Rounds(rounds, want, own); lost == 0 {
		t.Error("eino has lost no note: say so in the README")
	} else {
		t.Logf("eino's session values: %d of %d rounds differ", lost, rounds)
	}

	ours := func() []string {
		st := state.New(noting)
		team, err := einostate.Parallel(t.Context(), &adk.ParallelAgentConfig{Name: "team", SubAgents: []adk.Agent{
			agent("billing", noter("billing"), einostate.Tools(noteTool(3*time.Millisecond)), einostate.Middleware("billing", nil)),
			agent("search", noter("search"), einostate.Tools(noteTool(0)), einostate.Middleware("search", nil)),
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := state.NewContext(t.Context(), st)
		if _, err := drain(adk.NewRunner(ctx, adk.RunnerConfig{Agent: team}).Query(ctx, "go")); err != nil {
			t.Error(err)
		}
		return notes.Or(st, nil)
	}
	if lost := adaptertest.Rounds(rounds, want, ours); lost > 0 {
		t.Errorf("with einostate: %d of %d rounds differ", lost, rounds)
	}
}

// noter is a model that notes a text.
func noter(text string) scripted {
	return script(calls(call("c_"+text, "note", `{"text":"`+text+`"}`)), said("done"))
}

// noteTool appends to the notes after a time.
func noteTool(after time.Duration) *tool.Tool {
	return tool.Must(tool.New("note", "Write a note.", func(_ context.Context, in noteInput) ([]string, error) {
		time.Sleep(after)
		return []string{in.Text}, nil
	}, tool.To(notes, "")))
}

// reader is an agent that calls a function.
type reader struct{ read func(context.Context) }

func (r *reader) Name(context.Context) string        { return "reader" }
func (r *reader) Description(context.Context) string { return "reads" }
func (r *reader) Run(ctx context.Context, _ *adk.AgentInput, _ ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	out, events := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	r.read(ctx)
	events.Close()
	return out
}

// TestParallelCalls: the calls of one message, of which the first is slower.
func TestParallelCalls(t *testing.T) {
	var list []string
	var lock = make(chan struct{}, 1)
	einoTool, err := utils.InferTool("note", "Write a note.", func(_ context.Context, in noteInput) (string, error) {
		if in.Text == "first" {
			time.Sleep(time.Millisecond)
		}
		lock <- struct{}{}
		list = append(list, in.Text)
		<-lock
		return "noted", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	model := script(calls(call("c1", "note", `{"text":"first"}`), call("c2", "note", `{"text":"second"}`)), said("done"))
	want := []string{"first", "second"}
	own := func() []string {
		list = nil
		a := agent("billing", model, []einotool.BaseTool{einoTool})
		if _, err := drain(adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: a}).Query(t.Context(), "go")); err != nil {
			t.Error(err)
		}
		return list
	}
	if lost := adaptertest.Rounds(rounds, want, own); lost == 0 {
		t.Error("eino v0.9.13 has kept the order of the calls")
	}

	slow := tool.Must(tool.New("note", "Write a note.", func(_ context.Context, in noteInput) ([]string, error) {
		if in.Text == "first" {
			time.Sleep(time.Millisecond)
		}
		return []string{in.Text}, nil
	}, tool.To(notes, "")))
	ours := func() []string {
		st := state.New(noting)
		ctx := state.NewContext(t.Context(), st)
		a := agent("billing", model, einostate.Tools(slow), einostate.Middleware("billing", nil))
		if _, err := drain(adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Query(ctx, "go")); err != nil {
			t.Error(err)
		}
		return notes.Or(st, nil)
	}
	if lost := adaptertest.Rounds(rounds, want, ours); lost > 0 {
		t.Errorf("with einostate: %d of %d rounds differ", lost, rounds)
	}
}

// fan is a graph whose two nodes run at the same time.
func fan(t *testing.T, billing, search, join *compose.Lambda, opts ...compose.NewGraphOption) compose.Runnable[string, map[string]any] {
	t.Helper()
	g := compose.NewGraph[string, map[string]any](opts...)
	for _, err := range []error{
		g.AddLambdaNode("billing", billing, compose.WithOutputKey("billing")),
		g.AddLambdaNode("search", search, compose.WithOutputKey("search")),
		g.AddLambdaNode("join", join),
		g.AddEdge(compose.START, "billing"), g.AddEdge(compose.START, "search"),
		g.AddEdge("billing", "join"), g.AddEdge("search", "join"), g.AddEdge("join", compose.END),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := g.Compile(t.Context(), compose.WithNodeTriggerMode(compose.AllPredecessor))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type localState struct{ notes []string }

// TestGraph: of eino v0.9.13, two nodes that write one key cannot be joined, and
// what they write to the local state of the graph is in the order of time.
func TestGraph(t *testing.T) {
	node := func(text string, after time.Duration) *compose.Lambda {
		return compose.InvokableLambda(func(ctx context.Context, in string) (string, error) {
			time.Sleep(after)
			err := compose.ProcessState(ctx, func(_ context.Context, s *localState) error {
				s.notes = append(s.notes, text)
				return nil
			})
			return text, err
		})
	}
	var got []string
	end := compose.InvokableLambda(func(ctx context.Context, in map[string]any) (map[string]any, error) {
		err := compose.ProcessState(ctx, func(_ context.Context, s *localState) error {
			got = s.notes
			return nil
		})
		return in, err
	})
	want := []string{"billing", "search"}
	local := compose.WithGenLocalState(func(context.Context) *localState { return &localState{} })
	own := fan(t, node("billing", time.Millisecond), node("search", 0), end, local)
	lost := adaptertest.Rounds(rounds, want, func() []string {
		if _, err := own.Invoke(t.Context(), "go"); err != nil {
			t.Error(err)
		}
		return got
	})
	if lost == 0 {
		t.Error("eino has kept the order of the nodes")
	}

	ours := func(name string, after time.Duration) *compose.Lambda {
		return einostate.Node(name, func(_ context.Context, st *state.State, in string) (string, error) {
			time.Sleep(after)
			return name, notes.Set(st, []string{st.Agent()})
		})
	}
	graph := fan(t, ours("billing", time.Millisecond), ours("search", 0), einostate.Join[map[string]any]())
	lost = adaptertest.Rounds(rounds, want, func() []string {
		st := state.New(noting)
		ctx := einostate.Branches(state.NewContext(t.Context(), st), "billing", "search")
		if out, err := graph.Invoke(ctx, "go"); err != nil || out["billing"] != "billing" {
			t.Error(out, err)
		}
		return notes.Or(st, nil)
	})
	if lost > 0 {
		t.Errorf("with einostate: %d of %d rounds differ", lost, rounds)
	}
}

// TestGraphOneKey documents what eino v0.9.13 says of two nodes with one key.
func TestGraphOneKey(t *testing.T) {
	g := compose.NewGraph[string, map[string]any]()
	same := compose.InvokableLambda(func(_ context.Context, in string) (map[string]any, error) {
		return map[string]any{"note": in}, nil
	})
	_ = g.AddLambdaNode("billing", same)
	_ = g.AddLambdaNode("search", same)
	for _, node := range []string{"billing", "search"} {
		_ = g.AddEdge(compose.START, node)
		_ = g.AddEdge(node, compose.END)
	}
	r, err := g.Compile(t.Context(), compose.WithNodeTriggerMode(compose.AllPredecessor))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Invoke(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), "duplicated key") {
		t.Error(err)
	}
}
