package einostate_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

var resumeSchema = state.MustSchema(notes, einostate.CheckpointField, state.Team{"search": {"billing"}})

// ask is a tool of eino that interrupts its agent, and returns what it is resumed
// with. made counts its calls by what they were: asked, waited, and made. Calls of
// one message run at once.
func ask(t *testing.T, made map[string]int) einotool.BaseTool {
	var mu sync.Mutex
	own, err := utils.InferTool("ask", "Ask a person.", func(ctx context.Context, in noteInput) (string, error) {
		if _, ok := state.FromContext(ctx); !ok {
			t.Error("the tool has no state")
		}
		was, _, _ := einotool.GetInterruptState[any](ctx)
		target, has, data := einotool.GetResumeContext[string](ctx)
		id := compose.GetToolCallID(ctx)
		mu.Lock()
		defer mu.Unlock()
		if target && has {
			made[id+" made"]++
			return in.Text + data, nil
		}
		if made[id+" asked"]++; was {
			made[id+" waited"]++
		}
		return "", einotool.Interrupt(ctx, in.Text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// suspended is a tool that waits for a person.
var suspended = tool.Must(tool.New("wait", "Wait for a person.", func(context.Context, noteInput) (string, error) {
	return "", tool.Suspend(nil)
}))

// a conversation is what a test plays with a workspace. Each message is handled
// by a process of its own.
type conversation struct {
	t     *testing.T
	team  func() adk.Agent
	store func() store.Store
}

func (c *conversation) manager() *workspace.Manager {
	runner := adk.NewRunner(c.t.Context(), adk.RunnerConfig{Agent: c.team(), CheckPointStore: einostate.Checkpoints()})
	m, err := workspace.Open(c.t.Context(), c.store(), &workspace.Options{Schema: resumeSchema, Run: einostate.Handle(runner, nil)})
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// say sends a message and returns the names of the calls that then wait, or the
// reply.
func (c *conversation) say(msg workspace.Message) string {
	c.t.Helper()
	m := c.manager()
	defer m.Close()
	out, err := m.Handle(c.t.Context(), "ann", msg)
	if err != nil {
		c.t.Fatal(err)
	}
	waiting := []string{}
	for _, call := range c.view(m).Suspended() {
		waiting = append(waiting, call.ID)
	}
	return strings.Join(append(waiting, out.Reply), " ")
}

func (c *conversation) view(m *workspace.Manager) *workspace.View {
	view, err := m.View(c.t.Context(), "ann")
	if err != nil {
		c.t.Fatal(err)
	}
	return view
}

// answer answers suspended calls.
func (c *conversation) answer(ids ...string) string {
	c.t.Helper()
	yes := func(key string) tool.Decision { return tool.AnswerWith(key, `"yes"`) }
	return c.decide(yes, ids...)
}

// decide decides about suspended calls.
func (c *conversation) decide(as func(key string) tool.Decision, ids ...string) string {
	c.t.Helper()
	var msg workspace.Message
	for _, call := range c.waiting() {
		if slices.Contains(ids, call.ID) {
			msg.Decisions = append(msg.Decisions, as(call.Key))
		}
	}
	return c.say(msg)
}

// waiting returns the suspended calls.
func (c *conversation) waiting() []workspace.Suspended {
	c.t.Helper()
	m := c.manager()
	defer m.Close()
	return c.view(m).Suspended()
}

func (c *conversation) check(wantNotes []string, want ...string) {
	c.t.Helper()
	m := c.manager()
	defer m.Close()
	st := c.view(m).State()
	var got []string
	for _, msg := range state.Messages.GetOr(st, nil) {
		switch msg := msg.(type) {
		case state.TextMessage:
			got = append(got, msg.Role()+": "+msg.Text())
		case state.ToolCallMessage:
			for _, call := range msg.Calls() {
				got = append(got, "call "+call.ID)
			}
		case state.ToolResultMessage:
			got = append(got, "result "+msg.Call().ID+": "+msg.Text())
		}
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("conversation\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := notes.GetOr(st, nil); !slices.Equal(got, wantNotes) {
		c.t.Errorf("notes %q, want %q", got, wantNotes)
	}
	if left := einostate.CheckpointField.GetOr(st, nil); len(left) > 0 {
		c.t.Errorf("%d checkpoints are left", len(left))
	}
}

// onStores runs a test in memory and on SQLite.
func onStores(t *testing.T, team func(t *testing.T) adk.Agent, test func(c *conversation)) {
	for name, open := range map[string]func(t *testing.T) func() store.Store{
		"memory": func(*testing.T) func() store.Store {
			db := store.NewMemory()
			return func() store.Store { return db.Open() }
		},
		"sqlite": func(t *testing.T) func() store.Store {
			file := filepath.Join(t.TempDir(), "desk.db")
			return func() store.Store {
				db, err := sqlitestore.Open(t.Context(), file, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { db.Close() })
				return db
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(&conversation{t: t, team: func() adk.Agent { return team(t) }, store: open(t)})
		})
	}
}

// byAnswers is a model whose turn is the number of results in its prompt, so
// that it goes on after a resumption.
func byAnswers(turns map[int]*schema.Message) scripted {
	return func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
		n := 0
		for _, m := range msgs {
			if m.Role == schema.Tool && m.Content != "Waiting for approval." {
				n++
			}
		}
		m := *turns[n]
		return &m, nil
	}
}

// TestResumeSequence: the first of two agents is interrupted by a tool of eino.
// After the answer, it goes on where it was, and then the second agent begins.
func TestResumeSequence(t *testing.T) {
	team := func(t *testing.T) adk.Agent {
		seq, err := adk.NewSequentialAgent(t.Context(), &adk.SequentialAgentConfig{Name: "desk", SubAgents: []adk.Agent{
			agent("search", byAnswers(map[int]*schema.Message{
				0: calls(call("c1", "note", `{"text":"looked"}`), call("c2", "ask", `{"text":"may I?"}`)),
				2: said("found"),
			}), append(einostate.Tools(noteTool(0)), ask(t, map[string]int{})), einostate.Middleware("search", nil)),
			agent("billing", script(calls(call("c3", "note", `{"text":"paid"}`)), said("refunded")),
				einostate.Tools(noteTool(0)), einostate.Middleware("billing", nil)),
		}})
		must(err)
		return seq
	}
	onStores(t, team, func(c *conversation) {
		if got := c.say(workspace.Message{Content: state.UserText("refund it")}); got != "c2 " {
			c.t.Errorf("said %q", got)
		}
		if got := c.answer("c2"); got != "refunded" {
			c.t.Errorf("said %q", got)
		}
		c.check([]string{"looked", "paid"}, "user: refund it", "call c1", "call c2", `result c1: ["looked"]`, "result c2: may I?yes",
			"assistant: found", "call c3", `result c3: ["paid"]`, "assistant: refunded")
	})
}

// TestResumeByDecision: a message approves or refuses a call that a tool of eino has
// interrupted.
func TestResumeByDecision(t *testing.T) {
	for name, row := range map[string]struct {
		as           func(key string) tool.Decision
		result, made string
	}{
		"approved": {tool.Approve, "may I?approved", "c1 asked c1 made"},
		"refused":  {func(key string) tool.Decision { return tool.Refuse(key, "") }, "The call was refused by a person.", "c1 asked"},
	} {
		t.Run(name, func(t *testing.T) {
			var made map[string]int
			team := func(t *testing.T) adk.Agent {
				return agent("billing", byAnswers(map[int]*schema.Message{0: calls(call("c1", "ask", `{"text":"may I?"}`)), 1: said("done")}),
					[]einotool.BaseTool{ask(t, made)}, einostate.Middleware("billing", nil))
			}
			onStores(t, team, func(c *conversation) {
				made = map[string]int{}
				if got := c.say(workspace.Message{Content: state.UserText("go")}); got != "c1 " {
					c.t.Errorf("said %q", got)
				}
				if got := c.decide(row.as, "c1"); got != "done" {
					c.t.Errorf("said %q", got)
				}
				c.check(nil, "user: go", "call c1", "result c1: "+row.result, "assistant: done")
				if got := strings.Join(slices.Sorted(maps.Keys(made)), " "); got != row.made {
					c.t.Errorf("calls %q, want %q", got, row.made)
				}
			})
		})
	}
}

// TestResumeOneByOne: of two calls that wait, one is answered before the other.
func TestResumeOneByOne(t *testing.T) {
	team := func(t *testing.T) adk.Agent {
		return agent("billing", byAnswers(map[int]*schema.Message{
			0: calls(call("c1", "wait", `{"text":"a"}`), call("c2", "wait", `{"text":"b"}`), call("c3", "note", `{"text":"kept"}`)),
			3: said("done"),
		}), einostate.Tools(suspended, noteTool(0)), einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		for _, step := range []struct{ got, want string }{
			{c.say(workspace.Message{Content: state.UserText("go")}), "c1 c2 "},
			{c.answer("c2"), "c1 "},
			{c.answer("c1"), "done"},
		} {
			if step.got != step.want {
				c.t.Errorf("said %q, want %q", step.got, step.want)
			}
		}
		c.check([]string{"kept"}, "user: go", "call c1", "call c2", "call c3", "result c1: yes", "result c2: yes",
			`result c3: ["kept"]`, "assistant: done")
	})
}

// TestResumeNested: an agent that is the tool of another waits. So does the call
// around it, until the inner one is answered.
func TestResumeNested(t *testing.T) {
	team := func(t *testing.T) adk.Agent {
		inner := agent("search", byAnswers(map[int]*schema.Message{
			0: calls(call("i1", "wait", `{"text":"a"}`)),
			1: said("found"),
		}), einostate.Tools(suspended), einostate.Middleware("search", nil))
		return agent("billing", byAnswers(map[int]*schema.Message{
			0: calls(call("c1", "search", `{"request":"go"}`)),
			1: said("done"),
		}), []einotool.BaseTool{adk.NewAgentTool(t.Context(), inner)}, einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		if got := c.say(workspace.Message{Content: state.UserText("go")}); got != "c1 i1 " {
			c.t.Errorf("said %q", got)
		}
		if got := c.answer("i1"); got != "done" {
			c.t.Errorf("said %q", got)
		}
		c.check(nil, "user: go", "call c1", "result c1: found", "call i1", "result i1: yes", "assistant: found", "assistant: done")
	})
}

// TestMeanwhile: another message is handled while a call waits.
func TestMeanwhile(t *testing.T) {
	team := func(t *testing.T) adk.Agent {
		return agent("billing", scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			switch last := msgs[len(msgs)-1]; last.Content {
			case "go":
				return calls(call("c1", "wait", `{"text":"a"}`)), nil
			case "how long?":
				if before := msgs[len(msgs)-2]; before.Role != schema.Tool || before.Content != "Waiting for approval." {
					t.Errorf("the model reads %q", before)
				}
				return said("a day"), nil
			default:
				return said("done: " + last.Content), nil
			}
		}), einostate.Tools(suspended), einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		for _, step := range []struct{ got, want string }{
			{c.say(workspace.Message{Content: state.UserText("go")}), "c1 "},
			{c.say(workspace.Message{Content: state.UserText("how long?")}), "c1 a day"},
			{c.answer("c1"), "done: yes"},
		} {
			if step.got != step.want {
				c.t.Errorf("said %q, want %q", step.got, step.want)
			}
		}
		c.check(nil, "user: go", "call c1", "result c1: yes", "user: how long?", "assistant: a day", "assistant: done: yes")
	})
}

// TestNestedMeanwhile: what the model is sent is valid while a call waits, and the
// call of the agent around it.
func TestNestedMeanwhile(t *testing.T) {
	team := func(t *testing.T) adk.Agent {
		inner := agent("search", script(calls(call("i1", "wait", `{"text":"a"}`))), einostate.Tools(suspended), einostate.Middleware("search", nil))
		return agent("billing", scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			prompt, err := einostate.Messages(msgs...)
			must(err)
			if found := transcript.Check(prompt, transcript.OpenAI); len(found) > 0 {
				t.Error(found)
			}
			if msgs[len(msgs)-1].Content == "go" {
				return calls(call("c1", "search", `{"request":"go"}`)), nil
			}
			return said("a day"), nil
		}), []einotool.BaseTool{adk.NewAgentTool(t.Context(), inner)}, einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		if got := c.say(workspace.Message{Content: state.UserText("go")}); got != "c1 i1 " {
			c.t.Errorf("said %q", got)
		}
		if got := c.say(workspace.Message{Content: state.UserText("how long?")}); got != "c1 i1 a day" {
			c.t.Errorf("said %q", got)
		}
	})
}

// TestResumeForeign: a tool of eino is called again once for each resumption, with
// what it is resumed with, and what it returns is the result. Results of other
// calls of the message are kept.
func TestResumeForeign(t *testing.T) {
	var made map[string]int
	look, err := utils.InferTool("look", "Look.", func(context.Context, noteInput) (string, error) { return "seen", nil })
	must(err)
	team := func(t *testing.T) adk.Agent {
		return agent("billing", byAnswers(map[int]*schema.Message{
			0: calls(call("c1", "ask", `{"text":"a"}`), call("c2", "look", `{"text":"b"}`), call("c3", "ask", `{"text":"a"}`)),
			3: said("done"),
		}), []einotool.BaseTool{ask(t, made), look}, einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		made = map[string]int{}
		for _, step := range []struct{ got, want string }{
			{c.say(workspace.Message{Content: state.UserText("go")}), "c1 c3 "},
			{c.answer("c1"), "c3 "},
			{c.answer("c3"), "done"},
		} {
			if step.got != step.want {
				c.t.Errorf("said %q, want %q", step.got, step.want)
			}
		}
		if want := map[string]int{"c1 asked": 1, "c1 made": 1, "c3 asked": 2, "c3 waited": 1, "c3 made": 1}; !maps.Equal(made, want) {
			c.t.Errorf("made %v, want %v", made, want)
		}
		c.check(nil, "user: go", "call c1", "call c2", "call c3", "result c1: ayes", "result c2: seen", "result c3: ayes", "assistant: done")
	})
}

// TestMeanwhileInPrompt: what was said while calls waited is in the prompt of the
// resumed agent, once, in front of the calls, and the prompt ends with the
// results.
func TestMeanwhileInPrompt(t *testing.T) {
	for name, waits := range map[string]func(t *testing.T) einotool.BaseTool{
		"own":     func(*testing.T) einotool.BaseTool { return einostate.Tools(suspended)[0] },
		"foreign": func(t *testing.T) einotool.BaseTool { return ask(t, map[string]int{}) },
	} {
		t.Run(name, func(t *testing.T) {
			tool, prompt := map[string]string{"own": "wait", "foreign": "ask"}[name], ""
			team := func(t *testing.T) adk.Agent {
				return agent("billing", scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
					prompt = ""
					for _, m := range msgs {
						prompt += string(m.Role) + " " + m.Content + "; "
					}
					switch last := msgs[len(msgs)-1]; last.Content {
					case "go":
						return calls(call("c1", tool, `{"text":""}`), call("c2", tool, `{"text":""}`)), nil
					case "make it 20", "make it 30":
						return said("noted"), nil
					}
					return said("done"), nil
				}), []einotool.BaseTool{waits(t)}, einostate.Middleware("billing", nil))
			}
			onStores(t, team, func(c *conversation) {
				c.say(workspace.Message{Content: state.UserText("go")})
				c.say(workspace.Message{Content: state.UserText("make it 20")})
				c.answer("c2") // the model is not asked
				c.say(workspace.Message{Content: state.UserText("make it 30")})
				c.answer("c1")
				want := "user go; user make it 20; assistant noted; user make it 30; assistant noted; assistant ; tool yes; tool yes; "
				if prompt != want {
					c.t.Errorf("prompt %q, want %q", prompt, want)
				}
				c.check(nil, "user: go", "call c1", "call c2", "result c1: yes", "result c2: yes", "user: make it 20", "assistant: noted",
					"user: make it 30", "assistant: noted", "assistant: done")
			})
		})
	}
}

