package einostate_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// TestReturnDirectly: the results with which an agent ends are recorded, although
// the model is not asked again.
func TestReturnDirectly(t *testing.T) {
	look, err := utils.InferStreamTool("look", "Look.", func(context.Context, noteInput) (*schema.StreamReader[string], error) {
		return schema.StreamReaderFromArray([]string{"se", "en"}), nil
	})
	must(err)
	for name, tools := range map[string][]einotool.BaseTool{"look": {look}, "note": einostate.Tools(noteTool(0))} {
		a, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
			Name: "billing", Description: "billing", Model: script(calls(call("c1", name, `{"text":"a"}`))),
			Handlers: []adk.ChatModelAgentMiddleware{einostate.Middleware("billing", nil)},
			ToolsConfig: adk.ToolsConfig{
				ToolsNodeConfig: compose.ToolsNodeConfig{Tools: tools}, ReturnDirectly: map[string]bool{name: true},
			},
		})
		must(err)
		st := state.New(noting)
		if _, err := runOn(t, st, a); err != nil {
			t.Fatal(err)
		}
		last, ok := st.History().Last()
		if !ok || len(last.ToolCalls) != 1 || !strings.Contains(last.ToolCalls[0].Text(), map[string]string{"look": "seen", "note": "a"}[name]) {
			t.Errorf("%s: the history has %v", name, last.ToolCalls)
		}
	}
}

// TestContextBehindTheMessages: the text of Context stands behind the messages, at
// the end of what the user says or as a message, and is that of the moment.
func TestContextBehindTheMessages(t *testing.T) {
	var prompts []string
	play := script(calls(call("c1", "note", `{"text":"a"}`)), said("done"))
	a := agent("billing", scripted(func(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error) {
		last := msgs[len(msgs)-1]
		prompts = append(prompts, fmt.Sprint(len(msgs), " ", last.Role, ": ", last.Content, last.UserInputMultiContent))
		return play(ctx, msgs, opts...)
	}), einostate.Tools(noteTool(0)), einostate.Middleware("billing", &einostate.Options{
		Context: func(_ context.Context, st *state.State) string {
			return "Notes: " + strings.Join(notes.GetOr(st, nil), ", ")
		},
	}))
	st := state.New(noting)
	if _, err := runOn(t, st, a); err != nil {
		t.Fatal(err)
	}
	parts := &schema.Message{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{{Type: schema.ChatMessagePartTypeText, Text: "look"}}}
	play = script(said("seen"))
	ctx := state.NewContext(t.Context(), st)
	if _, err := drain(adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Run(ctx, []*schema.Message{parts})); err != nil {
		t.Fatal(err)
	}
	note := func(text string) string { return "<context>\nNotes: " + text + "\n</context>" }
	last := prompts[len(prompts)-1]
	if want := []string{"1 user: go\n\n" + note("") + "[]", "4 user: " + note("a") + "[]"}; !slices.Equal(prompts[:2], want) {
		t.Errorf("prompts end with %q, want %q", prompts, want)
	}
	if !strings.HasPrefix(last, "1 user: [") || !strings.Contains(last, "look") || !strings.Contains(last, note("a")) {
		t.Errorf("the prompt with parts ends with %q", last)
	}
	if got := jsonOf(t, state.Messages.GetOr(st, nil)); strings.Contains(got, "context") {
		t.Errorf("the conversation has %s", got)
	}
}

