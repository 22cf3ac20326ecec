package workspace

import (
	"context"

	"github.com/agentstate/state/internal/runctx"
)

// workspaceKey is the key of the run of a user in the contexts that NewContext
// returns, also if another run began within it.
type workspaceKey struct {
	m    *Manager
	user string
}

// inRunOf reports whether ctx is that of a run of the user that is under way, or
// whose hooks are, for which the next run waits.
func (m *Manager) inRunOf(ctx context.Context, user string) bool {
	run, ok := ctx.Value(workspaceKey{m, user}).(*Run)
	return ok && (run.leaseValid() || run.hooks.Load())
}

// lendSlot lends the slot of the run that ctx carries to what the run waits for,
// which may need one, until takeBack is called.
func (m *Manager) lendSlot(ctx context.Context) (takeBack func()) {
	if run, ok := FromContext(ctx); ok && run.m == m {
		return m.slots.lend(run.lease)
	}
	return func() {}
}

type contextKey struct{}

// NewContext returns a context that carries a run.
func NewContext(ctx context.Context, r *Run) context.Context {
	if r == nil {
		ctx = runctx.NewContext(ctx, nil)
	} else {
		ctx = context.WithValue(ctx, workspaceKey{r.m, r.user}, r)
		ctx = runctx.NewContext(ctx, turnRun{r})
	}
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the run that ctx carries, if any. The contexts of
// Options.Run and of Run.Context carry one.
func FromContext(ctx context.Context) (*Run, bool) {
	r, ok := ctx.Value(contextKey{}).(*Run)
	return r, ok && r != nil
}
