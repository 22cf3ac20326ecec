package store

import (
	"context"
	"errors"
	"iter"
)

// ReadOnly returns a store with the data of s, on which writes fail with
// ErrReadOnly. By [As] it is a Watcher if s is one, and nothing that writes.
// Close closes s.
func ReadOnly(s Store) Store { return readOnly{s} }

// readOnly is a Wrapper.
type readOnly struct{ Store }

func (r readOnly) Unwrap() Store { return r.Store }

func (readOnly) Batch(_ context.Context, writes []Write) ([]Revision, error) {
	return nil, &Error{Store: "read-only", Op: "write", Key: onlyWrite(writes), Err: ErrReadOnly}
}

// Watch makes the store a Watcher if the other one is.
func (r readOnly) Watch(ctx context.Context, prefix string) iter.Seq2[Event, error] {
	w, ok := As[Watcher](r.Store)
	if !ok {
		return func(yield func(Event, error) bool) {
			yield(Event{}, &Error{Store: "read-only", Op: "watch", Key: prefix, Err: errors.ErrUnsupported})
		}
	}
	return w.Watch(ctx, prefix)
}

// IsReadOnly tells package workspace what store it has.
func (readOnly) IsReadOnly() {}
