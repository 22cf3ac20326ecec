package workspace

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
)

const (
	// feedInterval is the least time between two looks at a head, and between
	// two summaries.
	feedInterval = 250 * time.Millisecond
	// watchedInterval is the time between two looks if the store reports
	// changes, in case that it has not reported one.
	watchedInterval = 5 * time.Second
	// polledInterval is that time if poll finds the changes.
	polledInterval = time.Hour
)

// feed tells the followers of a workspace what happens to it. What this Manager
// does it tells at once. For the rest it reads the head when the store reports
// a change, or from time to time. A workspace has one feed, as long as it has
// followers.
type feed struct {
	m      *core
	poll   *poll
	ledger *ledger.Ledger
	ctx    context.Context
	stop   context.CancelFunc
	wake   chan struct{} // capacity 1: head or reported has changed
	// reported says that the store has reported a change since the last look.
	reported atomic.Bool

	mu        sync.Mutex
	head      *ledger.Head // the newest that is known, or nil
	threads   userThreads  // if the workspace is a user part
	told      *ledger.Head // the one up to which endings are told, or nil
	followers map[*follower]bool
	changes   map[*toldRun]*runChanges // of the runs that are held here, if somebody wants all events
}

// feeds are the feeds of the workspaces that somebody follows.
type feeds struct {
	m    *core
	poll poll

	mu     sync.Mutex
	byUser map[string]*feed
}

func newFeeds(m *core) *feeds { return &feeds{m: m, poll: newPoll(m), byUser: map[string]*feed{}} }

// follow adds a follower to the feed of a workspace. The caller must call leave.
// messageID is the message that the follower waits for, or "" if it wants all
// events.
func (all *feeds) follow(l *ledger.Ledger, messageID string) (w *follower, leave func(), err error) {
	if all.m.ctx.Err() != nil {
		return nil, nil, ErrClosed
	}
	all.mu.Lock()
	f := all.byUser[l.User()]
	isNew := f == nil
	if isNew {
		f = &feed{
			m: all.m, poll: &all.poll, ledger: l, wake: make(chan struct{}, 1),
			followers: map[*follower]bool{}, changes: map[*toldRun]*runChanges{},
		}
		f.ctx, f.stop = context.WithCancel(all.m.ctx)
		all.byUser[l.User()] = f
	}
	w = newFollower(f, messageID)
	f.mu.Lock()
	f.followers[w] = true
	f.mu.Unlock()
	all.mu.Unlock()
	if isNew {
		all.m.background(f.loop)
		if all.m.live {
			all.m.background(f.followLive)
		}
	}
	return w, func() { all.unfollow(w) }, nil
}

func (all *feeds) unfollow(w *follower) {
	all.mu.Lock()
	defer all.mu.Unlock()
	f := w.feed
	f.mu.Lock()
	delete(f.followers, w)
	empty := len(f.followers) == 0
	f.mu.Unlock()
	if empty && all.byUser[f.ledger.User()] == f {
		delete(all.byUser, f.ledger.User())
		f.stop()
	}
}

// of returns the feed of a user, or nil if nobody follows.
func (all *feeds) of(user string) *feed {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byUser[user]
}

// note tells those who follow a workspace of a head.
func (all *feeds) note(user string, n ledger.Notice) {
	f := all.of(user)
	if p := all.ofUserPart(user); p != nil && !n.TakenBack {
		p.noteThreads([]ledger.UserHead{{User: user, Head: n.Head}})
	}
	switch {
	case f == nil:
	case n.TakenBack:
		f.takeBack(n.Head)
	default:
		f.note(n.Head, n.Ended)
	}
}

