package workspace_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// said appends a result to the history, as a call of a model does.
func said(t *testing.T, run *workspace.Run, raw string) {
	t.Helper()
	require.NoError(t, run.State().History().Append(state.InferenceResult{
		Output: []state.Message{state.AssistantText(raw)}, Raw: raw,
	}))
}

// A Tracer is told of exactly these operations, with these parents and links.
func TestTracer(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var first, second recorder
		process, kill := asProcess(db)
		desk := func(ctx context.Context, run *workspace.Run) error {
			switch id := run.Message().ID; {
			case id == "1":
				said(t, run, "a")
				require.NoError(t, run.Commit(ctx))
				said(t, run, "b")
				time.Sleep(ttl / 10) // while 2 is queued
			case id == "3", id == "5", id == "8" && run.Attempt() == 0:
				require.NoError(t, visits.Set(run.State(), 1))
				require.NoError(t, run.Commit(ctx))
				<-ctx.Done() // it is interrupted, cancelled or dies
				return context.Cause(ctx)
			case id == "6":
				said(t, run, "c")
				return errors.New("broken")
			case id == "7" && run.Attempt() == 0:
				said(t, run, "d")
				return workspace.RetryAfter(errors.New("busy"), time.Millisecond)
			}
			return nil
		}
		m := open(t, process, workspace.Options{TTL: ttl, Run: desk, Tracer: &first, KeepMessages: 5})
		submit := func(msg workspace.Message) {
			t.Helper()
			_, err := m.Submit(t.Context(), "ann", msg)
			require.NoError(t, err)
			synctest.Wait()
		}
		submit(text("0"))
		go func() { _, _ = m.Handle(t.Context(), "ann", text("1")) }()
		synctest.Wait()
		submit(text("2"))
		submit(whenBusy(workspace.BusyReject, text("rejected")))
		require.NoError(t, m.Wait(t.Context()))
		submit(text("2")) // a duplicate
		submit(text("3"))
		submit(whenBusy(workspace.BusyInterrupt, text("4")))
		submit(text("5"))
		v, err := m.View(t.Context(), "ann")
		require.NoError(t, err)
		require.NoError(t, m.Cancel(t.Context(), "ann", v.Run.ID, ""))
		synctest.Wait()
		for _, id := range []string{"6", "7"} {
			_, err = m.Handle(t.Context(), "ann", text(id))
			require.Equal(t, id == "6", err != nil)
		}
		require.NoError(t, m.Retry(t.Context(), "ann", "6"))
		require.NoError(t, m.Wait(t.Context()))
		require.NoError(t, m.Discard(t.Context(), "ann", "6"))
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }))
		require.NoError(t, m.Do(t.Context(), "ann", func(_ context.Context, run *workspace.Run) error {
			return visits.Set(run.State(), 1)
		}))
		message := text("8")
		message.Trace = "the sender's"
		submit(message)
		submit(workspace.Message{ID: "9", Content: text("9").Content, Trace: strings.Repeat("x", 1025)})
		kill()

		other := open(t, db, workspace.Options{TTL: ttl, Run: desk, Tracer: &second})
		require.NoError(t, settle(t.Context(), other))
		require.NoError(t, other.Compact(t.Context(), "ann"))
		_, err = other.Reset(t.Context(), "ann")
		require.NoError(t, err)
		_, err = other.Verify(t.Context(), "ann")
		require.NoError(t, err)
		for range other.Records(t.Context(), "ann", 0) {
		}
		require.NoError(t, other.Delete(t.Context(), "ann"))
		_ = m.Close()
		require.NoError(t, other.Close())
		require.Empty(t, first.unended())
		require.Empty(t, second.unended())
		require.EqualValues(t, 1, other.Stats().Compactions)
		all := []work.OpKind{
			work.OpHandle, work.OpRun, work.OpCommit, work.OpTakeover, work.OpCompact,
			work.OpUpdate, work.OpReset, work.OpDelete, work.OpCancel,
			work.OpRetry, work.OpDiscard, work.OpView, work.OpRecords, work.OpVerify,
			work.OpHeartbeat,
		}
		requireText(t, firstTrace, first.tree(all...))
		requireText(t, secondTrace, second.tree(all...))
	})
}

// requireText requires equal lines.
func requireText(t *testing.T, want, got string) {
	t.Helper()
	assert.Empty(t, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")), "got:\n%s", got)
}

const firstTrace = `handle ann/0 started
run ann/0 finished v1 links=["handle ann/0"]
  commit ann/0 v1 effects
handle ann/1 done
  run ann/1 finished v3
    commit ann/1 v2 effects results=[a]
    commit ann/1 v3 effects results=[b]
handle ann/2 queued
handle ann/rejected rejected
run ann/2 finished v4 links=["handle ann/2"]
  commit ann/2 v4 effects
handle ann/2 duplicate
handle ann/3 started
run ann/3 interrupted v5 links=["handle ann/3"] err=interrupted
  commit ann/3 v5 effects
handle ann/4 started
run ann/4 finished v7 links=["handle ann/4"]
  commit ann/4 v7 effects
handle ann/5 started
run ann/5 cancelled v8 links=["handle ann/5"] err=cancelled
  commit ann/5 v8 effects
view ann v8
cancel ann
handle ann/6 failed err=other
  run ann/6 failed v10 err=other
    commit ann/6 v10 results=[c]
handle ann/7 done
  run ann/7 v10 results=[d] err=other
  run ann/7#1 finished v11 links=["run ann/7"]
    commit ann/7#1 v11 effects
retry ann/6
takeover ann of 6 v11
run ann/6 failed v12 links=["handle ann/6"] err=other
  commit ann/6 v12 results=[c]
discard ann/6
update ann v13 effects
run ann finished v14
  commit ann v14 effects
handle ann/8 started
run ann/8 fenced v15 links=["the sender's"] err=fenced
  commit ann/8 v15 effects
handle ann/9 queued
heartbeat err=other
`

const secondTrace = `takeover ann of 8 v15 queued=1 taken
run ann/8#1 finished v16 links=["the sender's" "run ann/8"]
  commit ann/8#1 v16 effects
run ann/9 finished v17 links=["handle ann/9"]
  commit ann/9 v17 effects
compact ann
reset ann v18
verify ann v18
records ann err=other
delete ann
`

// A Manager without Tracer and Logger allocates no more than one whose Logger
// is off, and less than one with a Tracer: what is observed is prepared only for
// those that look.
func TestObservationIsFree(t *testing.T) {
	allocations := func(opts workspace.Options) float64 {
		opts.KeepMessages, opts.KeepResults = 5, 5
		_, runs := hold(t, store.NewMemory(), opts)
		run := runs.Begin(t, "ann", text("1"))
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

func (quietTracer) Start(ctx context.Context, _ work.Operation) context.Context { return ctx }
func (quietTracer) End(context.Context, work.Operation)                         {}
func (quietTracer) Inject(context.Context) string                               { return "" }
