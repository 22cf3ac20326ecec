package workspace_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// What a person has seen of an answer stays when they stop it, and so does what they
// have said themselves.
func TestStoppedIsNotLost(t *testing.T) {
	cancel := func(t *testing.T, m *workspace.Manager, runID string) {
		require.NoError(t, m.Cancel(t.Context(), "ann", runID, "enough"))
	}
	by := func(busy workspace.WhenBusy) func(t *testing.T, m *workspace.Manager, _ string) {
		return func(t *testing.T, m *workspace.Manager, _ string) {
			out, err := m.Handle(t.Context(), "ann", workspace.Message{ID: "2", Content: state.UserText("wait"), WhenBusy: busy})
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDone, out.Status)
		}
	}
	const secret = "sk-live-99887766"
	key := &state.Field[string]{Name: "key", Secret: true}
	for name, row := range map[string]struct {
		said       []string // the pieces that are shown
		first      bool     // the run has committed an answer with a call before
		elsewhere  bool     // it is stopped by another process
		live       bool
		stop       func(*testing.T, *workspace.Manager, string)
		want, kept []string // the messages, and the answers that were interrupted
	}{
		"cancelled":                  {said: []string{"Your or", "der \n"}, stop: cancel, want: []string{"user: where?", "assistant: Your order"}, kept: []string{"Your order"}},
		"cancelled before it spoke":  {stop: cancel, want: []string{"user: where?"}},
		"nothing but space":          {said: []string{" \n"}, stop: cancel, want: []string{"user: where?"}},
		"a secret is masked":         {said: []string{"The key is ", secret, "."}, stop: cancel, want: []string{"user: where?", "assistant: The key is [SECRET]."}, kept: []string{"The key is [SECRET]."}},
		"half a secret is held back": {said: []string{"The key is ", secret[:8]}, stop: cancel, want: []string{"user: where?", "assistant: The key is"}, kept: []string{"The key is"}},
		"behind a result": {
			said: []string{"It came"}, first: true, stop: cancel,
			want: []string{"user: where?", "assistant: ", "tool_result: seen", "assistant: It came"}, kept: []string{"It came"},
		},
		"interrupted": {said: []string{"Your"}, stop: by(workspace.BusyInterrupt), want: []string{"user: where?", "assistant: Your", "user: wait", "assistant: waiting"}, kept: []string{"Your"}},
		"rolled back": {said: []string{"Your"}, stop: by(workspace.BusyRollback), want: []string{"user: wait", "assistant: waiting"}},
		"cancelled by another process": {
			said: []string{"Your order"}, elsewhere: true, stop: cancel, want: []string{"user: where?"},
		},
		"cancelled by another process, with Live": {
			said: []string{"Your order"}, elsewhere: true, live: true, stop: cancel, want: []string{"user: where?", "assistant: Your order"}, kept: []string{"Your order"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClerk()
				c.look <- struct{}{}
				spoken := make(chan struct{})
				one := c.loop()
				agent := one.Agents["clerk"]
				ask := agent.Ask
				agent.Ask = func(ctx context.Context, turn *loop.Turn) error {
					msgs := state.Messages.GetOr(turn.State(), nil)
					switch last := msgs[len(msgs)-1].Text(); {
					case row.first && c.asked == 0:
						return ask(ctx, turn)
					case last == "wait":
						return turn.Said(ctx, state.InferenceResult{Stop: state.StopEnd, Output: []state.Message{state.AssistantText("waiting")}})
					}
					run, _ := workspace.FromContext(ctx)
					for _, piece := range row.said {
						run.Emit(piece)
					}
					close(spoken)
					<-ctx.Done()
					run.Emit(" and more")
					return context.Cause(ctx)
				}
				one.Agents["clerk"] = agent
				db := store.NewMemory()
				opts := workspace.Options{Run: workspace.Loop(one), Schema: state.MustSchema(key), Live: row.live}
				m := open(t, db, opts)
				update(t, m, func(w *workspace.Workspace) error { return key.Set(w.State(), secret) })
				out, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("where?")})
				require.NoError(t, err)
				<-spoken
				time.Sleep(time.Second) // Live is stored
				who := m
				if row.elsewhere {
					who = open(t, db, opts)
				}
				row.stop(t, who, out.RunID)
				v := view(t, who, "ann")
				var got []string
				for _, msg := range state.Messages.GetOr(v.State(), nil) {
					got = append(got, msg.Role()+": "+msg.Text())
				}
				require.Equal(t, row.want, got)
				var kept []string
				for _, r := range v.State().History().Results() {
					if r.Stop == state.StopInterrupted {
						kept = append(kept, r.Output[0].Text())
					}
				}
				require.Equal(t, row.kept, kept)
			})
		})
	}
}

// What a model says while somebody tries in vain to stop it is told in the end.
func TestTheTextGoesOnBehindACancelThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		var running atomic.Pointer[workspace.Run]
		var once sync.Once
		spoken, more := make(chan struct{}), make(chan struct{})
		db := withFaults(store.NewMemory(), func([]store.Write) (bool, error) {
			if broken.Load() {
				once.Do(func() { running.Load().Emit("der, ") })
				return false, store.ErrRefused
			}
			return false, nil
		})
		m := open(t, db, workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			running.Store(run)
			run.Emit("Your or")
			close(spoken)
			<-more
			run.Emit("and more")
			return nil
		}})
		var told strings.Builder
		go func() {
			for e, err := range m.Watch(t.Context(), "ann").AsHost() {
				if err != nil {
					return
				}
				told.WriteString(e.Delta)
			}
		}()
		synctest.Wait()
		out, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("where?")})
		require.NoError(t, err)
		<-spoken
		broken.Store(true)
		require.ErrorIs(t, m.Cancel(t.Context(), "ann", out.RunID, "enough"), store.ErrRefused)
		broken.Store(false)
		close(more)
		_, err = m.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, "Your order, and more", told.String())
	})
}

// Handle says of a message whose run others have ended what Await says.
func TestHandleOfARunThatOthersEnd(t *testing.T) {
	for name, end := range map[string]func(m *workspace.Manager, runID string) error{
		"cancelled": func(m *workspace.Manager, runID string) error { return m.Cancel(t.Context(), "ann", runID, "enough") },
		"interrupted": func(m *workspace.Manager, _ string) error {
			_, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "2", Content: state.UserText("wait"), WhenBusy: workspace.BusyInterrupt})
			return err
		},
		"reset": func(m *workspace.Manager, _ string) error {
			_, err := m.Reset(t.Context(), "ann")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var m *workspace.Manager
			m = open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
				if run.Message().ID == "2" {
					return nil
				}
				require.NoError(t, end(m, run.ID()))
				<-ctx.Done()
				return context.Cause(ctx)
			}})
			out, err := m.Handle(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("where?")})
			require.ErrorIs(t, err, workspace.ErrRunFailed)
			require.ErrorIs(t, err, workspace.ErrFenced)
			require.ErrorIs(t, err, workspace.ErrInterrupted)
			require.Equal(t, name == "cancelled", errors.Is(err, workspace.ErrRunCancelled))
			waited, err := m.Await(t.Context(), "ann", "1")
			require.NoError(t, err)
			require.Equal(t, workspace.StatusFailed, out.Status)
			require.NotEmpty(t, out.Reason)
			require.Equal(t, waited, out)
		})
	}
}
