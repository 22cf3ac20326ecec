package ledger

import (
	"context"
	"iter"
	"strings"

	"github.com/agentstate/state/store"
)

// A BusyList is a prefix of keys, each followed by EncodeUser of a user. A
// workspace has the key of a list, without a value, exactly as long as its head
// says so: the key is written and deleted in the batch of the head. So those who
// look for work list few keys, and not all workspaces.
type BusyList string

const (
	// Running lists the workspaces with a run, for which messages may wait.
	Running BusyList = "agent:busy:run:"
	// Waiting lists the workspaces with dead letters, and with calls that wait
	// for a result from outside.
	Waiting BusyList = "agent:busy:wait:"
)

// listed says which lists have a workspace.
type listed struct{ running, waiting bool }

func (h *Head) listed() listed {
	return listed{h.Run != nil, h.DeadLetters.Count > 0 || h.Suspended > 0}
}

// appendBusy appends the writes after which the lists have a workspace as its new
// head says. was says which have it now; if that is not known, both are written.
func appendBusy(writes []store.Write, headKey string, was, is listed, known bool) []store.Write {
	if !known || was.running != is.running {
		writes = append(writes, Running.write(headKey, is.running))
	}
	if !known || was.waiting != is.waiting {
		writes = append(writes, Waiting.write(headKey, is.waiting))
	}
	return writes
}

func (b BusyList) write(headKey string, has bool) store.Write {
	return store.Write{Key: string(b) + strings.TrimPrefix(headKey, headPrefix), Delete: !has}
}

// busyAtOnce is the number of heads that Heads reads at once.
const busyAtOnce = 64

// Heads yields the heads of the workspaces in the list, some at a time, in the
// order of the keys, but not those of users to skip. It ends with the first error
// of the store.
func (b BusyList) Heads(ctx context.Context, db store.Store, s *Sealer, skip func(user string) bool) iter.Seq2[[]UserHead, error] {
	return func(yield func([]UserHead, error) bool) {
		var keys []string
		read := func() bool {
			heads, err := readHeads(ctx, db, s, keys)
			keys = keys[:0]
			return yield(heads, err) && err == nil
		}
		for e, err := range db.List(ctx, string(b), "", false) {
			if err != nil {
				yield(nil, err)
				return
			}
			name := strings.TrimPrefix(e.Key, string(b))
			if user, err := decodeUser(name); err != nil || skip(user) {
				continue // a name that no user has leads to no head
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
		u := UserHead{}
		if u.User, err = userOf(e.Key); err != nil {
			return nil, err
		}
		u.Head, u.Err = s.openHead(u.User, e.Key, e.Value)
		heads = append(heads, u)
	}
	return heads, nil
}
