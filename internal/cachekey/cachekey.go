// Package cachekey gives requests to models the key of a prompt cache. Package
// workspace knows whose conversation a request continues, and package wire, which
// sends the request, cannot import it.
package cachekey

import "context"

type contextKey struct{}

// NewContext returns a context whose requests have a key. An empty key stands for
// none.
func NewContext(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, contextKey{}, key)
}

// FromContext returns the key of a context, or "".
func FromContext(ctx context.Context) string {
	key, _ := ctx.Value(contextKey{}).(string)
	return key
}