// TestMeanwhileInLaterPrompt: an agent that begins after the resumption is shown
// what was said, too, and is not shown it last.
func TestMeanwhileInLaterPrompt(t *testing.T) {
	var prompt []*schema.Message
	team := func(t *testing.T) adk.Agent {
		second := scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			prompt = msgs
			return said("done"), nil
		})
		seq, err := adk.NewSequentialAgent(t.Context(), &adk.SequentialAgentConfig{Name: "desk", SubAgents: []adk.Agent{
			agent("search", scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
				if last := msgs[len(msgs)-1]; last.Content == "go" {
					return calls(call("c1", "wait", `{"text":"a"}`)), nil
				}
				return said("found"), nil
			}), einostate.Tools(suspended), einostate.Middleware("search", nil)),
			agent("billing", second, nil, einostate.Middleware("billing", nil)),
		}})
		must(err)
		return seq
	}
	onStores(t, team, func(c *conversation) {
		c.say(workspace.Message{Content: state.UserText("go")})
		c.say(workspace.Message{Content: state.UserText("make it 20")})
		c.answer("c1")
		at := slices.IndexFunc(prompt, func(m *schema.Message) bool { return m.Content == "make it 20" })
		if at < 0 || at == len(prompt)-1 || !strings.Contains(prompt[len(prompt)-1].Content, "found") {
			c.t.Errorf("the prompt is %v", prompt)
		}
	})
}

