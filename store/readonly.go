package store

import (
	"context"
	"iter"
)

// ReadOnly returns a store with the data of s, on which Put and Delete fail
// with ErrReadOnly. It is a Lister or a Watcher if s is one, and nothing else
// that writes. Close closes s.
func ReadOnly(s Store) Store {
	r := readOnly{s}
	lister, lists := s.(Lister)
	watcher, watches := s.(Watcher)
	switch {
	case lists && watches:
		return struct {
			readOnly
			listing
			watching
		}{r, lister, watcher}
	case lists:
		return struct {
			readOnly
			listing
		}{r, lister}
	case watches:
		return struct {
			readOnly
			watching
		}{r, watcher}
	}
	return r
}

// reading, listing and watching are what a store without writes can do, each
// without the methods that it shares with the others.
type (
	reading interface {
		Get(ctx context.Context, key string) (Entry, error)
		Scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error]
		Durability() Durability
		Close() error
	}
	listing interface {
		List(ctx context.Context, prefix, after string) iter.Seq2[string, error]
	}
	watching interface {
		Watch(ctx context.Context, prefix string) iter.Seq2[Event, error]
	}
)

type readOnly struct{ reading }

func (readOnly) Put(_ context.Context, key string, _ []byte, _ Condition) (Revision, error) {
	return "", &Error{Store: "read-only", Op: "put", Key: key, Err: ErrReadOnly}
}

func (readOnly) Delete(_ context.Context, key string, _ Condition) error {
	return &Error{Store: "read-only", Op: "delete", Key: key, Err: ErrReadOnly}
}
