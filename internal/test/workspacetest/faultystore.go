package workspacetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
)

// A Fault returns the error of an operation that would make writes, or that would
// read if there are none, and whether the writes are made nevertheless.
type Fault func(writes []store.Write) (made bool, _ error)

// WithFaults returns a store that fails with the errors of fault. It reports no
// changes, and is a store.Store if db is one.
func WithFaults(db store.Store, fault Fault) store.Store {
	return fakestore.New(fakestore.Bare{Store: db}, func(_ context.Context, c fakestore.Call, do func() error) error {
		made, err := fault(c.Writes)
		if err == nil {
			return do()
		}
		if made {
			_ = do()
		}
		return &store.Error{Store: "faulty", Op: "test", Err: err}
	})
}

// WithOutages returns a store that is away as long as the switch is on. If
// replyLost is set, the first write of each outage is made, and only its reply
// is lost.
func WithOutages(db store.Store, replyLost bool) (store.Store, *atomic.Bool) {
	var away, again atomic.Bool
	return WithFaults(db, func(writes []store.Write) (bool, error) {
		switch {
		case !away.Load():
			again.Store(false)
			return false, nil
		case replyLost && writes != nil && !again.Swap(true):
			return true, store.ErrUnknownOutcome
		}
		return false, errors.New("connection refused")
	}), &away
}

// AsProcess returns a store as a process sees it. After kill, the process does
// nothing that others could see.
func AsProcess(db store.Store) (_ store.Store, kill func()) {
	var dead atomic.Bool
	return WithFaults(db, func([]store.Write) (bool, error) {
		if dead.Load() {
			return false, store.ErrClosed
		}
		return false, nil
	}), func() { dead.Store(true) }
}
