package einostate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// bank has a tool that waits for an approval and then pays: one of the library, or
// a foreign one of eino.
type bank struct {
	mu      sync.Mutex
	paid    []string
	foreign bool
}

func (b *bank) pay(to string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid = append(b.paid, to)
}

func (b *bank) tools() []einotool.BaseTool {
	if !b.foreign {
		return einostate.Tools(tool.Must(tool.New("pay", "Pay.", func(_ context.Context, in noteInput) (string, error) {
			b.pay(in.Text)
			return "paid " + in.Text, nil
		}, tool.NeedsApproval(func(_ context.Context, in noteInput) (string, bool) { return "pay " + in.Text, true }))))
	}
	own, err := utils.InferTool("pay", "Pay.", func(ctx context.Context, in noteInput) (string, error) {
		if target, has, _ := einotool.GetResumeContext[string](ctx); !target || !has {
			return "", einotool.Interrupt(ctx, "pay "+in.Text)
		}
		b.pay(in.Text)
		return "paid " + in.Text, nil
	})
	must(err)
	return []einotool.BaseTool{own}
}

// paying is a model that calls pay once for each letter of what the user says in
// capitals, with the ids, and otherwise says what it has read last.
func paying(ids ...string) scripted {
	return func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
		last := msgs[len(msgs)-1]
		var out []schema.ToolCall
		for i, to := range strings.Split(last.Content, "") {
			if last.Role == schema.User && strings.ToUpper(last.Content) == last.Content {
				out = append(out, call(ids[i%len(ids)], "pay", fmt.Sprintf(`{"text":%q}`, to)))
			}
		}
		if out != nil {
			return calls(out...), nil
		}
		return said("done: " + last.Content), nil
	}
}

// withBank plays a conversation of an agent with each kind of the tool.
func withBank(t *testing.T, m scripted, test func(t *testing.T, c *conversation, b *bank)) {
	for _, foreign := range []bool{false, true} {
		t.Run(fmt.Sprint("foreign=", foreign), func(t *testing.T) {
			b := &bank{foreign: foreign}
			db := store.NewMemory()
			test(t, &conversation{
				t: t, store: func() store.Store { return db.Open() },
				team: func() adk.Agent { return agent("billing", m, b.tools(), einostate.Middleware("billing", nil)) },
			}, b)
		})
	}
}

// cards returns the arguments of the calls that wait, and their keys by these.
func (c *conversation) cards() (texts []string, keys map[string]string) {
	keys = map[string]string{}
	for _, call := range c.waiting() {
		var in noteInput
		must(call.Input.Decode(&in))
		texts = append(texts, in.Text)
		keys[in.Text] = call.Key
	}
	return texts, keys
}

// results returns the results of all calls by what these pay.
func (c *conversation) results() map[string]string {
	m := c.manager()
	defer m.Close()
	out, names := map[string]string{}, map[string]string{}
	for _, msg := range state.Messages.GetOr(c.view(m).State(), nil) {
		switch msg := msg.(type) {
		case state.ToolCallMessage:
			for _, call := range msg.Calls() {
				var in noteInput
				must(call.Input.Decode(&in))
				names[call.Key] = in.Text
			}
		case state.ToolResultMessage:
			out[names[msg.Call().Key]] = msg.Text()
		}
	}
	return out
}

func (c *conversation) equal(want, got any) {
	c.t.Helper()
	if fmt.Sprint(want) != fmt.Sprint(got) {
		c.t.Errorf("got %v, want %v", got, want)
	}
}

func decisions(d ...tool.Decision) workspace.Message { return workspace.Message{Decisions: d} }

// The key says which call is decided about, whatever ids the provider gives: of one
// answer, of several, and none.
func TestADecisionHitsItsCall(t *testing.T) {
	for name, ids := range map[string][]string{"no ids": {""}, "one id": {"c1"}, "ids": {"c1", "c2", "c3"}} {
		for _, answers := range [][]string{{"ABC"}, {"A", "B", "C"}} {
			t.Run(fmt.Sprint(name, answers), func(t *testing.T) {
				withBank(t, paying(ids...), func(t *testing.T, c *conversation, b *bank) {
					for _, text := range answers {
						c.say(user(text))
					}
					shown, keys := c.cards()
					c.equal([]string{"A", "B", "C"}, shown)
					c.say(decisions(tool.Approve(keys["B"])))
					c.equal([]string{"B"}, b.paid)
					c.say(decisions(tool.Refuse(keys["A"], "no"), tool.Approve(keys["C"])))
					c.equal([]string{"B", "C"}, b.paid)
					c.equal(map[string]string{"A": "The call was refused by a person: no", "B": "paid B", "C": "paid C"}, c.results())
					shown, _ = c.cards()
					c.equal([]string{}, shown)
				})
			})
		}
	}
}

