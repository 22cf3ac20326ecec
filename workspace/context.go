package workspace

import (
	"context"

	"github.com/agentstate/state/internal/runctx"
)

// contextRun is the run that a context carries, and those of the contexts in
// which it has begun.
type contextRun struct {
	run   *Run // may be nil
	outer *contextRun
}

type contextKey struct{}

func runsOf(ctx context.Context) *contextRun {
	c, _ := ctx.Value(contextKey{}).(*contextRun)
	return c
}

// inRunOf reports whether ctx is that of a run of the user that is under way, or
// whose hooks are, for which the next run waits.
func (m *Manager) inRunOf(ctx context.Context, user string) bool {
	for c := runsOf(ctx); c != nil; c = c.outer {
		if r := c.run; r != nil && r.m == m && r.user == user {
			return !r.life.is(phaseOver, phaseGone)
		}
	}
	return false
}

// lendSlot lends the slot of the run that ctx carries to what the run waits for,
// which may need one, until takeBack is called.
func (m *Manager) lendSlot(ctx context.Context) (takeBack func()) {
	if run, ok := FromContext(ctx); ok && run.m == m {
		return run.slot.Lend()
	}
	return func() {}
}

// NewContext returns a context that carries a run.
func NewContext(ctx context.Context, r *Run) context.Context {
	outer := runsOf(ctx)
	if r == nil {
		ctx = runctx.NewContext(ctx, nil)
	} else {
		ctx = r.m.withFiles(runctx.NewContext(ctx, turnRun{r}), ownerOf(r.user))
	}
	return context.WithValue(ctx, contextKey{}, &contextRun{r, outer})
}

// FromContext returns the run that ctx carries, if any. The contexts of
// Options.Run and of Run.Context carry one.
func FromContext(ctx context.Context) (*Run, bool) {
	c := runsOf(ctx)
	if c == nil || c.run == nil {
		return nil, false
	}
	return c.run, true
}
