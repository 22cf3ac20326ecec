package workspace

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// List yields the users that have a workspace, a thread or a user part, each
// once, in the order of the keys in the store. It leaves out what was deleted.
// What it yields are names, as [Thread] and [Manager.Threads] take them. The ids
// of all workspaces are in [Manager.Summaries].
func (m *Manager) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		// Between the workspace of a user and the threads come users whose names
		// begin with that of the user.
		var before []string
		for u, err := range ledger.Heads(ctx, m.db, m.sealer, ledger.Range{}) {
			if err != nil {
				yield("", wrapError("list", "", err))
				return
			}
			user, _ := SplitThread(u.User)
			for n := len(before); n > 0 && !strings.HasPrefix(u.User, Thread(before[n-1], "")); n-- {
				before = before[:n-1]
			}
			if n := len(before); n > 0 && before[n-1] == user {
				continue
			}
			before = append(before, user)
			if !yield(user, nil) {
				return
			}
		}
	}
}

// forEach calls fn for each of the ids of workspaces, for many of them
// concurrently. It goes on after an error, unless the listing fails or ctx ends,
// and returns all errors and their number.
func (m *core) forEach(
	ctx context.Context, op string, ids iter.Seq2[string, error], fn func(id string) error,
) (failed int, err error) {
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
	for user, err := range ids {
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

// maxGlimpses is the number of workspaces at which forEach looks concurrently.
const maxGlimpses = 64
