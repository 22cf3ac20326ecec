package workspacetest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

func (s *suite) Takeover(t *testing.T) {
	for name, how := range map[string]workspace.Takeover{"resume": workspace.TakeoverResume, "restart": workspace.TakeoverRestart} {
		t.Run(name, func(t *testing.T) {
			s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
				process, kill := AsProcess(db)
				crashed, runs := Hold(t, process, workspace.Options{TTL: ttl})
				run := runs.Begin(t, "ann", Text("1"))
				require.NoError(t, Notes.Set(run.State(), []string{"first"}))
				call := state.ToolCalls(state.ToolCall{ID: "c", Name: "search", Input: "{}"})
				require.NoError(t, state.Messages.Set(run.State(), []state.Message{call}))
				require.NoError(t, run.Commit(t.Context()))
				out, err := crashed.Submit(t.Context(), "ann", Text("2"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusQueued, out.Status)
				time.Sleep(3 * ttl)
				require.NoError(t, run.Context().Err(), "its lease is renewed")
				kill()
				_ = crashed.Close()
				require.Error(t, run.Context().Err())

				var seen []string
				m := Open(t, db, workspace.Options{TTL: ttl, Takeover: how, Run: func(ctx context.Context, r *workspace.Run) error {
					if r.Message().ID == "1" {
						require.Equal(t, 1, r.Attempt())
						require.Equal(t, run.ID(), r.ID())
					}
					msgs := state.Messages.GetOr(r.State(), nil)
					if r.Message().ID == "1" {
						require.Len(t, transcript.Pending(msgs), len(msgs)-1, "calls stay open")
					}
					seen = append(seen, fmt.Sprint(r.Message().ID, Notes.GetOr(r.State(), nil), len(msgs)))
					return Notes.Set(r.State(), []string{"again"})
				}})
				began := time.Now()
				require.NoError(t, Settle(t.Context(), m))
				RequireAbout(t, ttl, 3*ttl/2, time.Since(began))
				require.NoError(t, m.Wait(t.Context()))
				if how == workspace.TakeoverResume {
					require.Equal(t, []string{"1[first] 2", "2[first again] 4"}, seen) // with the result that closes the call
				} else {
					require.Equal(t, []string{"1[] 1", "2[again] 2"}, seen)
				}
				require.NoError(t, Notes.Set(run.State(), []string{"late"}))
				require.Error(t, run.Commit(t.Context()))
				v := View(t, m, "ann")
				require.NotContains(t, Notes.GetOr(v.State(), nil), "late")
			})
		})
	}
}

// Of several who observe a dead holder, one ends it. The others do not take that
// for a heartbeat.
func (s *suite) ObserversAtOnce(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		process, kill := AsProcess(db)
		_, runs := Hold(t, process, workspace.Options{TTL: ttl})
		runs.Begin(t, "ann", Text("1"))
		kill()
		var others atomic.Int32
		m := Open(t, WithFaults(db, func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if w.Delete && strings.HasPrefix(w.Key, "agent:holder:") && others.Add(1) == 1 {
					require.NoError(t, store.Delete(context.Background(), db, w.Key, store.Always))
				}
			}
			return false, nil
		}), workspace.Options{TTL: ttl, Run: Visit})
		require.NoError(t, Settle(t.Context(), m))
		require.Positive(t, others.Load())
		require.NoError(t, m.Wait(t.Context()))
		v := View(t, m, "ann")
		require.Nil(t, v.Run)
		require.Equal(t, 1, Visits.GetOr(v.State(), 0))
	})
}
