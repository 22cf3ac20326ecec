package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

var errOverloaded = errors.New("model is overloaded")

// A run that asks for another attempt keeps its lease and its committed changes.
func TestRetryAfter(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var ids []string
		var seen [][]string
		var first *workspace.Run
		var starts, completes int
		m := open(t, db, workspace.Options{
			TTL: ttl,
			Run: func(ctx context.Context, run *workspace.Run) error {
				ids = append(ids, fmt.Sprint(run.ID(), run.Attempt()))
				seen = append(seen, notes.GetOr(run.State(), nil))
				if err := notes.Set(run.State(), []string{fmt.Sprint("committed ", run.Attempt())}); err != nil {
					return err
				}
				if err := run.Commit(ctx); err != nil {
					return err
				}
				if run.Attempt() == 2 {
					require.ErrorIs(t, first.Commit(ctx), workspace.ErrRunEnded)
					require.ErrorIs(t, first.Memory().Set("a", "b"), workspace.ErrRunEnded)
					run.SetReply("at last")
					return nil
				}
				first = run
				if err := notes.Set(run.State(), []string{"not committed"}); err != nil {
					return err
				}
				return fmt.Errorf("answer: %w", workspace.RetryAfter(errOverloaded, 5*ttl))
			},
			Hooks: workspace.Hooks{
				OnRunStart:    func(context.Context, *workspace.Run) { starts++ },
				OnRunComplete: func(_ context.Context, _ *workspace.Run, err error) { require.NoError(t, err); completes++ },
			},
		})
		began, other := time.Now(), open(t, db, workspace.Options{TTL: ttl, Run: fails(t)})
		done := make(chan workspace.Outcome, 1)
		go func() {
			out, err := m.Handle(t.Context(), "ann", text("1"))
			require.NoError(t, err)
			done <- out
		}()
		time.Sleep(ttl / 10)
		out, err := other.Submit(t.Context(), "bob", whenBusy(workspace.BusyReject, text("1")))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusStarted, out.Status)
		out, err = other.Submit(t.Context(), "ann", whenBusy(workspace.BusyReject, text("2")))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusRejected, out.Status, "WhenBusy applies meanwhile")
		require.NoError(t, settle(t.Context(), other))
		require.Equal(t, "at last", (<-done).Reply)
		requireAbout(t, ttl, 10*ttl, time.Since(began))
		id := ids[0][:len(ids[0])-1]
		require.Equal(t, []string{id + "0", id + "1", id + "2"}, ids)
		require.Equal(t, [][]string{nil, {"committed 0"}, {"committed 0", "committed 1"}}, seen)
		v := view(t, m, "ann")
		require.Equal(t, []string{"committed 0", "committed 1", "committed 2"}, notes.GetOr(v.State(), nil))
		require.Len(t, state.Messages.GetOr(v.State(), nil), 1)
		require.Equal(t, []int{3, 1}, []int{starts, completes})
	})
}

// fails returns an Options.Run that must be called for bob only.
func fails(t testing.TB) func(context.Context, *workspace.Run) error {
	return func(_ context.Context, run *workspace.Run) error {
		require.Equal(t, "bob", run.UserID())
		return nil
	}
}

// After Options.Attempts the run fails with the error.
func TestRetryAfterAttempts(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		calls := 0
		m := open(t, db, workspace.Options{TTL: ttl, Attempts: 2, Run: func(context.Context, *workspace.Run) error {
			calls++
			return workspace.RetryAfter(errOverloaded, 12*ttl)
		}})
		began := time.Now()
		out, err := m.Handle(t.Context(), "ann", text("1"))
		require.ErrorIs(t, err, errOverloaded)
		require.Equal(t, workspace.StatusFailed, out.Status)
		require.Equal(t, 2, calls)
		requireAbout(t, ttl, 12*ttl, time.Since(began))
		dead := view(t, m, "ann").DeadLetters
		require.Len(t, dead, 1)
		require.Equal(t, "model is overloaded", dead[0].Reason)
		require.Equal(t, 2, dead[0].Attempts)
	})
	require.NoError(t, workspace.RetryAfter(nil, time.Second))
}

// Whatever ends a run ends the wait for its next attempt.
func TestEndOfTheWaitForAnAttempt(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(t testing.TB, m *workspace.Manager, kill func())
		want []string // calls of the second Manager
		wait float64  // in TTLs
	}{
		"interrupt": {
			end: func(t testing.TB, m *workspace.Manager, _ func()) {
				_, err := m.Submit(t.Context(), "ann", whenBusy(workspace.BusyInterrupt, text("2")))
				require.NoError(t, err)
			},
		},
		"Close": {
			end:  func(_ testing.TB, m *workspace.Manager, _ func()) { _ = m.Close() },
			want: []string{"1 attempt 0"},
		},
		"Shutdown": {
			end:  func(t testing.TB, m *workspace.Manager, _ func()) { require.NoError(t, m.Shutdown(t.Context())) },
			want: []string{"1 attempt 0"},
		},
		"the process dies": {
			end:  func(_ testing.TB, m *workspace.Manager, kill func()) { kill(); _ = m.Close() },
			want: []string{"1 attempt 1"},
			wait: 1.5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				w := &whichRun{}
				process, kill := asProcess(db)
				var calls atomic.Int32
				m := open(t, process, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
					if run.Message().ID != "1" {
						return nil
					}
					calls.Add(1)
					return workspace.RetryAfter(errOverloaded, 5*ttl)
				}})
				_, err := m.Submit(t.Context(), "ann", text("1"))
				require.NoError(t, err)
				time.Sleep(ttl / 10)
				test.end(t, m, kill)
				require.NoError(t, m.Wait(t.Context()))
				other := open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
					w.Called(run)
					return nil
				}})
				began := time.Now()
				require.NoError(t, settle(t.Context(), other))
				requireAbout(t, ttl, inTTLs(test.wait, ttl), time.Since(began))
				require.Equal(t, test.want, w.Calls)
				require.EqualValues(t, 1, calls.Load())
				require.Nil(t, view(t, other, "ann").Run)
			})
		})
	}
}
