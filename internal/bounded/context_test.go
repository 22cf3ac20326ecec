package bounded

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type key struct{}

// A bounded context says the same as those of package context, whether or not
// somebody has waited for it.
func TestContext(t *testing.T) {
	slow, gone, other := errors.New("slow"), errors.New("gone"), errors.New("other")
	for _, c := range []struct {
		name  string
		end   func(cancel context.CancelFunc, parent, beside context.CancelCauseFunc)
		err   error
		cause error
	}{
		{"nothing has ended", func(context.CancelFunc, context.CancelCauseFunc, context.CancelCauseFunc) {}, nil, nil},
		{"cancel", func(cancel context.CancelFunc, _, _ context.CancelCauseFunc) { cancel(); cancel() }, context.Canceled, context.Canceled},
		{"the parent", func(_ context.CancelFunc, parent, _ context.CancelCauseFunc) { parent(gone) }, context.Canceled, gone},
		{"the other", func(_ context.CancelFunc, _, beside context.CancelCauseFunc) { beside(other) }, context.Canceled, other},
		{"the time", func(context.CancelFunc, context.CancelCauseFunc, context.CancelCauseFunc) { time.Sleep(time.Second) }, context.DeadlineExceeded, slow},
	} {
		for _, waited := range []bool{false, true} {
			for _, causeFirst := range []bool{false, true} {
				t.Run(c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						parent, endParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, 1))
						beside, endBeside := context.WithCancelCause(context.Background())
						ctx := New(parent, By{Timeout: time.Second, Cause: slow, Other: beside})
						defer ctx.End()
						child, stop := context.Context(ctx), func() {}
						if waited { // a child waits for its parent
							child, stop = context.WithCancel(ctx)
						}
						defer stop()
						c.end(ctx.End, endParent, endBeside)
						synctest.Wait()
						if causeFirst {
							require.Equal(t, c.cause, context.Cause(ctx))
						}
						require.Equal(t, c.err, ctx.Err())
						require.Equal(t, c.cause, context.Cause(ctx))
						require.Equal(t, c.cause, context.Cause(child))
						require.Equal(t, 1, ctx.Value(key{}))
						select {
						case <-ctx.Done():
							require.Error(t, c.err)
						default:
							require.NoError(t, c.err)
						}
						endParent(nil)
						endBeside(nil)
					})
				})
			}
		}
	}
}

func TestDeadline(t *testing.T) {
	near, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sooner, _ := near.Deadline()
	for _, c := range []struct {
		name   string
		parent context.Context
		by     By
		want   bool
		within time.Duration
	}{
		{"none", t.Context(), By{}, false, 0},
		{"that of the parent", near, By{Timeout: time.Hour}, true, time.Minute},
		{"its own", near, By{Timeout: time.Second}, true, time.Second},
	} {
		ctx := New(c.parent, c.by)
		at, ok := ctx.Deadline()
		require.Equal(t, c.want, ok, c.name)
		if ok {
			require.LessOrEqual(t, time.Until(at), c.within, c.name)
			require.False(t, at.After(sooner), c.name)
		}
		ctx.End()
	}
}

// A call that nobody waits for makes no timer.
func TestNewIsCheap(t *testing.T) {
	beside, cancel := context.WithCancel(t.Context())
	defer cancel()
	allocs := testing.AllocsPerRun(100, func() {
		ctx := New(t.Context(), By{Timeout: time.Hour, Other: beside})
		_ = ctx.Err()
		ctx.End()
	})
	require.LessOrEqual(t, allocs, 1.0)
}
