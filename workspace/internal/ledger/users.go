package ledger

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/agentstate/state/store"
)

// Names yields the users that may have a workspace in a store, in the order of
// the keys, without reading the workspaces: they may be deleted. It ends with
// the first error.
func Names(ctx context.Context, db store.Store) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key, err := range headKeys(ctx, db) {
			var user string
			if err == nil {
				if user, err = decodeUser(strings.TrimPrefix(key, headPrefix)); err != nil {
					err = corrupt(key, err.Error())
				}
			}
			if !yield(user, err) || err != nil {
				return
			}
		}
	}
}

// Users yields the users that have a workspace in a store, as Names does. A
// workspace whose head cannot be read counts.
func Users(ctx context.Context, db store.Store, s *Sealer) iter.Seq2[string, error] {
	return usersWith(ctx, db, func(e store.Entry, user string) bool { return !deleted(s, e, user) })
}

// DeletedUsers yields the users whose workspace was deleted, as Names does.
func DeletedUsers(ctx context.Context, db store.Store, s *Sealer) iter.Seq2[string, error] {
	return usersWith(ctx, db, func(e store.Entry, user string) bool { return deleted(s, e, user) })
}

// deleted reports whether an entry is the head of a deleted workspace.
func deleted(s *Sealer, e store.Entry, user string) bool {
	data, err := s.open(e.Key, e.Key, e.Value)
	if err != nil {
		return false
	}
	h, err := decodeHead(e.Key, user, data)
	return err == nil && !h.Deleted.IsZero()
}

// usersWith yields the users whose heads fit.
func usersWith(
	ctx context.Context, db store.Store, fits func(head store.Entry, user string) bool,
) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for user, err := range Names(ctx, db) {
			var head store.Entry
			if err == nil {
				head, err = db.Get(ctx, headPrefix+EncodeUser(user))
			}
			if errors.Is(err, store.ErrNotFound) || err == nil && !fits(head, user) {
				continue
			}
			if !yield(user, err) || err != nil {
				return
			}
		}
	}
}

// headKeys yields the keys of all heads.
func headKeys(ctx context.Context, db store.Store) iter.Seq2[string, error] {
	if l, ok := db.(store.Lister); ok {
		return l.List(ctx, headPrefix, "")
	}
	return func(yield func(string, error) bool) {
		for after := ""; ; {
			first, err := firstEntry(ctx, db, after)
			if err != nil {
				yield("", err)
				return
			}
			if first == nil {
				return
			}
			after = first.Key
			name, _, isBlob := strings.Cut(strings.TrimPrefix(first.Key, headPrefix), blobInfix)
			if isBlob {
				after = headPrefix + name + "/b0" // follows all blobs of this workspace
			} else if !yield(first.Key, nil) {
				return
			}
		}
	}
}

// firstEntry returns the first entry of a workspace after a key, or nil.
func firstEntry(ctx context.Context, db store.Store, after string) (*store.Entry, error) {
	for e, err := range db.Scan(ctx, headPrefix, after) {
		return &e, err
	}
	return nil, nil
}
