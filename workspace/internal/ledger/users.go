package ledger

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state/store"
)

// UserHead is the head of a user's workspace. Err says why it cannot be decoded;
// then Head is nil.
type UserHead struct {
	User string
	Head *Head
	Err  error
}

// Range says of which workspaces Heads yields the heads: those whose ids begin
// with Prefix and come after an id, without those that were deleted unless Deleted
// is set.
type Range struct {
	Prefix, After string
	Deleted       bool
}

// Heads yields heads in the order of the keys. It ends with the first error of the
// store.
func Heads(ctx context.Context, db store.Store, s *Sealer, r Range) iter.Seq2[UserHead, error] {
	after := r.After
	if after != "" {
		after = headPrefix + EncodeUser(after)
	}
	return func(yield func(UserHead, error) bool) {
		for e, err := range db.List(ctx, headPrefix+EncodeUser(r.Prefix), after, true) {
			var u UserHead
			if err == nil {
				u, err = s.openUser(e)
			}
			if err != nil {
				yield(u, err)
				return
			}
			if u.Head != nil && !u.Head.Deleted.IsZero() && !r.Deleted {
				continue
			}
			if !yield(u, nil) {
				return
			}
		}
	}
}

func userOf(headKey string) (string, error) {
	user, err := decodeUser(strings.TrimPrefix(headKey, headPrefix))
	if err != nil {
		return "", corrupt(headKey, err.Error())
	}
	return user, nil
}

// ReadHead returns the head of a workspace. If it does not exist, Head and Err
// are nil.
func ReadHead(ctx context.Context, db store.Store, s *Sealer, id string) (UserHead, error) {
	heads, err := readHeads(ctx, db, s, []string{headPrefix + EncodeUser(id)})
	if err != nil || len(heads) == 0 {
		return UserHead{User: id}, err
	}
	return heads[0], nil
}

// Heads yields the heads of the workspaces in the list, some at a time, in the
// order of the keys, but not those of users to skip. It ends with the first error
// of the store. It deletes keys that no head has, as somebody who writes to the
// store by hand may leave them.
func (b BusyList) Heads(
	ctx context.Context, db store.Store, s *Sealer, skip func(user string) bool,
) iter.Seq2[[]UserHead, error] {
	return func(yield func([]UserHead, error) bool) {
		var keys []string
		read := func() bool {
			heads, err := readHeads(ctx, db, s, keys)
			for _, key := range keys {
				if err == nil && !b.isListed(heads, key) {
					err = b.dropOrphan(ctx, db, s, strings.TrimPrefix(key, headPrefix))
				}
			}
			heads = slices.DeleteFunc(heads, func(u UserHead) bool { return u.Head != nil && !u.Head.listed().in(b) })
			keys = keys[:0]
			return yield(heads, err) && err == nil
		}
		for e, err := range db.List(ctx, string(b), "", false) {
			if err != nil {
				yield(nil, err)
				return
			}
			name := strings.TrimPrefix(e.Key, string(b))
			switch user, err := userNamed(name); {
			case err != nil: // a name that no user has leads to no head
				if err := b.dropOrphan(ctx, db, s, name); err != nil {
					yield(nil, err)
					return
				}
				continue
			case skip(user):
				continue
			}
			if keys = append(keys, headPrefix+name); len(keys) == busyAtOnce && !read() {
				return
			}
		}
		if len(keys) > 0 {
			read()
		}
	}
}

// isListed reports whether one of the heads may be that of a key, and have the key
// of the list.
func (b BusyList) isListed(heads []UserHead, key string) bool {
	i := slices.IndexFunc(heads, func(u UserHead) bool { return headPrefix+EncodeUser(u.User) == key })
	return i >= 0 && (heads[i].Head == nil || heads[i].Head.listed().in(b))
}

// dropOrphan deletes the key of a name, unless its head has it by now. A head that
// gets the key later writes it anew, with another revision.
func (b BusyList) dropOrphan(ctx context.Context, db store.Store, s *Sealer, name string) error {
	listed, err := db.Get(ctx, string(b)+name)
	if err != nil || listed[0].Revision == "" {
		return err
	}
	if _, err := userNamed(name); err == nil {
		heads, err := readHeads(ctx, db, s, []string{headPrefix + name})
		if err != nil || b.isListed(heads, headPrefix+name) {
			return err
		}
	}
	err = store.Delete(ctx, db, listed[0].Key, store.IfRevision(listed[0].Revision))
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrReadOnly) {
		err = nil
	}
	return err
}

// userNamed returns the user whose name follows the prefix of a list.
func userNamed(name string) (user string, err error) {
	if user, err = decodeUser(name); err == nil {
		_, err = HeadKey(user)
	}
	return user, err
}

// readHeads returns the heads that have keys, without those that do not exist.
func readHeads(ctx context.Context, db store.Store, s *Sealer, keys []string) ([]UserHead, error) {
	entries, err := db.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	var heads []UserHead
	for _, e := range entries {
		if e.Revision == "" {
			continue
		}
		u, err := s.openUser(e)
		if err != nil {
			return nil, err
		}
		heads = append(heads, u)
	}
	return heads, nil
}

// openUser returns the head in an entry. It returns an error for a key that is
// not that of a head.
func (s *Sealer) openUser(e store.Entry) (u UserHead, err error) {
	if u.User, err = userOf(e.Key); err == nil {
		u.Head, u.Err = s.openHead(u.User, e.Key, e.Value)
	}
	return u, err
}

// busyAtOnce is the number of heads that Heads reads at once.
const busyAtOnce = 64

// Expiry says that a call of a user's workspace has expired, and when, as Unix time
// in ms.
type Expiry struct {
	User string
	At   int64
}

// Expired yields the workspaces in which a call has expired, the earliest first. It
// ends with the first error of the store. It deletes keys that no head has, as an
// operator who resets a damaged workspace may leave one.
func Expired(ctx context.Context, db store.Store, s *Sealer, now time.Time) iter.Seq2[Expiry, error] {
	return func(yield func(Expiry, error) bool) {
		for e, err := range db.List(ctx, expiring, "", true) { // with their revisions
			if err != nil {
				yield(Expiry{}, err)
				return
			}
			text, name, _ := strings.Cut(strings.TrimPrefix(e.Key, expiring), ":")
			at, err := strconv.ParseInt(text, 16, 64)
			if err == nil && at > now.UnixMilli() {
				return
			}
			heads, err := readHeads(ctx, db, s, []string{headPrefix + name})
			switch {
			case err != nil:
			case len(heads) == 0 || heads[0].Head != nil && heads[0].Head.Expires != at:
				// Without a condition, the key could be that of a later head.
				if err = store.Delete(ctx, db, e.Key, store.IfRevision(e.Revision)); err == nil ||
					errors.Is(err, store.ErrConflict) {
					continue
				}
			case heads[0].Head == nil: // others report it
				continue
			default:
				if !yield(Expiry{heads[0].User, at}, nil) {
					return
				}
				continue
			}
			yield(Expiry{}, err)
			return
		}
	}
}
