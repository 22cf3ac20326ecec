package ledger

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state/store"
)

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
				if err = store.Delete(ctx, db, e.Key, store.IfRevision(e.Revision)); err == nil || errors.Is(err, store.ErrConflict) {
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
