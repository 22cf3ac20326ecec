package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// endings is a Tracer that keeps the operations that have ended, with the text
// of their errors and results masked.
type endings struct {
	mu  sync.Mutex
	ops []work.Operation
}

func (e *endings) Start(ctx context.Context, _ work.Operation) context.Context { return ctx }
func (e *endings) Inject(context.Context) string                               { return "" }

func (e *endings) End(_ context.Context, op work.Operation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if op.Redact != nil {
		for i := range op.Results {
			op.Results[i].Raw = op.Redact(op.Results[i].Raw)
		}
		if op.Err != nil {
			op.Err = errors.New(op.Redact(op.Err.Error()))
		}
	}
	e.ops = append(e.ops, op)
}

// of returns the operations of a kind.
func (e *endings) of(kind work.OpKind) []work.Operation {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.ops), func(op work.Operation) bool { return op.Kind != kind })
}

// The operations that have the content of a workspace come with a function that
// masks all its secrets, also those of the memory and those that are set by the
// operation itself.
func TestTracerCanMask(t *testing.T) {
	leak := fieldSecret + " and " + memorySecret
	setSecrets := func(w *workspace.Workspace) error {
		return errors.Join(token.Set(w.State(), fieldSecret), w.Memory().SetSecret("pin", memorySecret))
	}
	tracer := &endings{}
	m := open(t, store.NewMemory(), workspace.Options{
		Tracer: tracer,
		Run: func(ctx context.Context, run *workspace.Run) error {
			require.NoError(t, setSecrets(&run.Workspace))
			said(t, run, leak)
			require.NoError(t, run.Commit(ctx))
			said(t, run, "again "+leak)
			return errors.New(leak)
		},
	})
	_, err := m.Handle(t.Context(), "ann", text("1"))
	require.Error(t, err)
	require.Error(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		require.NoError(t, setSecrets(w))
		return errors.New(leak)
	}))
	require.NoError(t, m.Close())

	commits := tracer.of(work.OpCommit)
	require.Len(t, commits, 2)
	require.Equal(t, "[SECRET] and [SECRET]", commits[0].Results[0].Raw)
	require.Equal(t, "again [SECRET] and [SECRET]", commits[1].Results[0].Raw)
	for _, op := range append(tracer.of(work.OpRun), tracer.of(work.OpUpdate)...) {
		require.Contains(t, op.Err.Error(), "[SECRET] and [SECRET]", op.Kind)
	}
	require.Nil(t, tracer.of(work.OpHandle)[0].Redact, "it has no content")
}

func TestTracerSeesConflicts(t *testing.T) {
	conflicts := 2
	tracer := &endings{}
	m := open(t, withFaults(store.NewMemory(), func(writes []store.Write) (bool, error) {
		if len(writes) > 0 && conflicts > 0 {
			conflicts--
			return false, store.ErrConflict
		}
		return false, nil
	}), workspace.Options{Tracer: tracer})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }))
	update := tracer.of(work.OpUpdate)[0]
	require.Equal(t, 2, update.Conflicts)
	require.Equal(t, 3, update.Tries)
	require.EqualValues(t, 2, m.Stats().Conflicts)
}

// A Tracer can tell which part of a lease was left at a heartbeat, and by which
// policy a run was taken over.
func TestTracerSeesLeases(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		tracer := &endings{}
		process, kill := asProcess(db)
		desk := func(ctx context.Context, run *workspace.Run) error {
			if run.Attempt() == 0 {
				<-ctx.Done()
			}
			time.Sleep(ttl)
			return context.Cause(ctx)
		}
		dying := open(t, process, workspace.Options{TTL: ttl, Run: desk})
		_, err := dying.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		kill()
		m := open(t, db, workspace.Options{TTL: ttl, Run: desk, Tracer: tracer, Takeover: workspace.TakeoverRestart})
		require.NoError(t, settle(t.Context(), m))
		taken := tracer.of(work.OpTakeover)
		require.Len(t, taken, 1)
		require.True(t, taken[0].Taken)
		require.Equal(t, workspace.TakeoverRestart, taken[0].Takeover)
		beats := tracer.of(work.OpHeartbeat)
		require.NotEmpty(t, beats)
		used := false
		for _, op := range beats { // one may begin at the moment of a commit, which has renewed the lease
			require.Equal(t, ttl, op.TTL)
			require.Greater(t, op.Left, ttl/2)
			require.LessOrEqual(t, op.Left, ttl)
			used = used || op.Left < ttl
		}
		require.True(t, used, "each heartbeat began with a whole lease")
	})
}

func TestErrorClass(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{fmt.Errorf("a: %w", workspace.ErrRunCancelled), "run_cancelled"},
		{fmt.Errorf("%w: %w", workspace.ErrFenced, workspace.ErrInterrupted), "interrupted"},
		{&workspace.Error{Op: "handle", User: "ann", Err: workspace.ErrQueueFull}, "queue_full"},
		{fmt.Errorf("ann: %w", state.ErrDenied), "denied"},
		{context.DeadlineExceeded, "timeout"},
		{fmt.Errorf("secret: %w", io.EOF), "*errors.errorString"},
	} {
		require.Equal(t, c.want, workspace.ErrorClass(c.err), "%v", c.err)
	}
}
