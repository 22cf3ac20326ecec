package workspace

import (
	"context"
	"sync"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// effort is what the ledger tells of an operation.
type effort struct {
	injected string // the trace that OpHandle has given to its message

	mu    sync.Mutex
	bytes int
	tries int
	// conflicts are the tries that another writer has overtaken.
	conflicts int
	warnings  []warning
}

// warning is an error that no caller gets.
type warning struct {
	event string
	err   error
}

type effortKey struct{}

func effortOf(ctx context.Context) *effort {
	e, _ := ctx.Value(effortKey{}).(*effort)
	return e
}

func (e *effort) add(cost ledger.Effort) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bytes += cost.Bytes
	e.tries += cost.Tries
	e.conflicts += cost.Conflicts
}

func (e *effort) warn(w warning) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.warnings = append(e.warnings, w)
}

func (e *effort) take() (bytes, tries, conflicts int, warnings []warning) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes, e.tries, e.conflicts, e.warnings
}