// An approval is not lost because something was said in between, or with it.
func TestAnApprovalAfterOtherWords(t *testing.T) {
	withBank(t, paying("c1"), func(t *testing.T, c *conversation, b *bank) {
		c.say(user("AB"))
		c.say(user("hello"))
		_, keys := c.cards()
		c.say(decisions(tool.Approve(keys["A"])))
		c.equal([]string{"A"}, b.paid)
		with := decisions(tool.Approve(keys["B"]))
		with.Content = state.UserText("yes, do")
		c.say(with)
		c.equal([]string{"A", "B"}, b.paid)
		c.equal(map[string]string{"A": "paid A", "B": "paid B"}, c.results())
	})
}

// A card of before a Reset decides about no later call.
func TestAStaleCard(t *testing.T) {
	withBank(t, paying("c1"), func(t *testing.T, c *conversation, b *bank) {
		c.say(user("A"))
		_, old := c.cards()
		m := c.manager()
		_, err := m.Reset(t.Context(), "ann")
		must(err)
		must(m.Close())
		c.say(user("A"))
		m = c.manager()
		if out, err := m.Handle(t.Context(), "ann", decisions(tool.Approve(old["A"]))); err == nil {
			t.Errorf("decided about a call that is gone: %v", out.Status)
		}
		must(m.Close())
		c.equal(0, len(b.paid))
		_, keys := c.cards()
		c.say(decisions(tool.Approve(keys["A"])))
		c.equal([]string{"A"}, b.paid)
	})
}

// The call of an agent that is the tool of another can be approved, refused and
// answered.
func TestDecisionsInANestedAgent(t *testing.T) {
	for name, row := range map[string]struct {
		as   func(key string) tool.Decision
		paid []string
	}{
		"approved": {tool.Approve, []string{"A"}},
		"refused":  {func(key string) tool.Decision { return tool.Refuse(key, "") }, nil},
		"answered": {func(key string) tool.Decision { return tool.AnswerWith(key, `"by hand"`) }, nil},
	} {
		for _, foreign := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " foreign=", foreign), func(t *testing.T) {
				b, db := &bank{foreign: foreign}, store.NewMemory()
				if name == "answered" && foreign {
					row.paid = []string{"A"} // the tool is resumed with the answer
				}
				c := &conversation{t: t, store: func() store.Store { return db.Open() }, team: func() adk.Agent {
					inner := agent("search", paying("c1"), b.tools(), einostate.Middleware("search", nil))
					outer := script(calls(call("c1", "search", `{"request":"A"}`)), said("all done"))
					return agent("billing", outer, []einotool.BaseTool{adk.NewAgentTool(t.Context(), inner)}, einostate.Middleware("billing", nil))
				}}
				c.say(user("go"))
				var pay tool.Decision
				for _, call := range c.waiting() {
					if call.Name == "pay" {
						pay = row.as(call.Key)
					}
				}
				c.equal("all done", strings.TrimSpace(c.say(decisions(pay))))
				c.equal(row.paid, b.paid)
				c.equal(0, len(c.waiting()))
			})
		}
	}
}

// A call of the library's tools is made with other arguments if the approval has
// them. eino would make the call of a foreign tool with its own.
func TestOtherArguments(t *testing.T) {
	withBank(t, paying("c1"), func(t *testing.T, c *conversation, b *bank) {
		c.say(user("A"))
		_, keys := c.cards()
		m := c.manager()
		defer m.Close()
		out, err := m.Handle(t.Context(), "ann", decisions(tool.ApproveWith(keys["A"], `{"text":"Z"}`)))
		if !b.foreign {
			must(err)
			c.equal([]string{"Z"}, b.paid)
			return
		}
		if text := fmt.Sprint(out.Reason, err); !strings.Contains(text, "cannot be made with other arguments") {
			t.Errorf("the error is %s", text)
		}
		c.equal(0, len(b.paid))
		c.equal(keys["A"], c.view(m).Suspended()[0].Key)
	})
}

