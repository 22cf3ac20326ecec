package einostate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

func runOn(t *testing.T, st *state.State, a adk.Agent) ([]string, error) {
	t.Helper()
	ctx := state.NewContext(t.Context(), st)
	return drain(adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Query(ctx, "go"))
}

// TestRights: the model is not offered what its agent may not use, and reads an
// error if it calls it all the same.
func TestRights(t *testing.T) {
	card := &state.Field[string]{Name: "card", Owner: "billing", Secret: true}
	st := state.New(state.MustSchema(card, notes, state.Team{"billing": {"search"}}))
	must(card.Set(st, "4242-4242"))
	pay := tool.Must(tool.New("pay", "Pay.", func(_ context.Context, in struct {
		Card string `json:"card"`
	}) (string, error) {
		return "paid with " + in.Card, nil
	}, tool.From(card, "card")))
	for agentName, want := range map[string]struct{ offered, result string }{
		"billing": {"note pay", "paid with [SECRET]"},
		"search":  {"note", `denied to agent "search"`},
	} {
		var offered []string
		play := scripted(func(_ context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error) {
			offered = nil
			for _, info := range model.GetCommonOptions(nil, opts...).Tools {
				offered = append(offered, info.Name)
				if s, err := info.ToJSONSchema(); err != nil || strings.Contains(jsonOf(t, s), "card") {
					t.Error("the model sees the injected parameter:", jsonOf(t, s), err)
				}
			}
			if !strings.Contains(jsonOf(t, msgs), "state of "+agentName) || strings.Contains(jsonOf(t, msgs), "4242") {
				t.Error("prompt", jsonOf(t, msgs))
			}
			for _, m := range msgs {
				if m.Role == schema.Tool {
					return said("read: " + m.Content), nil
				}
			}
			return calls(call("c1", "pay", `{}`)), nil
		})
		texts, err := runOn(t, st, agent(agentName, play, einostate.Tools(pay, noteTool(0)), einostate.Middleware(agentName, &einostate.Options{
			Context: func(_ context.Context, st *state.State) string {
				return "state of " + st.Agent() + "\n" + st.Describe()
			},
		})))
		slices.Sort(offered)
		if got := strings.Join(offered, " "); err != nil || got != want.offered {
			t.Errorf("%s is offered %q, %v", agentName, got, err)
		}
		if last := texts[len(texts)-1]; !strings.Contains(last, want.result) {
			t.Errorf("%s reads %q", agentName, last)
		}
	}
}

// TestForeignTools: the results of other tools are in the history, too, and they
// find the handle of their agent. A sub-agent has rights of its own.
func TestForeignTools(t *testing.T) {
	st := state.New(noting)
	var found []string
	who := func(name string) einotool.BaseTool {
		own, err := utils.InferTool(name, "Who?", func(ctx context.Context, _ struct{}) (string, error) {
			st, ok := state.FromContext(ctx)
			if !ok {
				return "", errors.New("no state")
			}
			found = append(found, st.Agent())
			return st.Agent(), nil
		})
		must(err)
		return own
	}
	inner := agent("search", script(calls(call("i1", "who", `{}`)), said("it is search")), []einotool.BaseTool{who("who")}, einostate.Middleware("search", nil))
	outer := agent("billing", script(
		calls(call("c1", "who", `{}`), call("c2", "note", `{"text":"a"}`)),
		calls(call("c3", "search", `{"request":"who are you?"}`)),
		said("done"),
	), append(einostate.Tools(noteTool(0)), who("who"), adk.NewAgentTool(t.Context(), inner)), einostate.Middleware("billing", nil))
	must(state.Messages.Set(st, []state.Message{state.UserText("go")}))
	if _, err := runOn(t, st, outer); err != nil {
		t.Fatal(err)
	}
	if want := []string{"billing", "search"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	var results []string
	for _, r := range st.History().All() {
		if r.Agent != "billing" {
			continue
		}
		for _, m := range r.ToolCalls {
			results = append(results, m.Call().ID+": "+m.Text())
		}
	}
	if want := []string{"c1: billing", `c2: ["a"]`, "c3: it is search"}; !slices.Equal(results, want) {
		t.Errorf("results %q, want %q", results, want)
	}
	if findings := transcript.Check(state.Messages.GetOr(st, nil), transcript.Anthropic); len(findings) > 0 {
		t.Errorf("conversation %v: %v", state.Messages.GetOr(st, nil), findings)
	}
}

// TestPlain: an agent without tools, on a state without access control.
func TestPlain(t *testing.T) {
	st := state.New(nil)
	if _, err := runOn(t, st, agent("any", script(said("hello")), nil, einostate.Middleware("any", nil))); err != nil {
		t.Fatal(err)
	}
	if last, ok := st.History().Last(); !ok || last.Agent != "any" {
		t.Error(last)
	}
	a := agent("any", script(said("hello")), nil, einostate.Middleware("any", nil))
	if _, err := drain(adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: a}).Query(t.Context(), "go")); !errors.Is(err, state.ErrInvalid) {
		t.Error("without a state:", err)
	}
}

