package store

import (
	"context"
	"errors"
	"iter"
)

// ReadOnly returns a store with the data of s, on which Put and Delete fail
// with ErrReadOnly. By [As] it is a MultiGetter, a Lister or a Watcher if s is
// one, and nothing that writes. Close closes s.
func ReadOnly(s Store) Store { return readOnly{s} }

// readOnly is a Wrapper.
type readOnly struct{ reading }

// reading is what a store does without writes.
type reading interface {
	Get(ctx context.Context, key string) (Entry, error)
	Scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error]
	Durability() Durability
	Close() error
}

func (r readOnly) Unwrap() Store { return r.reading.(Store) }

func (readOnly) Put(_ context.Context, key string, _ []byte, _ Condition) (Revision, error) {
	return "", &Error{Store: "read-only", Op: "put", Key: key, Err: ErrReadOnly}
}

func (readOnly) Delete(_ context.Context, key string, _ Condition) error {
	return &Error{Store: "read-only", Op: "delete", Key: key, Err: ErrReadOnly}
}

// GetMulti makes the store a MultiGetter if the other one is.
func (r readOnly) GetMulti(ctx context.Context, keys ...string) ([]Entry, error) {
	g, ok := As[MultiGetter](r.Unwrap())
	if !ok {
		return nil, &Error{Store: "read-only", Op: "get multi", Err: errors.ErrUnsupported}
	}
	return g.GetMulti(ctx, keys...)
}

// List makes the store a Lister if the other one is.
func (r readOnly) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	l, ok := As[Lister](r.Unwrap())
	if !ok {
		return func(yield func(string, error) bool) {
			yield("", &Error{Store: "read-only", Op: "list", Key: prefix, Err: errors.ErrUnsupported})
		}
	}
	return l.List(ctx, prefix, after)
}

// Watch makes the store a Watcher if the other one is.
func (r readOnly) Watch(ctx context.Context, prefix string) iter.Seq2[Event, error] {
	w, ok := As[Watcher](r.Unwrap())
	if !ok {
		return func(yield func(Event, error) bool) {
			yield(Event{}, &Error{Store: "read-only", Op: "watch", Key: prefix, Err: errors.ErrUnsupported})
		}
	}
	return w.Watch(ctx, prefix)
}

// IsReadOnly tells package workspace what store it has.
func (readOnly) IsReadOnly() {}

func (r readOnly) Batch(context.Context, []Write) ([]Revision, error) {
	return nil, &Error{Store: "read-only", Op: "batch", Err: ErrReadOnly}
}
