package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

var officeSchema = state.MustSchema(state.Team{"clerk": {"boss"}})

// office is a workspace whose agent clerk makes the calls of a message: "pay a, pay
// b" are two calls, "hello" is none. Each call of pay needs an approval.
type office struct {
	m     *workspace.Manager
	mu    sync.Mutex
	made  []string // each call that was made, and by whom it was approved
	fails bool     // the next attempt to answer fails, after the calls were made
	asked int

	db        store.Store
	opts      workspace.Options
	meanwhile func() // is called before each answer
}

// failsOnce reports whether this attempt to answer fails.
func (o *office) failsOnce() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	fails := o.fails
	o.fails = false
	return fails
}

// before has fn called before each answer, and nothing if it is nil.
func (o *office) before(fn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.meanwhile = fn
}

// fail lets the next attempt to answer fail.
func (o *office) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails = true
}

func newOffice(t *testing.T, opts ...tool.Option) *office {
	o := &office{}
	type in struct {
		To string `json:"to"`
	}
	pay := tool.Must(tool.New("pay", "", func(ctx context.Context, in in) (string, error) {
		call, _ := tool.CallOf(ctx)
		o.mu.Lock() // calls of one message are made at the same time
		defer o.mu.Unlock()
		o.made = append(o.made, fmt.Sprintf("%s by %s, approved by %q", in.To, call.Agent, call.ApprovedBy))
		return "paid " + in.To, nil
	}, append(opts, tool.NeedsApproval(func(_ context.Context, in in) (string, bool) { return "money for " + in.To, true }))...))
	ask := func(ctx context.Context, turn *loop.Turn) error {
		o.mu.Lock()
		o.asked++
		meanwhile := o.meanwhile
		o.mu.Unlock()
		if meanwhile != nil {
			meanwhile()
		}
		if o.failsOnce() {
			return errors.New("no model")
		}
		msgs, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
		if err != nil {
			return err
		}
		last := msgs[len(msgs)-1]
		answer := state.Message(state.AssistantText("re " + last.Text()))
		var calls []state.ToolCall
		for _, word := range strings.Split(last.Text(), ", ") {
			if to, ok := strings.CutPrefix(word, "pay "); ok && last.Role() == "user" {
				calls = append(calls, state.ToolCall{ID: "call_" + to, Name: "pay", Input: state.JSON(`{"to":"` + to + `"}`)})
			}
		}
		if calls != nil {
			answer = state.ToolCalls(calls...)
		}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{answer}})
	}
	o.db = store.NewMemory()
	o.opts = workspace.Options{Schema: officeSchema, Run: workspace.Loop(&loop.Loop{
		Agents: map[string]loop.Agent{"clerk": {Ask: ask, Tools: []*tool.Tool{pay}}},
	})}
	o.m = open(t, o.db, o.opts)
	t.Cleanup(func() { _ = o.m.Close() })
	return o
}

// hear handles a message: "approve a b" and "refuse a" decide about calls, and
// anything else is what the user says. It returns the reply.
func (o *office) hear(t *testing.T, text string) (string, error) {
	var msg workspace.Message
	words := strings.Fields(text)
	for _, to := range words[1:] {
		switch words[0] {
		case "approve":
			msg.Decisions, msg.Agent = append(msg.Decisions, tool.Approve(o.key(t, to))), "boss"
		case "refuse":
			msg.Decisions, msg.Agent = append(msg.Decisions, tool.Refuse(o.key(t, to), "")), "boss"
		}
	}
	if msg.Decisions == nil {
		msg.Content = state.UserText(text)
	}
	out, err := o.m.Handle(t.Context(), "ann", msg)
	return out.Reply, err
}

// key returns the key of the last call that pays somebody, or one of no call.
func (o *office) key(t *testing.T, to string) string {
	v := view(t, o.m, "ann")
	for _, m := range slices.Backward(state.Messages.GetOr(v.State(), nil)) {
		if m, ok := m.(state.ToolCallMessage); ok {
			for _, c := range m.Calls() {
				if c.ID == "call_"+to {
					return c.Key
				}
			}
		}
	}
	return "unknown"
}

func (o *office) waits(t *testing.T) (list []string) {
	for _, s := range view(t, o.m, "ann").Suspended() {
		list = append(list, s.ID)
	}
	return list
}

