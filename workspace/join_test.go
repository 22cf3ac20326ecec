package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// clerk is a loop whose model calls look once and then says what it has read.
type clerk struct {
	looking chan struct{} // receives when look is called
	look    chan struct{} // look returns when it can receive
	asked   int
	read    []string // the texts of the last prompt
}

func newClerk() *clerk { return &clerk{looking: make(chan struct{}, 9), look: make(chan struct{}, 9)} }

func (c *clerk) loop() *loop.Loop {
	look := tool.Must(tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) {
		c.looking <- struct{}{}
		<-c.look
		return "seen", nil
	}))
	return &loop.Loop{Agents: map[string]loop.Agent{"clerk": {Tools: []*tool.Tool{look}, Ask: func(ctx context.Context, t *loop.Turn) error {
		c.asked++
		msgs := state.Messages.GetOr(t.State(), nil)
		c.read = nil
		for _, m := range msgs {
			c.read = append(c.read, m.Role()+": "+m.Text())
		}
		if c.asked == 1 {
			return t.Said(ctx, state.InferenceResult{Stop: state.StopCalls, Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "look", Input: "{}"})}})
		}
		return t.Said(ctx, state.InferenceResult{Stop: state.StopEnd, Output: []state.Message{state.AssistantText("done")}})
	}}}}
}

func TestAMessageJoinsTheRun(t *testing.T) {
	db := store.NewMemory()
	c := newClerk()
	m := open(t, db, workspace.Options{Run: workspace.Loop(c.loop()), TTL: time.Second})
	ctx := t.Context()
	first, err := m.Submit(ctx, "ann", workspace.Message{ID: "1", Content: state.UserText("look")})
	require.NoError(t, err)
	require.Equal(t, workspace.StatusStarted, first.Status)
	<-c.looking
	out, err := m.Submit(ctx, "ann", workspace.Message{ID: "2", Content: state.UserText("and hurry"), WhenBusy: workspace.BusyJoin})
	require.NoError(t, err)
	require.Equal(t, workspace.StatusQueued, out.Status)
	c.look <- struct{}{}
	for _, id := range []string{"1", "2"} {
		out, err := m.Await(ctx, "ann", id)
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.Equal(t, "done", out.Reply)
		require.Equal(t, first.RunID, out.RunID)
	}
	require.Equal(t, 2, c.asked)
	require.Equal(t, []string{"user: look", "assistant: ", "tool_result: seen", "user: and hurry"}, c.read)
}

