package workspace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// eventsOf returns the events of a user's messages, with their replies, up to
// now.
func eventsOf(ctx context.Context, m *workspace.Manager, user string) func() []string {
	var list []string
	go func() {
		for e := range m.Watch(ctx, user).AsHost() {
			if e.Kind != workspace.EventSummary {
				list = append(list, string(e.Kind)+" "+e.MessageID+" "+e.Reply)
			}
		}
	}()
	synctest.Wait()
	return func() []string {
		synctest.Wait()
		return list
	}
}

// A reply that is set when the run has ended is not that of the message, and no
// event tells of it.
func TestReplyAfterTheEnd(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		m := open(t, db, workspace.Options{
			TTL: ttl,
			Run: func(_ context.Context, run *workspace.Run) error {
				run.SetReply("in time")
				go func() {
					time.Sleep(ttl / 2)
					run.SetReply("late")
				}()
				return nil
			},
			Hooks: workspace.Hooks{OnRunComplete: func(_ context.Context, run *workspace.Run, _ error) { run.SetReply("hook") }},
		})
		events := eventsOf(t.Context(), m, "ann")
		for _, want := range []workspace.Status{workspace.StatusDone, workspace.StatusDuplicate} {
			out, err := m.Handle(t.Context(), "ann", text("1"))
			require.NoError(t, err)
			require.Equal(t, want, out.Status)
			require.Equal(t, "in time", out.Reply)
		}
		time.Sleep(ttl)
		require.Equal(t, []string{"started 1 ", "reply 1 in time", "ended 1 in time"}, events())
		require.NoError(t, m.Close())
	})
}

// A function that has not noticed the end of its run causes no events.
func TestNoEventsAfterTheEnd(t *testing.T) {
	for name, elsewhere := range map[string]bool{"here": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				db = withFaults(db, func([]store.Write) (bool, error) { return false, nil }) // reports no changes
				m := open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
					time.Sleep(ttl / 20) // the heartbeat comes later
					for range 10 {
						_ = visits.Set(run.State(), 1)
						run.SetReply("late")
						time.Sleep(ttl / 100)
					}
					<-ctx.Done()
					return ctx.Err()
				}})
				events := eventsOf(t.Context(), m, "ann")
				out, err := m.Submit(t.Context(), "ann", text("1"))
				require.NoError(t, err)
				synctest.Wait()
				other := m
				if elsewhere {
					other = open(t, db, workspace.Options{TTL: ttl})
				}
				require.NoError(t, other.Cancel(t.Context(), "ann", out.RunID, ""))
				time.Sleep(2 * ttl)
				list := events()
				require.Equal(t, "ended 1 ", list[len(list)-1])
				require.NoError(t, m.Close())
			})
		})
	}
}