// TestUserMessages: what the user says, outside of a workspace, is recorded once,
// by the first agent, and not what one agent says to another.
func TestUserMessages(t *testing.T) {
	text := func(name string) adk.Agent {
		return agent(name, scripted(func(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
			return said(name + " said"), nil
		}), nil, einostate.Middleware(name, nil))
	}
	seq, err := adk.NewSequentialAgent(t.Context(), &adk.SequentialAgentConfig{Name: "desk", SubAgents: []adk.Agent{text("billing"), text("search")}})
	must(err)
	inner := agent("search", script(said("it is search")), nil, einostate.Middleware("search", nil))
	outer := agent("billing", script(calls(call("c1", "search", `{"request":"who?"}`)), said("done")),
		[]einotool.BaseTool{adk.NewAgentTool(t.Context(), inner)}, einostate.Middleware("billing", nil))
	for i, a := range []adk.Agent{seq, text("billing"), outer} {
		st := state.New(noting)
		for n := 1; n <= 2 && (n == 1 || a != outer); n++ {
			if _, err := runOn(t, st, a); err != nil {
				t.Fatal(err)
			}
			var users []string
			for _, m := range state.Messages.GetOr(st, nil) {
				if m, ok := m.(state.TextMessage); ok && m.Role() == "user" {
					users = append(users, m.Text())
				}
			}
			if !slices.Equal(users, slices.Repeat([]string{"go"}, n)) {
				t.Errorf("team %d, run %d: recorded %q", i, n, users)
			}
		}
	}
}

// TestToolAlone: a tool in a graph without an agent works on the state of the
// context.
func TestToolAlone(t *testing.T) {
	st := state.New(noting)
	own := einostate.Tools(noteTool(0), suspended)
	note, wait := own[0].(einotool.InvokableTool), own[1].(einotool.InvokableTool)
	ctx := state.NewContext(t.Context(), st)
	if out, err := note.InvokableRun(ctx, `{"text":"a"}`); err != nil || out != `["a"]` || len(notes.GetOr(st, nil)) != 1 {
		t.Error(out, err)
	}
	if err := st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(
		state.ToolCall{ID: "1", Name: "note", Input: `{"text":"b"}`}, state.ToolCall{ID: "2", Name: "note", Input: `{"text":"c"}`},
	)}}); err != nil {
		t.Fatal(err)
	}
	node, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: own})
	if err != nil {
		t.Fatal(err)
	}
	second := schema.ToolCall{ID: "2", Function: schema.FunctionCall{Name: "note", Arguments: `{"text":"c"}`}}
	if _, err := node.Invoke(ctx, schema.AssistantMessage("", []schema.ToolCall{second})); err != nil || len(notes.GetOr(st, nil)) != 2 {
		t.Error(err, notes.GetOr(st, nil), "it waits for no other call of the message")
	}
	if out, err := note.InvokableRun(ctx, `{"txt":1}`); err != nil || !strings.Contains(out, "bad arguments") {
		t.Error(out, err)
	}
	if _, err := wait.InvokableRun(ctx, `{"text":"a"}`); err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Error(err)
	}
	if _, err := note.InvokableRun(t.Context(), `{"text":"a"}`); !errors.Is(err, state.ErrInvalid) {
		t.Error(err)
	}
}

// TestUsage: what eino says of the tokens is recorded: a window counts by it.
func TestUsage(t *testing.T) {
	st, answer := state.New(noting), said("done")
	answer.ResponseMeta = &schema.ResponseMeta{Usage: &schema.TokenUsage{
		PromptTokens: 15_000, PromptTokenDetails: schema.PromptTokenDetails{CachedTokens: 3},
		CompletionTokens: 20, CompletionTokensDetails: schema.CompletionTokensDetails{ReasoningTokens: 4},
	}}
	if _, err := runOn(t, st, agent("billing", script(answer), nil, einostate.Middleware("billing", nil))); err != nil {
		t.Fatal(err)
	}
	last, _ := st.History().Last()
	if want := (state.Usage{Input: 15_000, Output: 20, CacheRead: 3, Reasoning: 4}); last.Usage != want {
		t.Errorf("usage %v, want %v", last.Usage, want)
	}
}
