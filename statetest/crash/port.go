package crash

import (
	"context"
	"iter"

	"github.com/agentstate/state/store"
)

// port is a store as a process reaches it. It is no store.Watcher.
type port struct {
	p     *Process
	db    *store.Memory
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

// read reads with the faults of reads.
func read[T any](ctx context.Context, s *port, op string, do func() (T, error)) (T, error) {
	v, err := pass(ctx, s.p, place{kindRead, "read"}, func(point) (T, error) { return do() })
	return v, portError(op, err)
}

func (s *port) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	return read(ctx, s, "get", func() ([]store.Entry, error) { return s.db.Get(ctx, keys...) })
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

// List has the faults of one read.
func (s *port) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if _, err := read(ctx, s, "list", func() (none struct{}, err error) { return none, nil }); err != nil {
			yield(store.Entry{}, err)
			return
		}
		s.db.List(ctx, prefix, after, values)(yield)
	}
}

// Durability is that of a server: the processes of a case die, and it does not.
func (s *port) Durability() store.Durability { return store.DurabilityServer }

func (s *port) Close() error { return s.db.Close() }