// TestResultsBeforeTheAnswer: the results of a message that another call of it
// interrupts are in the conversation at once, and the checkpoint is gone when the
// agent goes on: what it commits then is where a later process begins. What was
// said meanwhile is in its prompts once, also when it is asked again.
func TestResultsBeforeTheAnswer(t *testing.T) {
	look, err := utils.InferTool("look", "Look.", func(context.Context, noteInput) (string, error) { return "seen", nil })
	must(err)
	var c *conversation
	var checkpoints []int
	var prompts []string
	team := func(t *testing.T) adk.Agent {
		play := scripted(func(_ context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error) {
			if offered := model.GetCommonOptions(nil, opts...).Tools; len(offered) != 2 {
				t.Errorf("the model is offered %d tools", len(offered))
			}
			prompt := ""
			for _, m := range msgs {
				prompt += string(m.Role) + " " + m.Content + "; "
			}
			prompts = append(prompts, prompt)
			m := c.manager()
			defer m.Close()
			checkpoints = append(checkpoints, len(einostate.CheckpointField.GetOr(c.view(m).State(), nil)))
			switch last := msgs[len(msgs)-1]; {
			case last.Content == "go":
				return calls(call("c1", "wait", `{"text":"a"}`), call("c2", "look", `{"text":"b"}`)), nil
			case last.Content == "make it 20":
				return said("noted"), nil
			case strings.Count(prompt, "seen") == 1:
				return calls(call("c1", "look", `{"text":"b"}`)), nil // an id that was there
			}
			return said("done"), nil
		})
		return agent("billing", play, append(einostate.Tools(suspended), look), einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(of *conversation) {
		c, checkpoints, prompts = of, nil, nil
		if got := c.say(workspace.Message{Content: state.UserText("go")}); got != "c1 " {
			c.t.Errorf("said %q", got)
		}
		m := c.manager()
		var results []string
		for _, msg := range state.Messages.GetOr(c.view(m).State(), nil) {
			if r, ok := msg.(state.ToolResultMessage); ok {
				results = append(results, r.Call().ID+": "+r.Text())
			}
		}
		m.Close()
		if !slices.Equal(results, []string{"c2: seen"}) {
			c.t.Errorf("results before the answer: %q", results)
		}
		c.say(workspace.Message{Content: state.UserText("make it 20")})
		if got := c.answer("c1"); got != "done" {
			c.t.Errorf("said %q", got)
		}
		if want := []int{0, 1, 0, 0}; !slices.Equal(checkpoints, want) {
			c.t.Errorf("checkpoints in the store at each request: %v, want %v", checkpoints, want)
		}
		meanwhile := "user go; user make it 20; assistant noted; assistant ; tool yes; tool seen; "
		if want := []string{meanwhile, meanwhile + "assistant ; tool seen; "}; !slices.Equal(prompts[2:], want) {
			c.t.Errorf("prompts after the answer %q, want %q", prompts[2:], want)
		}
		c.check(nil, "user: go", "call c1", "call c2", "result c1: yes", "result c2: seen", "user: make it 20", "assistant: noted",
			"call c1", "result c1: seen", "assistant: done")
	})
}

// TestMeanwhileNestedTwice: an inner agent that waits twice. The outer one is shown
// what was said while it waited, but not what the inner one had said before.
func TestMeanwhileNestedTwice(t *testing.T) {
	prompt := ""
	team := func(t *testing.T) adk.Agent {
		inner := agent("search", byAnswers(map[int]*schema.Message{
			0: calls(call("i0", "note", `{"text":"a"}`)),
			1: calls(call("i1", "wait", `{"text":"a"}`)),
			2: calls(call("i2", "wait", `{"text":"b"}`)),
			3: said("found"),
		}), einostate.Tools(noteTool(0), suspended), einostate.Middleware("search", nil))
		return agent("billing", scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			prompt = ""
			for _, m := range msgs {
				prompt += string(m.Role) + " " + m.Content
				for _, c := range m.ToolCalls {
					prompt += c.ID
				}
				prompt += "; "
			}
			switch last := msgs[len(msgs)-1]; {
			case last.Content == "found":
				return said("done"), nil
			case last.Content == "make it 20":
				return said("noted"), nil
			}
			return calls(call("c1", "search", `{"request":"go"}`)), nil
		}), []einotool.BaseTool{adk.NewAgentTool(t.Context(), inner)}, einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		for _, step := range []struct{ got, want string }{
			{c.say(workspace.Message{Content: state.UserText("go")}), "c1 i1 "},
			{c.say(workspace.Message{Content: state.UserText("make it 20")}), "c1 i1 noted"},
			{c.answer("i1"), "c1 i2 "},
			{c.answer("i2"), "done"},
		} {
			if step.got != step.want {
				c.t.Errorf("said %q, want %q", step.got, step.want)
			}
		}
		if strings.Contains(prompt, "i0") || strings.Contains(prompt, "i1") || strings.Contains(prompt, "i2") ||
			strings.Count(prompt, "user make it 20; assistant noted; ") != 1 || !strings.HasSuffix(prompt, "assistant c1; tool found; ") {
			c.t.Errorf("the prompt of the outer agent is %q", prompt)
		}
	})
}