// TestMeanwhileNested: what was said while an inner agent waited is in the prompt
// of the outer one alone, whose conversation it belongs to.
func TestMeanwhileNested(t *testing.T) {
	prompts := map[string]string{}
	play := func(name string, answer func(last *schema.Message) *schema.Message) scripted {
		return func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			prompts[name] = ""
			for _, m := range msgs {
				prompts[name] += m.Content + "; "
			}
			return answer(msgs[len(msgs)-1]), nil
		}
	}
	team := func(t *testing.T) adk.Agent {
		inner := agent("search", play("inner", func(last *schema.Message) *schema.Message {
			if last.Role == schema.Tool {
				return said("found")
			}
			return calls(call("i1", "wait", `{"text":"a"}`))
		}), einostate.Tools(suspended), einostate.Middleware("search", nil))
		return agent("billing", play("outer", func(last *schema.Message) *schema.Message {
			switch {
			case last.Role == schema.Tool:
				return said("done")
			case last.Content == "make it 20":
				return said("noted")
			}
			return calls(call("c1", "search", `{"request":"go"}`))
		}), []einotool.BaseTool{adk.NewAgentTool(t.Context(), inner)}, einostate.Middleware("billing", nil))
	}
	onStores(t, team, func(c *conversation) {
		c.say(workspace.Message{Content: state.UserText("go")})
		c.say(workspace.Message{Content: state.UserText("make it 20")})
		if got := c.answer("i1"); got != "done" {
			c.t.Errorf("said %q", got)
		}
		if inner := prompts["inner"]; !strings.Contains(inner, "yes") || strings.Contains(inner, "make it 20") {
			c.t.Errorf("the prompt of the inner agent is %q", inner)
		}
		if outer := prompts["outer"]; !strings.Contains(outer, "make it 20") || !strings.HasSuffix(outer, "found; ") {
			c.t.Errorf("the prompt of the outer agent is %q", outer)
		}
	})
}