func TestApprovals(t *testing.T) {
	for name, tc := range map[string]struct {
		messages []string
		replies  string // of the messages, or the errors
		made     []string
		waits    []string
		asked    int
	}{
		"approved": {
			messages: []string{"pay a", "approve a"}, replies: "; re paid a",
			made: []string{`a by clerk, approved by "boss"`}, asked: 2,
		},
		"refused": {
			messages: []string{"pay a", "refuse a"}, replies: "; re The call was refused by a person.", asked: 2,
		},
		"after another message": {
			messages: []string{"pay a", "hello", "approve a"}, replies: "; re hello; re paid a",
			made: []string{`a by clerk, approved by "boss"`}, asked: 3,
		},
		"one of two: the model waits for the other": {
			messages: []string{"pay a, pay b", "approve b", "refuse a"}, replies: "; ; re paid b",
			made: []string{`b by clerk, approved by "boss"`}, asked: 2,
		},
		"both at once, in the order of the calls": {
			messages: []string{"pay a, pay b", "approve b a"}, replies: "; re paid b",
			made: []string{`a by clerk, approved by "boss"`, `b by clerk, approved by "boss"`}, asked: 2,
		},
		"twice": {
			messages: []string{"pay a", "approve a", "approve a", "refuse a"},
			replies:  "; re paid a; not suspended; not suspended",
			made:     []string{`a by clerk, approved by "boss"`}, asked: 2,
		},
		"no such call": {
			messages: []string{"pay a", "approve a b"}, replies: "; unknown", waits: []string{"call_a"}, asked: 1,
		},
		"the same call again": {
			messages: []string{"pay a", "approve a a"}, replies: "; invalid", waits: []string{"call_a"}, asked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			var replies []string
			for _, text := range tc.messages {
				reply, err := o.hear(t, text)
				switch {
				case errors.Is(err, workspace.ErrNotSuspended):
					reply = "not suspended"
				case errors.Is(err, state.ErrUnknownCall):
					reply = "unknown"
				case errors.Is(err, workspace.ErrInvalid):
					reply = "invalid"
				default:
					require.NoError(t, err)
				}
				replies = append(replies, reply)
			}
			require.Equal(t, tc.replies, strings.Join(replies, "; "))
			require.ElementsMatch(t, tc.made, o.made)
			require.Equal(t, tc.waits, o.waits(t))
			require.Equal(t, tc.asked, o.asked)
			v := view(t, o.m, "ann")
			require.Nil(t, v.Run)
			require.Empty(t, v.DeadLetters)
		})
	}
}

// An approved call is made once, also if the run of the message fails behind it.
func TestApprovalOfARunThatFails(t *testing.T) {
	o := newOffice(t)
	_, err := o.hear(t, "pay a")
	require.NoError(t, err)
	o.fail()
	_, err = o.hear(t, "approve a")
	require.Error(t, err)
	require.Len(t, o.made, 1, "the call was committed before the model was asked")
	reply, err := o.hear(t, "hello")
	require.NoError(t, err)
	require.Equal(t, "re hello", reply)
	require.Len(t, o.made, 1)
}

// However the run of an approval ends without making the call, it waits again,
// with the same key, and the next run does not make it.
func TestApprovedCallThatIsNotMadeWaitsAgain(t *testing.T) {
	for name, test := range map[string]struct {
		committed bool
		end       func(t *testing.T, runs *heldRuns, run *heldRun)
		reason    string
	}{
		"finished":                               {true, func(t *testing.T, _ *heldRuns, run *heldRun) { run.Finish(t) }, "money for a"},
		"finished, and nothing committed before": {false, func(t *testing.T, _ *heldRuns, run *heldRun) { run.Finish(t) }, "money for a"},
		"failed": {true, func(t *testing.T, _ *heldRuns, run *heldRun) { run.Fail(t, errors.New("no good")) },
			"The call was approved before, and may have been made. money for a"},
		"failed, and nothing committed before": {false, func(t *testing.T, _ *heldRuns, run *heldRun) { run.Fail(t, errors.New("no good")) }, "money for a"},
		"interrupted": {true, func(t *testing.T, runs *heldRuns, _ *heldRun) {
			runs.Begin(t, "ann", whenBusy(workspace.BusyInterrupt, text("b"))).Finish(t)
		}, "The call was approved before, and may have been made. money for a"},
		"rolled back": {true, func(t *testing.T, runs *heldRuns, _ *heldRun) {
			runs.Begin(t, "ann", whenBusy(workspace.BusyRollback, text("b"))).Finish(t)
		}, "money for a"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			_, err := o.hear(t, "pay a")
			require.NoError(t, err)
			key := o.key(t, "a")
			_, runs := hold(t, o.db, workspace.Options{Schema: officeSchema})
			run := runs.Begin(t, "ann", workspace.Message{ID: "m", Decisions: []tool.Decision{tool.Approve(key)}, Agent: "boss"})
			require.Equal(t, []string{key}, decided(run.Message()))
			require.Empty(t, run.Suspended())
			if test.committed {
				require.NoError(t, run.Memory().Set("a", "b"))
				require.NoError(t, run.Commit(t.Context()))
				require.Empty(t, o.waits(t))
				_, err = o.m.Submit(t.Context(), "ann", workspace.Message{Decisions: []tool.Decision{tool.Approve(key)}})
				require.ErrorIs(t, err, workspace.ErrNotSuspended, "it is approved already")
			}
			test.end(t, runs, run)
			waiting := view(t, o.m, "ann").Suspended()
			require.Len(t, waiting, 1)
			require.Equal(t, key, waiting[0].Key)
			require.Equal(t, test.reason, waiting[0].Reason)
			_, err = o.hear(t, "hello")
			require.NoError(t, err)
			require.Empty(t, o.made)
			reply, err := o.hear(t, "approve a")
			require.NoError(t, err)
			require.Equal(t, "re paid a", reply)
			require.Equal(t, []string{`a by clerk, approved by "boss"`}, o.made)
		})
	}
}