// A message that has joined a run ends with it, or is handled by a run of its own.
func TestAJoinedMessageEndsAsItsRun(t *testing.T) {
	type ended struct {
		status workspace.Status
		reply  string
	}
	for name, row := range map[string]struct {
		opts   workspace.Options
		ending func(t *testing.T, m *workspace.Manager, runID string) // behind the results
		answer func(ctx context.Context, t *loop.Turn) error          // of the model that reads the message
		want   map[string]ended
		asked  []string // the last text of each request
	}{
		"cancelled": {
			ending: func(t *testing.T, m *workspace.Manager, runID string) {
				require.NoError(t, m.Cancel(t.Context(), "ann", runID, "enough"))
			},
			want:  map[string]ended{"1": {workspace.StatusFailed, ""}, "2": {workspace.StatusFailed, ""}},
			asked: []string{"look", "and hurry"},
		},
		"interrupted": {
			ending: func(t *testing.T, m *workspace.Manager, _ string) {
				_, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "3", Content: state.UserText("no"), WhenBusy: workspace.BusyInterrupt})
				require.NoError(t, err)
			},
			want:  map[string]ended{"1": {workspace.StatusFailed, ""}, "2": {workspace.StatusFailed, ""}, "3": {workspace.StatusDone, "no?"}},
			asked: []string{"look", "and hurry", "no"},
		},
		"rolled back": {
			ending: func(t *testing.T, m *workspace.Manager, _ string) {
				_, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "3", Content: state.UserText("no"), WhenBusy: workspace.BusyRollback})
				require.NoError(t, err)
			},
			want:  map[string]ended{"1": {workspace.StatusFailed, ""}, "2": {workspace.StatusDone, "and hurry?"}, "3": {workspace.StatusDone, "no?"}},
			asked: []string{"look", "and hurry", "no", "and hurry"},
		},
		"failed": {
			answer: func(context.Context, *loop.Turn) error { return errors.New("no connection to the model at all") },
			want:   map[string]ended{"1": {workspace.StatusFailed, ""}, "2": {workspace.StatusDone, "and hurry?"}},
			asked:  []string{"look", "and hurry", "and hurry"},
		},
		"reset": {
			ending: func(t *testing.T, m *workspace.Manager, _ string) {
				_, err := m.Reset(t.Context(), "ann")
				require.NoError(t, err)
			},
			want:  map[string]ended{"1": {workspace.StatusFailed, ""}, "2": {workspace.StatusFailed, ""}},
			asked: []string{"look", "and hurry"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			looking, look := make(chan struct{}), make(chan struct{})
			tools := []*tool.Tool{tool.Must(tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) {
				looking <- struct{}{}
				<-look
				return "seen", nil
			}))}
			var mu sync.Mutex
			var asked []string
			reading, read := make(chan struct{}), make(chan struct{})
			ask := func(ctx context.Context, turn *loop.Turn) error {
				msgs := state.Messages.GetOr(turn.State(), nil)
				last := msgs[len(msgs)-1].Text()
				mu.Lock()
				asked = append(asked, last)
				n := len(asked)
				mu.Unlock()
				switch {
				case n == 1:
					return turn.Said(ctx, state.InferenceResult{Stop: state.StopCalls, Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "look", Input: "{}"})}})
				case n == 2 && row.answer != nil:
					return row.answer(ctx, turn)
				case n == 2:
					close(reading)
					select {
					case <-read:
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
				return turn.Said(ctx, state.InferenceResult{Stop: state.StopEnd, Output: []state.Message{state.AssistantText(last + "?")}})
			}
			m := open(t, store.NewMemory(), workspace.Options{Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: ask, Tools: tools}}})})
			first, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("look")})
			require.NoError(t, err)
			<-looking
			_, err = m.Submit(t.Context(), "ann", workspace.Message{ID: "2", Content: state.UserText("and hurry"), WhenBusy: workspace.BusyJoin})
			require.NoError(t, err)
			look <- struct{}{}
			if row.ending != nil {
				<-reading
				v := view(t, m, "ann")
				require.Equal(t, []string{"2"}, v.Run.Joined)
				require.Empty(t, v.Queue)
				dup, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "2", Content: state.UserText("and hurry"), WhenBusy: workspace.BusyJoin})
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDuplicate, dup.Status)
				require.Equal(t, workspace.StatusStarted, dup.First)
				row.ending(t, m, first.RunID)
			}
			for id, want := range row.want {
				out, err := m.Await(t.Context(), "ann", id)
				require.NoError(t, err, id)
				require.Equal(t, want, ended{out.Status, out.Reply}, id)
			}
			require.NoError(t, m.Wait(t.Context()))
			require.Equal(t, row.asked, asked)
			require.Empty(t, view(t, m, "ann").Queue)
		})
	}
}

