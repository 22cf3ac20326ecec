package workspace

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
)

// Thread returns the id of a thread, which is a workspace of its own: one of
// several conversations of a user, with its own content, queue and run. With ""
// as threadID, it is the id of the user's own workspace: userID itself, unless
// that contains "/" or "%".
//
// Every method of a Manager that takes the id of a workspace takes that of a
// thread. A program that gets names from outside always makes the id with Thread:
// both names are escaped, so that no name reaches what belongs to another user.
// A Manager returns ErrInvalid for an id that neither Thread nor [Shared] returns:
// one with more than one "/", with a "%" that escapes neither "/" nor "%", without
// a user, or that is not UTF-8.
func Thread(userID, threadID string) string { return ledger.ThreadID(userID, threadID) }

// NewThread returns the id of a new thread, which cannot be guessed. The ids of
// a user are ordered by the time when they were made, the newest first.
func NewThread(userID string) string {
	age := math.MaxInt64 - time.Now().UnixMicro() // 63 bits, which shrink
	return Thread(userID, fmt.Sprintf("%016x-%s", age, rand.Text()))
}

// SplitThread is the inverse of Thread. It returns "" as threadID for the user's
// own workspace, and also for what [Shared] returns.
func SplitThread(id string) (userID, threadID string) { return ledger.SplitID(id) }

// ownerOf returns the user of a workspace.
func ownerOf(id string) string {
	user, _ := SplitThread(id)
	return user
}

// Shared returns the id of the user part: the workspace of what all threads of a
// user share. It has no messages and no runs.
func Shared(userID string) string { return ledger.SharedID(userID) }

// threadsInterval is the time between two looks at the threads of a user if the
// store reports no changes.
const threadsInterval = time.Second

// userThreads is what the feed of a user part knows of the other workspaces of
// the user.
type userThreads struct {
	newest map[string]*ledger.Head // nil as long as nobody has looked
	fresh  []string                // those whose newest head is to be told
}

// ofUserPart returns the feed of the user part of the user who has a workspace, or
// nil if nobody follows it.
func (all *feeds) ofUserPart(id string) *feed {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.byUser) == 0 || ledger.IsShared(id) {
		return nil
	}
	user := ownerOf(id)
	return all.byUser[Shared(user)]
}

// lookAtThreads reads the heads of the user's workspaces.
func (f *feed) lookAtThreads(ctx context.Context) error {
	shared := f.ledger.User()
	user := ownerOf(shared)
	own, err := ledger.ReadHead(ctx, f.m.db, f.m.sealer, Thread(user, ""))
	if err != nil {
		return err
	}
	heads := []ledger.UserHead{own}
	for u, err := range ledger.Heads(ctx, f.m.db, f.m.sealer, ledger.Range{Prefix: shared, Deleted: true}) {
		if err != nil {
			return err
		}
		if u.User != shared {
			heads = append(heads, u)
		}
	}
	f.mu.Lock()
	if f.threads.newest == nil { // what there was is not told
		f.threads.newest = map[string]*ledger.Head{}
		for _, u := range heads {
			f.threads.newest[u.User] = u.Head
		}
	}
	f.mu.Unlock()
	f.noteThreads(heads)
	return nil
}

// noteThreads notes heads of the user's workspaces.
func (f *feed) noteThreads(heads []ledger.UserHead) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &f.threads
	if t.newest == nil {
		return
	}
	for _, u := range heads {
		known := t.newest[u.User]
		if u.Head == nil || known != nil && !u.Head.Age().After(known.Age()) {
			continue
		}
		t.newest[u.User] = u.Head
		if !slices.Contains(t.fresh, u.User) {
			t.fresh = append(t.fresh, u.User)
		}
		turns.Wake(f.wake)
	}
}

// tellThreads tells the heads that are to be told. The caller holds mu.
func (f *feed) tellThreads() {
	for _, id := range f.threads.fresh {
		for w := range f.followers {
			w.items = slices.DeleteFunc(w.items, func(i item) bool { return i.thread == id })
			w.add(item{Event: Event{Kind: EventSummary}, head: f.threads.newest[id], thread: id})
		}
	}
	f.threads.fresh = nil
}
