package crash

import (
	"context"
	"iter"
	"strings"

	"github.com/agentstate/state/store"
)

// port is a store as a process reaches it. It is no store.Watcher.
type port struct {
	p     *Process
	db    store.Store
	wrote func(after point) // called after each write that was made, if it is not nil
}

var _ store.Store = (*port)(nil)

func portError(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*store.Error); ok {
		return err
	}
	return &store.Error{Store: "crash", Op: op, Err: err}
}

// Get has the faults of reads.
func (s *port) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	entries, err := pass(ctx, s.p, place{kindRead, "read"}, func(point) ([]store.Entry, error) {
		return s.db.Get(ctx, keys...)
	})
	return entries, portError("get", err)
}

// Batch makes writes. Those that arrive late are made, whatever has become of
// ctx.
func (s *port) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	writes = append([]store.Write(nil), writes...)
	for i := range writes {
		writes[i].Value = append([]byte{}, writes[i].Value...)
	}
	revisions, err := pass(ctx, s.p, place{kindWrite, "write"}, func(at point) ([]store.Revision, error) {
		revisions, err := s.db.Batch(context.WithoutCancel(ctx), writes)
		if err == nil && s.wrote != nil {
			s.wrote(at)
		}
		return revisions, err
	})
	return revisions, portError("write", err)
}

// List has no faults: it is how Managers look for runs by themselves, in the
// background, and not what a program asks for. It shows runs only to a process
// that settles them, so that each run of a case makes the same calls. What has
// expired is shown to all: a Manager looks at it once in a while.
func (s *port) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if s.p.isDead() {
			yield(store.Entry{}, portError("list", errDead))
			return
		}
		if strings.HasPrefix(prefix, "agent:busy:") && prefix != "agent:busy:expire:" && !s.p.settles.Load() {
			return
		}
		s.db.List(ctx, prefix, after, values)(yield)
	}
}

// Durability is that of a server: the processes of a case die, and it does not.
func (s *port) Durability() store.Durability { return store.DurabilityServer }

func (s *port) Close() error { return s.db.Close() }