// A call whose message was edited while it waited is not made, neither as it was
// nor as it is.
func TestAnEditedCall(t *testing.T) {
	withBank(t, paying("c1"), func(t *testing.T, c *conversation, b *bank) {
		c.say(user("A"))
		_, keys := c.cards()
		m := c.manager()
		must(m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
			msgs := state.Messages.GetOr(w.State(), nil)
			edited := msgs[1].(state.ToolCallMessage).Calls()[0]
			edited.Input = `{"text":"Z"}`
			msgs[1] = state.ToolCalls(edited)
			return state.Messages.Replace(w.State(), msgs)
		}))
		if out, err := m.Handle(t.Context(), "ann", decisions(tool.Approve(keys["A"]))); err == nil {
			t.Errorf("decided about an edited call: %v", out.Status)
		}
		must(m.Close())
		c.say(user("hello"))
		c.equal(0, len(b.paid))
		c.equal(0, len(c.waiting()))
	})
}

// An approval that the process cannot use waits again: without checkpoints for a
// foreign tool, and in a build without the tool.
func TestAnApprovalThatIsNotMadeWaitsAgain(t *testing.T) {
	for name, foreign := range map[string]bool{"no checkpoints": true, "no tool": false} {
		t.Run(name, func(t *testing.T) {
			b, db := &bank{foreign: foreign}, store.NewMemory()
			lacks := false
			open := func() *workspace.Manager {
				conf := adk.RunnerConfig{CheckPointStore: einostate.Checkpoints()}
				tools := b.tools()
				if lacks = lacks || name == "no checkpoints"; lacks && name == "no tool" {
					tools = einostate.Tools(noteTool(0))
				}
				if name == "no checkpoints" {
					conf.CheckPointStore = nil
				}
				conf.Agent = agent("billing", paying("c1"), tools, einostate.Middleware("billing", nil))
				m, err := workspace.Open(t.Context(), db.Open(), &workspace.Options{
					Schema: resumeSchema, Attempts: 1, Run: einostate.Handle(adk.NewRunner(t.Context(), conf), nil),
				})
				must(err)
				return m
			}
			m := open()
			_, err := m.Handle(t.Context(), "ann", user("A"))
			must(err)
			must(m.Close())
			lacks = true
			m = open()
			defer m.Close()
			view, err := m.View(t.Context(), "ann")
			must(err)
			key := view.Suspended()[0].Key
			_, _ = m.Handle(t.Context(), "ann", decisions(tool.Approve(key)))
			view, err = m.View(t.Context(), "ann")
			must(err)
			if waits := slices.ContainsFunc(view.Suspended(), func(s workspace.Suspended) bool { return s.Key == key }); !waits || len(b.paid) > 0 {
				t.Errorf("waits again: %v, paid %q", waits, b.paid)
			}
			_, err = m.Handle(t.Context(), "ann", decisions(tool.Refuse(key, "")))
			must(err)
		})
	}
}

// A checkpoint of a version whose calls had no keys is an error that says so.
func TestACheckpointWithoutKeys(t *testing.T) {
	withBank(t, paying("c1"), func(t *testing.T, c *conversation, b *bank) {
		c.say(user("A"))
		_, keys := c.cards()
		m := c.manager()
		defer m.Close()
		must(m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
			all := einostate.CheckpointField.GetOr(w.State(), nil)
			for id, checkpoint := range all {
				checkpoint.Interrupts = map[string]einostate.Interrupt{"c1": {ID: "1"}}
				all[id] = checkpoint
			}
			return einostate.CheckpointField.Set(w.State(), all)
		}))
		out, err := m.Handle(t.Context(), "ann", decisions(tool.Approve(keys["A"])))
		if text := fmt.Sprint(out.Reason, err); !strings.Contains(text, "whose calls have no keys") {
			t.Errorf("the error is %s", text)
		}
		c.equal(0, len(b.paid))
	})
}

func user(text string) workspace.Message { return workspace.Message{Content: state.UserText(text)} }
