// Package kit is what packages statetest and crash share: the doors through
// which crash reaches what statetest does not export, and how failures tell what
// to run again.
package kit

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// Script is the script of a Model, which the Models of several processes share.
// It is safe for concurrent use.
type Script interface {
	// Missing returns the replies that have to be given, a line each.
	Missing(mask func(string) string) []string

	// Mark returns a function that makes the replies left again that were given
	// since. An equal request takes them anew.
	Mark() (rewind func())
}

// Reporter is what a Model reports to.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Case is a case of package crash, as a Model of one of its processes sees it.
type Case struct {
	Report  Reporter
	Secrets *Secrets
	Script  Script // nil for a new one

	// Gate stands between the agent and the model. It calls ask if the request
	// reaches the model.
	Gate func(ctx context.Context, ask func()) error

	// Asked is told of each request that reaches the model: of its agent, and
	// of its messages as texts in which calls have no ids.
	Asked func(ctx context.Context, agent string, messages []string)
}

// Again returns the command that runs a test again.
func Again(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return "go test -run '" + strings.Join(parts, "/") + "'"
}

// Count returns a number with its noun.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