// TestAnswersToTwoCheckpoints: calls of two messages are answered by one. The agent
// goes on where the first of them was asked, with both results, and no checkpoint is
// left.
func TestAnswersToTwoCheckpoints(t *testing.T) {
	prompt := ""
	team := func(t *testing.T) adk.Agent {
		return agent("billing", scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			switch last := msgs[len(msgs)-1]; last.Content {
			case "go":
				return calls(call("c1", "wait", `{"text":"a"}`)), nil
			case "more":
				return calls(call("c2", "wait", `{"text":"b"}`)), nil
			}
			prompt = jsonOf(t, msgs)
			return said("done"), nil
		}), einostate.Tools(suspended), einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		for _, step := range []struct{ got, want string }{
			{c.say(workspace.Message{Content: state.UserText("go")}), "c1 "},
			{c.say(workspace.Message{Content: state.UserText("more")}), "c1 c2 "},
			{c.answer("c1", "c2"), "done"},
		} {
			if step.got != step.want {
				c.t.Errorf("said %q, want %q", step.got, step.want)
			}
		}
		if !strings.Contains(prompt, `"c1"`) || strings.Count(prompt, `"more"`) != 1 {
			c.t.Errorf("the prompt is %s", prompt)
		}
		c.check(nil, "user: go", "call c1", "result c1: yes", "user: more", "call c2", "result c2: yes", "assistant: done")
	})
}

// TestAnAgentThatFails: the error of an agent fails its message.
func TestAnAgentThatFails(t *testing.T) {
	down := errors.New("the model is down")
	a := agent("billing", scripted(func(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
		return nil, down
	}), nil, einostate.Middleware("billing", nil))
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: resumeSchema, Run: einostate.Handle(adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: a}), nil),
	})
	must(err)
	defer m.Close()
	if _, err := m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("go")}); !errors.Is(err, down) {
		t.Errorf("Handle returns %v", err)
	}
}

// stopping is an agent that interrupts itself.
type stopping struct{ adk.Agent }

func (s stopping) Run(ctx context.Context, _ *adk.AgentInput, _ ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	events, send := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	send.Send(adk.Interrupt(ctx, "stop"))
	send.Close()
	return events
}

// TestInterruptOutsideOfCalls: nobody could answer it.
func TestInterruptOutsideOfCalls(t *testing.T) {
	a := stopping{agent("billing", script(), nil)}
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: resumeSchema, Run: einostate.Handle(adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: a}), nil),
	})
	must(err)
	defer m.Close()
	_, err = m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("go")})
	if err == nil || !strings.Contains(err.Error(), "no call of the conversation is open there") {
		t.Errorf("Handle returns %v", err)
	}
}

// TestMeanwhileWithRepeatedIDs: of the calls with an id, the last one waits. What was
// said before it is in the prompt once.
func TestMeanwhileWithRepeatedIDs(t *testing.T) {
	prompt := ""
	team := func(t *testing.T) adk.Agent {
		return agent("billing", scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			prompt = ""
			for _, m := range msgs {
				prompt += string(m.Role) + " " + m.Content + "; "
			}
			switch last := msgs[len(msgs)-1]; {
			case last.Content == "hello":
				return calls(call("c1", "note", `{"text":"a"}`)), nil
			case last.Content == "go":
				return calls(call("c1", "wait", `{"text":"a"}`)), nil
			case last.Content == "make it 20":
				return said("noted"), nil
			}
			return said("done"), nil
		}), einostate.Tools(noteTool(0), suspended), einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		for _, text := range []string{"hello", "go", "make it 20"} {
			c.say(workspace.Message{Content: state.UserText(text)})
		}
		c.answer("c1")
		want := `user hello; assistant ; tool ["a"]; assistant done; user go; user make it 20; assistant noted; assistant ; tool yes; `
		if prompt != want {
			c.t.Errorf("the prompt is %q, want %q", prompt, want)
		}
	})
}
