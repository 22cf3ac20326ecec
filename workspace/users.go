package workspace

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
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
			user := ownerOf(u.User)
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
// and returns all errors.
func (m *core) forEach(
	ctx context.Context, op string, ids iter.Seq2[string, error], fn func(id string) error,
) error {
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
	return errors.Join(errs...)
}

// maxGlimpses is the number of workspaces at which forEach looks concurrently.
const maxGlimpses = 64

// DeleteUser deletes everything about a user: the user part, all threads, the
// user's own workspace, the values of [Manager.Store] of each, and all files. It ends the
// runs that are under way. userID is the name of the user, as [Thread] takes it.
//
// First it writes that the user was deleted. From then on, a write that would make
// a thread of the user is ErrUserDeleted, in any process, until [Manager.Expire];
// the user's own workspace follows at once. Threads that exist can be read until
// they are deleted. If DeleteUser fails halfway or its process dies, any Manager
// with Options.Run goes on after a few TTLs, and DeleteUser can be called again.
//
// Called within a run of the user, it ends that run, as Delete does.
func (m *Manager) DeleteUser(ctx context.Context, userID string) error {
	return m.operate(ctx, work.Operation{
		Kind: opDeleteUser, UserID: Shared(userID),
	}, func(ctx context.Context, l *ledger.Ledger) error {
		if _, err := l.Close(ctx, true); err != nil {
			return err
		}
		if run, ok := FromContext(ctx); ok {
			if ownerOf(run.user) == userID { // which ends now
				var cancel context.CancelFunc
				ctx, cancel = m.untilClosed(context.WithoutCancel(ctx))
				defer cancel()
			}
		}
		return m.sweepUser(ctx, userID, l)
	})
}

// sweepUser deletes what there still is of a user who was deleted.
func (m *Manager) sweepUser(ctx context.Context, userID string, shared *ledger.Ledger) error {
	own, err := m.ledger(Thread(userID, ""))
	if err != nil {
		return err
	}
	h, err := own.Close(ctx, false)
	if err != nil {
		return err
	}
	m.endLocalRuns(own.User(), h, work.EndingReset)
	for found := true; found; { // no thread is made any more, but a list may miss one that changes
		found = false
		threads := func(yield func(string, error) bool) {
			for u, err := range ledger.Heads(ctx, m.db, m.sealer, ledger.Range{Prefix: shared.User()}) {
				found = true
				if !yield(u.User, err) {
					return
				}
			}
		}
		if err := m.forEach(ctx, "delete user", threads, func(id string) error { return m.Delete(ctx, id) }); err != nil {
			return err
		}
	}
	if err := errors.Join(ledger.ClearThreads(ctx, m.db, userID), m.data(own.User()).Clear(ctx), m.files(userID).Clear(ctx)); err != nil {
		return err
	}
	return shared.Swept(ctx)
}

// sweepLater goes on with what DeleteUser has left, in the background.
func (m *Manager) sweepLater(id string) {
	m.tidying.note(id, func(ctx context.Context) {
		user := ownerOf(id)
		l, err := m.ledger(id)
		var h *ledger.Head
		if err == nil {
			h, err = l.ReadHead(ctx)
		}
		if err == nil && h.Sweeping { // else it is done, and the user may have returned
			err = m.sweepUser(ctx, user, l)
		}
		if err != nil && ctx.Err() == nil {
			m.raise(ctx, alarmUserNotDeleted, id, err)
		}
	})
}
