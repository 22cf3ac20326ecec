// Package suspend lets package tool work with the run of package workspace that
// a context carries, and which it cannot import: calls of the run are suspended,
// and a turn of an agent is committed.
package suspend

import "context"

type contextKey struct{}

// carried is what a context carries of a run.
type carried struct {
	run  any
	note func(key string)
}

// NewContext returns a context with a run, and a function that is told of calls
// that are suspended: of the key of each, which is its id, or its name if it has
// none. A nil run hides that of ctx.
func NewContext(ctx context.Context, run any, note func(key string)) context.Context {
	return context.WithValue(ctx, contextKey{}, carried{run, note})
}

// Run returns the run of a context, or nil.
func Run(ctx context.Context) any {
	c, _ := ctx.Value(contextKey{}).(carried)
	return c.run
}

// Note tells the run of the first context that has one of a suspended call.
func Note(id, name string, contexts ...context.Context) {
	key := id
	if key == "" {
		key = name
	}
	for _, ctx := range contexts {
		if c, _ := ctx.Value(contextKey{}).(carried); c.run != nil {
			c.note(key)
			return
		}
	}
}
