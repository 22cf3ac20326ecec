package ledger

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

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

// maxHeadsAtOnce is the number of heads that Users reads concurrently.
const maxHeadsAtOnce = 64

// Users yields the users that have a workspace in a store, as Names does. A
// workspace whose head cannot be read counts. It reads heads concurrently, at
// first few, for callers that stop soon.
func Users(ctx context.Context, db store.Store, s *Sealer) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var ahead []userHead
		atOnce := 1
		yieldAhead := func() bool {
			readHeads(ctx, db, s, ahead)
			for _, u := range ahead {
				if errors.Is(u.err, store.ErrNotFound) || u.err == nil && !u.deleted.IsZero() {
					continue
				}
				if !yield(u.user, u.err) || u.err != nil {
					return false
				}
			}
			ahead = ahead[:0]
			atOnce = min(2*atOnce, maxHeadsAtOnce)
			return true
		}
		for user, err := range Names(ctx, db) {
			if err != nil {
				if yieldAhead() {
					yield(user, err)
				}
				return
			}
			ahead = append(ahead, userHead{user: user})
			if len(ahead) == atOnce && !yieldAhead() {
				return
			}
		}
		yieldAhead()
	}
}

// userHead is what Users reads of a head.
type userHead struct {
	user    string
	deleted time.Time
	err     error
}

// readHeads reads heads concurrently.
func readHeads(ctx context.Context, db store.Store, s *Sealer, heads []userHead) {
	var wg sync.WaitGroup
	for i := range heads {
		wg.Go(func() { heads[i].deleted, heads[i].err = readDeletion(ctx, db, s, heads[i].user) })
	}
	wg.Wait()
}

// WasDeleted reports whether a workspace was deleted at a time or before, and
// its head is still in the store.
func WasDeleted(ctx context.Context, db store.Store, s *Sealer, user string, before time.Time) (bool, error) {
	deleted, err := readDeletion(ctx, db, s, user)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && !deleted.IsZero() && !deleted.After(before), err
}

// readDeletion returns the time at which a workspace was deleted. It is zero if
// the workspace was not deleted or its head cannot be decoded, and the error is
// store.ErrNotFound if there is no head.
func readDeletion(ctx context.Context, db store.Store, s *Sealer, user string) (time.Time, error) {
	e, err := db.Get(ctx, headPrefix+EncodeUser(user))
	if err != nil {
		return time.Time{}, err
	}
	data, err := s.open(e.Key, e.Key, e.Value)
	if err != nil {
		return time.Time{}, nil
	}
	h, err := decodeHead(e.Key, user, data)
	if err != nil {
		return time.Time{}, nil
	}
	return h.Deleted, nil
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
