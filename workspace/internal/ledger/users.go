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

// Names yields the users that may have a workspace in a store and come after a
// user, in the order of the keys, without reading the workspaces: they may be
// deleted. With "", it yields all. It ends with the first error.
func Names(ctx context.Context, db store.Store, after string) iter.Seq2[string, error] {
	if after != "" {
		after = headPrefix + EncodeUser(after)
	}
	return func(yield func(string, error) bool) {
		for key, err := range headKeys(ctx, db, after) {
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

// maxHeadsAtOnce is the number of heads that Heads reads concurrently.
const maxHeadsAtOnce = 64

// UserHead is the head of a user's workspace. Err says why it cannot be decoded;
// then Head is nil.
type UserHead struct {
	User string
	Head *Head
	Err  error
}

// Heads yields the heads of the workspaces of the users that Names yields. It
// leaves out workspaces that were deleted. It reads heads concurrently, at first
// few, for callers that stop soon. It ends with the first error of the store.
func Heads(ctx context.Context, db store.Store, s *Sealer, after string) iter.Seq2[UserHead, error] {
	return func(yield func(UserHead, error) bool) {
		var ahead []readAhead
		atOnce := 1
		yieldAhead := func() bool {
			readHeads(ctx, db, s, ahead)
			for _, u := range ahead {
				if errors.Is(u.failed, store.ErrNotFound) || u.Head != nil && !u.Head.Deleted.IsZero() {
					continue
				}
				if !yield(u.UserHead, u.failed) || u.failed != nil {
					return false
				}
			}
			ahead = ahead[:0]
			atOnce = min(atOnce+max(1, atOnce/2), maxHeadsAtOnce)
			return true
		}
		for user, err := range Names(ctx, db, after) {
			if err != nil {
				if yieldAhead() {
					yield(UserHead{User: user}, err)
				}
				return
			}
			ahead = append(ahead, readAhead{UserHead: UserHead{User: user}})
			if len(ahead) == atOnce && !yieldAhead() {
				return
			}
		}
		yieldAhead()
	}
}

// readAhead is a head, or the error of the store when it was read.
type readAhead struct {
	UserHead
	failed error
}

// readHeads reads heads concurrently.
func readHeads(ctx context.Context, db store.Store, s *Sealer, heads []readAhead) {
	var wg sync.WaitGroup
	for i := range heads {
		wg.Go(func() { heads[i].UserHead, heads[i].failed = readUserHead(ctx, db, s, heads[i].User) })
	}
	wg.Wait()
}

// WasDeleted reports whether a workspace was deleted at a time or before, and
// its head is still in the store.
func WasDeleted(ctx context.Context, db store.Store, s *Sealer, user string, before time.Time) (bool, error) {
	u, err := readUserHead(ctx, db, s, user)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil || u.Head == nil:
		return false, err
	}
	return !u.Head.Deleted.IsZero() && !u.Head.Deleted.After(before), nil
}

// readUserHead returns an error of the store, which is store.ErrNotFound if
// there is no head.
func readUserHead(ctx context.Context, db store.Store, s *Sealer, user string) (UserHead, error) {
	u := UserHead{User: user}
	e, err := db.Get(ctx, headPrefix+EncodeUser(user))
	if err != nil {
		return u, err
	}
	u.Head, u.Err = s.openHead(user, e.Key, e.Value)
	return u, nil
}

// headKeys yields the keys of the heads that sort after a key.
func headKeys(ctx context.Context, db store.Store, after string) iter.Seq2[string, error] {
	if l, ok := store.As[store.Lister](db); ok {
		return l.List(ctx, headPrefix, after)
	}
	return func(yield func(string, error) bool) {
		for after := after; ; {
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