// A message joins only if it does nothing but to say something, from the front of the
// queue, and a Loop that can take it in. Otherwise it waits.
func TestAMessageThatCannotJoinWaits(t *testing.T) {
	said := func(id string) workspace.Message {
		return workspace.Message{ID: id, Content: state.UserText("more"), WhenBusy: workspace.BusyJoin}
	}
	fields, agent, tools, behind := said("2"), said("2"), said("2"), said("2")
	fields.Fields = map[string]state.JSON{"notes": `["a"]`}
	agent.Agent = "clerk"
	tools.Tools = []workspace.ClientTool{{Name: "show", Description: "Shows.", Schema: state.JSON(`{"type":"object"}`)}}
	for name, row := range map[string]struct {
		opts workspace.Options
		sent []workspace.Message
		stop bool // the tool suspends
	}{
		"with fields":           {sent: []workspace.Message{fields}},
		"with an agent":         {sent: []workspace.Message{agent}},
		"with tools":            {sent: []workspace.Message{tools}},
		"behind one that waits": {sent: []workspace.Message{{ID: "1a", Content: state.UserText("first")}, behind}},
		"a call waits":          {sent: []workspace.Message{behind}, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			looking, look := make(chan struct{}), make(chan struct{})
			tools := []*tool.Tool{tool.Must(tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) {
				looking <- struct{}{}
				<-look
				if row.stop {
					return "", tool.Suspend(errors.New("ann must agree"))
				}
				return "seen", nil
			}))}
			ask := func(ctx context.Context, turn *loop.Turn) error {
				msgs := state.Messages.GetOr(turn.State(), nil)
				if len(msgs) == 1 {
					return turn.Said(ctx, state.InferenceResult{Stop: state.StopCalls, Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "look", Input: "{}"})}})
				}
				return turn.Said(ctx, state.InferenceResult{Stop: state.StopEnd, Output: []state.Message{state.AssistantText(msgs[len(msgs)-1].Text() + "?")}})
			}
			m := open(t, store.NewMemory(), workspace.Options{
				Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: ask, Tools: tools}}}),
			})
			first, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("look")})
			require.NoError(t, err)
			<-looking
			for _, msg := range row.sent {
				out, err := m.Submit(t.Context(), "ann", msg)
				require.NoError(t, err)
				require.Equal(t, workspace.StatusQueued, out.Status)
			}
			look <- struct{}{}
			out, err := m.Await(t.Context(), "ann", "2")
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDone, out.Status)
			require.Equal(t, "more?", out.Reply)
			require.NotEqual(t, first.RunID, out.RunID)
		})
	}
}

// Messages that several processes have accepted join in their order, and another
// process goes on with them where the first has died.
func TestMessagesJoinOnceWhenTheProcessDies(t *testing.T) {
	for name, takeover := range map[string]workspace.Takeover{"resume": workspace.TakeoverResume, "restart": workspace.TakeoverRestart} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			looking, dead := make(chan struct{}), make(chan struct{})
			var mu sync.Mutex
			var prompts []string
			run := func(dies bool) func(context.Context, *workspace.Run) error {
				look := tool.Must(tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) {
					if dies {
						looking <- struct{}{}
						<-looking
					}
					return "seen", nil
				}))
				return workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"clerk": {Tools: []*tool.Tool{look}, Ask: func(ctx context.Context, turn *loop.Turn) error {
					var texts []string
					for _, m := range state.Messages.GetOr(turn.State(), nil) {
						texts = append(texts, m.Text())
					}
					mu.Lock()
					prompts = append(prompts, strings.Join(texts, "|"))
					mu.Unlock()
					if len(texts) == 1 {
						return turn.Said(ctx, state.InferenceResult{Stop: state.StopCalls, Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "look", Input: "{}"})}})
					}
					if dies {
						close(dead)
						<-ctx.Done()
						return context.Cause(ctx)
					}
					return turn.Said(ctx, state.InferenceResult{Stop: state.StopEnd, Output: []state.Message{state.AssistantText("done")}})
				}}}})
			}
			a := open(t, db, workspace.Options{Run: run(true), TTL: time.Second, Takeover: takeover})
			b := open(t, db, workspace.Options{Run: run(false), TTL: time.Second, Takeover: takeover})
			_, err := a.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("look")})
			require.NoError(t, err)
			<-looking
			for i, m := range []*workspace.Manager{b, a, b} {
				out, err := m.Submit(t.Context(), "ann", workspace.Message{ID: fmt.Sprint(i + 2), Content: state.UserText(fmt.Sprint("more", i)), WhenBusy: workspace.BusyJoin})
				require.NoError(t, err)
				require.Equal(t, workspace.StatusQueued, out.Status)
			}
			looking <- struct{}{}
			<-dead
			require.Error(t, a.Close())
			for _, id := range []string{"1", "2", "3", "4"} {
				out, err := b.Await(t.Context(), "ann", id)
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status, id)
				require.Equal(t, "done", out.Reply)
			}
			all := "look||seen|more0|more1|more2"
			want := []string{"look", all, all}
			if takeover == workspace.TakeoverRestart {
				want = []string{"look", all, "look", all}
			}
			require.Equal(t, want, prompts)
		})
	}
}
