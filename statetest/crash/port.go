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

var (
	_ store.Store       = (*port)(nil)
	_ store.MultiGetter = (*port)(nil)
	_ store.Lister      = (*port)(nil)
)

func portError(op, key string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*store.Error); ok {
		return err
	}
	return &store.Error{Store: "crash", Op: op, Key: key, Err: err}
}

// read reads with the faults of reads.
func read[T any](ctx context.Context, s *port, op, key string, do func() (T, error)) (T, error) {
	v, err := pass(ctx, s.p, place{kindRead, "read"}, func(point) (T, error) { return do() })
	return v, portError(op, key, err)
}

func (s *port) Get(ctx context.Context, key string) (store.Entry, error) {
	return read(ctx, s, "get", key, func() (store.Entry, error) { return s.db.Get(ctx, key) })
}

func (s *port) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	return read(ctx, s, "get multi", "", func() ([]store.Entry, error) { return s.db.GetMulti(ctx, keys...) })
}

// write makes a write. A write that arrives late is made, whatever has become of
// ctx.
func write[T any](ctx context.Context, s *port, op, key string, do func(context.Context) (T, error)) (T, error) {
	v, err := pass(ctx, s.p, place{kindWrite, "write"}, func(at point) (T, error) {
		v, err := do(context.WithoutCancel(ctx))
		if err == nil && s.wrote != nil {
			s.wrote(at)
		}
		return v, err
	})
	return v, portError(op, key, err)
}

func (s *port) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	value = append([]byte{}, value...)
	return write(ctx, s, "put", key, func(ctx context.Context) (store.Revision, error) {
		return s.db.Put(ctx, key, value, cond)
	})
}

func (s *port) Delete(ctx context.Context, key string, cond store.Condition) error {
	_, err := write(ctx, s, "delete", key, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.db.Delete(ctx, key, cond)
	})
	return err
}

func (s *port) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	writes = append([]store.Write(nil), writes...)
	for i := range writes {
		writes[i].Value = append([]byte{}, writes[i].Value...)
	}
	return write(ctx, s, "batch", "", func(ctx context.Context) ([]store.Revision, error) {
		return s.db.Batch(ctx, writes)
	})
}

func (s *port) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return list(ctx, s, "scan", s.db.Scan(ctx, prefix, after))
}

func (s *port) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	return list(ctx, s, "list", s.db.List(ctx, prefix, after))
}

// list reads a sequence, with the faults of one read.
func list[T any](ctx context.Context, s *port, op string, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		none, err := read(ctx, s, op, "", func() (none T, err error) { return none, nil })
		if err != nil {
			yield(none, err)
			return
		}
		all(yield)
	}
}

// Durability is that of a server: the processes of a case die, and it does not.
func (s *port) Durability() store.Durability { return store.DurabilityServer }

func (s *port) Close() error { return s.db.Close() }
