package workspace_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

func TestStats(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		process, kill := asProcess(db)
		conflicts, unknown := 0, 0
		faulty := withFaults(process, func(writes []store.Write) (bool, error) {
			switch {
			case len(writes) == 0:
			case conflicts > 0:
				conflicts--
				return false, store.ErrConflict
			case unknown > 0:
				unknown--
				return false, store.ErrUnknownOutcome
			}
			return false, nil
		})
		opts := workspace.Options{TTL: ttl, Queue: 1, Run: func(ctx context.Context, run *workspace.Run) error {
			switch id := run.Message().ID; {
			case id == "fails":
				return errors.New("broken")
			case id == "waits", id == "dies" && run.Attempt() == 0:
				<-ctx.Done()
				return context.Cause(ctx)
			case id == "long":
				time.Sleep(2 * ttl)
			}
			return nil
		}}
		m, other := open(t, faulty, opts), open(t, db, opts)
		ctx := t.Context()
		for _, id := range []string{"done", "done", "fails", "long"} {
			_, _ = m.Handle(ctx, "ann", text(id))
		}
		submit := func(msg workspace.Message) {
			_, _ = m.Submit(ctx, "ann", msg)
			synctest.Wait()
		}
		submit(text("waits"))
		require.Equal(t, 1, m.Stats().Held)
		submit(text("queued"))
		submit(text("full"))
		submit(whenBusy(workspace.BusyReject, text("rejected")))
		submit(whenBusy(workspace.BusyInterrupt, text("interrupts")))
		require.NoError(t, m.Wait(ctx))
		conflicts = 2
		require.NoError(t, m.Update(ctx, "bob", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }))
		unknown = 100
		require.ErrorIs(t, m.Update(ctx, "bob", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }),
			store.ErrUnknownOutcome)
		unknown = 0
		require.NoError(t, m.Compact(ctx, "bob"))
		submit(text("dies"))
		kill()
		require.NoError(t, settle(ctx, other))
		time.Sleep(2 * ttl)
		got := m.Stats()
		require.Empty(t, cmp.Diff(workspace.Stats{
			Workspaces: 2, Started: 7, Done: 4, Failed: 1, Interrupted: 1, Fenced: 1, DeadLetters: 1,
			Queued: 1, Rejected: 2, Duplicates: 1, Commits: 5, Conflicts: 2, UnknownOutcomes: 1, Compactions: 1,
		}, got, cmpopts.IgnoreFields(workspace.Stats{}, "Heartbeats", "LateHeartbeats", "BytesWritten")))
		require.GreaterOrEqual(t, got.Heartbeats, int64(5))
		require.Greater(t, got.BytesWritten, int64(1000))
		require.Empty(t, cmp.Diff(workspace.Stats{Workspaces: 1, Started: 1, Done: 1, TakenOver: 1, Commits: 1},
			other.Stats(), cmpopts.IgnoreFields(workspace.Stats{}, "BytesWritten")))
	})
}

// A Manager without Tracer and Logger allocates no more than one whose Logger
// is off, and less than one with a Tracer: what is observed is prepared only for
// those that look.
func TestObservationIsFree(t *testing.T) {
	allocations := func(opts workspace.Options) float64 {
		opts.Messages, opts.Results = 5, 5
		m := open(t, store.NewMemory(), opts)
		run, _, err := m.Begin(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		least := 1e9 // other goroutines allocate too
		for range 5 {
			least = min(least, testing.AllocsPerRun(100, func() {
				if err := visits.Set(run.State(), 1); err != nil {
					panic(err)
				}
				if err := run.Commit(run.Context()); err != nil {
					panic(err)
				}
			}))
		}
		return least
	}
	free := allocations(workspace.Options{})
	off := allocations(workspace.Options{Logger: slog.New(slog.DiscardHandler)})
	traced := allocations(workspace.Options{Tracer: quietTracer{}})
	t.Logf("%v allocations a commit, %v with a Logger that is off, %v with a Tracer", free, off, traced)
	require.Less(t, free, off)
	require.Less(t, free, traced)
}

// quietTracer does nothing.
type quietTracer struct{}

func (quietTracer) Start(ctx context.Context, _ workspace.Operation) context.Context { return ctx }
func (quietTracer) End(context.Context, workspace.Operation)                         {}
func (quietTracer) Inject(context.Context) string                                    { return "" }
