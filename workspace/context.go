package workspace

import "context"

type contextKey struct{}

// NewContext returns a context that carries a run.
func NewContext(ctx context.Context, r *Run) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// FromContext returns the run that ctx carries, if any. The contexts of
// Options.Run and of Run.Context carry one.
func FromContext(ctx context.Context) (*Run, bool) {
	r, ok := ctx.Value(contextKey{}).(*Run)
	return r, ok && r != nil
}
