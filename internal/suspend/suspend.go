// Package suspend lets package tool tell package workspace of calls that are
// suspended within a run, through the context of the run.
package suspend

import "context"

type contextKey struct{}

// NewContext returns a context with a function that is told of calls that are
// suspended: of the key of each, which is its id, or its name if it has none.
func NewContext(ctx context.Context, note func(key string)) context.Context {
	return context.WithValue(ctx, contextKey{}, note)
}

// Note tells the function of the first context that has one of a suspended
// call.
func Note(id, name string, contexts ...context.Context) {
	key := id
	if key == "" {
		key = name
	}
	for _, ctx := range contexts {
		if note, ok := ctx.Value(contextKey{}).(func(string)); ok {
			note(key)
			return
		}
	}
}
