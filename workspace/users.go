package workspace

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// List yields the users that have a workspace, in the order of the keys in the
// store. It leaves out workspaces that were deleted.
func (m *Manager) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for u, err := range ledger.Heads(ctx, m.db, m.sealer, "") {
			if !yield(u.User, wrapError("list", u.User, err)) {
				return
			}
		}
	}
}

// forEachUser calls fn for each user that may have a workspace, for many of them
// concurrently. It goes on after an error, unless the listing fails or ctx ends,
// and returns all errors and their number.
func (m *core) forEachUser(ctx context.Context, op string, fn func(user string) error) (failed int, err error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		free = make(chan struct{}, maxGlimpses)
	)
	fail := func(user string, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, wrapError(op, user, err))
	}
	for user, err := range ledger.Names(ctx, m.db, "") {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx) // the store has read the names before
		}
		if err != nil {
			fail(user, err)
			break
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if err := fn(user); err != nil {
				fail(user, err)
			}
		})
	}
	wg.Wait()
	return len(errs), errors.Join(errs...)
}

// maxGlimpses is the number of workspaces at which forEachUser looks
// concurrently.
const maxGlimpses = 64
