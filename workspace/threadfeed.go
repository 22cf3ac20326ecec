package workspace

import (
	"context"
	"slices"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
)

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
	user, _ := SplitThread(id)
	return all.byUser[Shared(user)]
}

// lookAtThreads reads the heads of the user's workspaces.
func (f *feed) lookAtThreads(ctx context.Context) error {
	shared := f.ledger.User()
	user, _ := SplitThread(shared)
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
	first := f.threads.newest == nil
	if first {
		f.threads.newest = map[string]*ledger.Head{}
	}
	f.mu.Unlock()
	f.noteThreads(heads)
	if first { // what there was is not told
		f.mu.Lock()
		f.threads.fresh = nil
		f.mu.Unlock()
	}
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
		wake(f.wake)
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