// note notes a newer head, and the outcomes that this Manager has written with it.
func (f *feed) note(h *ledger.Head, ended []ledger.Outcome) {
	for _, o := range ended {
		f.endChanges(o.RunID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.head == nil || h.Age().After(f.head.Age()) {
		f.head = h
	}
	for _, o := range ended {
		f.tellEnded(o, h)
	}
	if len(ended) > 0 && (f.told == nil || h.Age().After(f.told.Age())) {
		f.told = h
	}
	f.tellTurns(h)
	turns.Wake(f.wake)
}

// takeBack notes the head that the store shows instead of one that it has taken back.
func (f *feed) takeBack(h *ledger.Head) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.head, f.told = h, h
	for w := range f.followers {
		w.told = ledger.Age{}
		w.addSummary(h)
	}
	f.tellTurns(h)
}

// tellTurns wakes the follower for whose message a head shows a run, or all that
// wait for a message if it shows none: a call of Do does not wait until the head is
// told. The caller holds mu.
func (f *feed) tellTurns(h *ledger.Head) {
	for w := range f.followers {
		if w.messageID != "" && (h.Run == nil || h.Run.Message.ID == w.messageID) {
			turns.Wake(w.wake)
		}
	}
}

// tellEnded tells how a message has ended, by the write of a head or before. The
// caller holds mu.
func (f *feed) tellEnded(o ledger.Outcome, h *ledger.Head) {
	fate := ledger.Fate{Place: ledger.PlaceEnded, Outcome: o}
	for w := range f.followers {
		w.add(item{
			Event: Event{Kind: EventEnded, MessageID: o.ID, Outcome: outcomeOf(fate), Err: errorOf(fate)},
			head:  h, stored: true,
		})
	}
}

// tell tells an event of a run that is held here.
func (f *feed) tell(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.followers {
		w.add(item{Event: e, head: f.head})
	}
}

// loop looks at the head, and tells summaries, until the feed has no followers.
func (f *feed) loop() {
	interval, leave := f.watchStore()
	defer leave()
	looked, look := time.Now(), time.NewTimer(interval)
	defer look.Stop()
	for {
		select {
		case <-f.ctx.Done():
			f.fail(context.Cause(f.m.ctx))
			return
		case <-f.wake:
		case <-look.C:
		}
		if f.reported.Swap(false) || time.Since(looked) >= interval {
			looked = time.Now()
			look.Reset(interval)
			if err := f.look(); err != nil && f.ctx.Err() == nil {
				f.fail(err)
			}
		}
		f.tellSummary()
		_ = backoff.Sleep(f.ctx, feedInterval)
	}
}

// look reads the head, and tries that again while the store is away, until
// Options.StoreTimeout is over.
func (f *feed) look() error {
	ctx, cancel := f.m.withinStoreTimeout(f.ctx)
	defer cancel()
	return f.m.persist(ctx, f.ledger.User(), mayPass, func(ctx context.Context) error {
		_, err := f.ledger.ReadHead(ctx)
		if err == nil && ledger.IsShared(f.ledger.User()) {
			err = f.lookAtThreads(ctx)
		}
		return err
	})
}

// watchStore wakes the loop when the head has changed, until leave is called. It
// returns the time after which the head is read in any case.
func (f *feed) watchStore() (interval time.Duration, leave func()) {
	isShared := ledger.IsShared(f.ledger.User())
	if _, ok := store.As[store.Watcher](f.m.db); !ok {
		if isShared {
			return threadsInterval, func() {}
		}
		return polledInterval, f.poll.follow(f.ledger.Key(), f.report)
	}
	f.m.background(func() {
		f.m.watchHead(f.ctx, f.ledger, func(h *ledger.Head) {
			f.report()
			f.mu.Lock()
			defer f.mu.Unlock()
			f.tellTurns(h)
		}, func() {
			if isShared {
				f.report()
			}
		})
	})
	return watchedInterval, func() {}
}

// report lets the loop look at the head.
func (f *feed) report() {
	f.reported.Store(true)
	turns.Wake(f.wake)
}

// tellSummary tells the newest head to those who do not know it, and the end of
// a run that another Manager held.
func (f *feed) tellSummary() {
	f.mu.Lock()
	h, before := f.head, f.told
	f.told = h
	f.mu.Unlock()
	if h == nil {
		return
	}
	var ended *ledger.Outcome
	if r := runOf(before); r != nil && !r.Message.Ticket && (h.Run == nil || h.Run.RunID != r.RunID) {
		ctx, cancel := context.WithTimeout(f.ctx, f.m.patience())
		defer cancel()
		fate, err := f.ledger.Fate(ctx, h, r.Message.ID)
		if err == nil && (fate.Place == ledger.PlaceEnded || fate.Place == ledger.PlaceDead) && fate.RunID == r.RunID {
			ended = &fate.Outcome
		}
	}
	if ended != nil {
		f.endChanges(ended.RunID) // it may be held here, and has not heard of its end yet
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ended != nil {
		f.tellEnded(*ended, h)
	}
	for w := range f.followers {
		w.addSummary(h)
	}
	f.tellThreads()
}

func runOf(h *ledger.Head) *ledger.Run {
	if h == nil {
		return nil
	}
	return h.Run
}

// fail ends the followers with an error.
func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.followers {
		w.fail(err)
	}
}

// watchHead calls seen with the head of a workspace, and again after each change
// by any process, until ctx ends. It returns at once if the store reports no
// changes. others is called after changes of other values whose keys begin as that
// of the head: for a user part, those of the threads.
func (m *core) watchHead(ctx context.Context, l *ledger.Ledger, seen func(*ledger.Head), others func()) {
	db, ok := store.As[store.Watcher](m.db)
	if !ok {
		return
	}
	delay := backoff.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for ctx.Err() == nil {
		changes := db.Watch(ctx, l.Key())
		if h, err := l.ReadHead(ctx); err == nil { // what was written before is not reported
			seen(h)
		}
		for e, err := range changes {
			if err != nil {
				if !mayPassInRun(err) {
					return
				}
				break
			}
			if e.Key != l.Key() {
				others()
				continue
			}
			h := &ledger.Head{}
			if !e.Deleted {
				if h, err = l.HeadOf(e.Entry); err != nil {
					continue
				}
			}
			delay.Reset()
			seen(h)
		}
		if delay.Wait(ctx) != nil {
			return
		}
	}
}

// pollHead calls seen with the head of a workspace in intervals, until ctx ends.
// The head is nil if it cannot be read and that will not pass.
func (m *core) pollHead(ctx context.Context, l *ledger.Ledger, interval time.Duration, seen func(*ledger.Head)) {
	for backoff.Sleep(ctx, interval) == nil {
		if h, err := l.ReadHead(ctx); err == nil || !mayPassInRun(err) {
			seen(h)
		}
	}
}
