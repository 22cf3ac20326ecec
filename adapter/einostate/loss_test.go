package einostate_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cloudwego/eino/adk"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"

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
		err := branched(t.Context(), st, want, func(ctx context.Context, name string) error {
			after := map[string]time.Duration{"billing": 3 * time.Millisecond}[name] // the first is slower
			a := agent(name, noter(name), einostate.Tools(noteTool(after)), einostate.Middleware(name, nil))
			_, err := drain(adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Query(ctx, "go"))
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return notes.GetOr(st, nil)
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
		return notes.GetOr(st, nil)
	}
	if lost := adaptertest.Rounds(rounds, want, ours); lost > 0 {
		t.Errorf("with einostate: %d of %d rounds differ", lost, rounds)
	}
}