// A message that was accepted counts for those that come after it.
func TestApprovalsOfMessagesThatWait(t *testing.T) {
	o := newOffice(t)
	_, err := o.hear(t, "pay a, pay b")
	require.NoError(t, err)
	_, runs := hold(t, o.db, workspace.Options{Schema: officeSchema})
	run := runs.Begin(t, "ann", text("1"))
	submit := func(msg workspace.Message) error {
		_, err := o.m.Submit(t.Context(), "ann", msg)
		return err
	}
	a, b := o.key(t, "a"), o.key(t, "b")
	require.NoError(t, submit(workspace.Message{Decisions: []tool.Decision{tool.Approve(a)}}))
	require.ErrorIs(t, submit(workspace.Message{Decisions: []tool.Decision{tool.Refuse(a, "")}}), workspace.ErrNotSuspended)
	require.ErrorIs(t, submit(workspace.Message{Decisions: []tool.Decision{tool.Approve(b), tool.Approve(a)}}), workspace.ErrNotSuspended)
	require.NoError(t, submit(workspace.Message{Decisions: []tool.Decision{tool.Refuse(b, "too dear")}, Content: state.UserText("never mind")}))
	run.Finish(t)
}

func TestDecisionsThatAreRefused(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: nothing})
	for want, msg := range map[string]workspace.Message{
		`decides twice about the call "c"`: {Decisions: []tool.Decision{tool.Approve("b"), tool.Approve("c"), tool.Refuse("c", "")}},
		"is not the key of a call":         {Decisions: []tool.Decision{tool.Approve("\xff")}},
		"more than 64":                     {Decisions: manyAnswers(65)},
		`the role "assistant"`:             {Content: state.AssistantText("hi")},
		`the role "tool_result"`:           {Content: state.ToolResult(state.ToolCall{ID: "c", Name: "f"}, "1")},
		"without content":                  {Decisions: []tool.Decision{}},
	} {
		_, err := m.Handle(t.Context(), "ann", msg)
		require.ErrorIs(t, err, workspace.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	v := view(t, m, "ann")
	require.False(t, v.Exists)
	_, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.True(t, view(t, m, "ann").Exists)
	require.NoError(t, m.Delete(t.Context(), "ann"))
	require.False(t, view(t, m, "ann").Exists)
	require.Empty(t, workspace.Message{}.Text())
	require.Equal(t, "text of 1", text("1").Text())
	require.NoError(t, m.Close())
}

// A person is shown what a call would do, and why it waits, without secrets.
func TestViewOfSuspendedCalls(t *testing.T) {
	o := newOffice(t)
	_, err := o.hear(t, "pay a")
	require.NoError(t, err)
	v := view(t, o.m, "ann")
	s := v.Suspended()[0]
	require.Equal(t, "clerk", s.Agent)
	require.Equal(t, "money for a", s.Reason)
	require.Equal(t, state.JSON(`{"to":"a"}`), s.Input)
	require.NotZero(t, s.Since)
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.Contains(t, string(data), `"suspended":[{"key":"`+s.Key+`","id":"call_a","name":"pay","input":{"to":"a"},"reason":"money for a","agent":"clerk","run_id":"`)
}

// An approved call of an agent that the program has no longer is answered as not
// made, and another agent goes on.
func TestApprovedCallOfAnAgentThatIsGone(t *testing.T) {
	o := newOffice(t)
	_, err := o.hear(t, "pay a")
	require.NoError(t, err)
	require.NoError(t, o.m.Close())
	o.m = open(t, o.db, workspace.Options{Schema: officeSchema, Run: workspace.Loop(&loop.Loop{
		Agents: map[string]loop.Agent{"boss": {Ask: func(ctx context.Context, turn *loop.Turn) error {
			msgs, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
			if err != nil {
				return err
			}
			said := state.AssistantText("re " + msgs[len(msgs)-1].Text())
			return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
		}}},
	})})
	for range 2 {
		reply, err := o.hear(t, "hello")
		require.NoError(t, err)
		require.Equal(t, "re hello", reply, "it waits")
	}
	reply, err := o.hear(t, "approve a")
	require.NoError(t, err)
	require.Equal(t, "re The call was approved and not made: there is no agent clerk any more.", reply)
	require.Empty(t, o.made)
	require.Empty(t, o.waits(t))
	require.Empty(t, transcript.Pending(state.Messages.GetOr(view(t, o.m, "ann").State(), nil)))
}