// TestStepsAreCommitted: before the model is asked again, the store has what was
// said and done.
func TestStepsAreCommitted(t *testing.T) {
	var m *workspace.Manager
	stored := []int{}
	play := script(calls(call("c1", "note", `{"text":"a"}`)), calls(call("c2", "look", `{"text":"b"}`)), said("done"))
	a := agent("billing", scripted(func(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error) {
		view, err := m.View(ctx, "ann")
		must(err)
		stored = append(stored, len(state.Messages.GetOr(view.State(), nil)))
		return play(ctx, msgs, opts...)
	}), append(einostate.Tools(noteTool(0)), func() einotool.BaseTool {
		look, err := utils.InferTool("look", "Look.", func(context.Context, noteInput) (string, error) { return "seen", nil })
		must(err)
		return look
	}()), einostate.Middleware("billing", nil))
	var err error
	m, err = workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: resumeSchema, Run: einostate.Handle(adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: a}), nil),
	})
	must(err)
	defer m.Close()
	_, err = m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("go")})
	must(err)
	if !slices.Equal(stored, []int{1, 3, 5}) {
		t.Errorf("stored messages: %v", stored)
	}
}

// TestEvents: the function of Handle gets the events of the agent, with their
// text while it is streamed.
func TestEvents(t *testing.T) {
	a := agent("billing", script(said("hello")), nil, einostate.Middleware("billing", nil))
	runner := adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: a, EnableStreaming: true})
	var told []string
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: resumeSchema, Run: einostate.Handle(runner,
		func(_ context.Context, run *workspace.Run, event *adk.AgentEvent) {
			chunk, err := event.Output.MessageOutput.MessageStream.Recv()
			must(err)
			told = append(told, run.Message().ID+": "+chunk.Content)
		})})
	must(err)
	defer m.Close()
	out, err := m.Handle(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("go")})
	must(err)
	if out.Reply != "hello" || !slices.Equal(told, []string{"1: hello"}) {
		t.Errorf("reply %q, told %q", out.Reply, told)
	}
}
