package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// Ledger is one workspace in a store. It is safe for concurrent use. The
// ledgers of one workspace in all processes share nothing but the store.
type Ledger struct {
	contentReader
	user  string
	opts  Options
	now   func() time.Time
	leave func() // Turns.Leave, or does nothing
	// failed is notifyFailed.
	failed func(context.Context, error)
	// minHistory is the number of bytes of records below which they are not
	// compacted, so that a compaction costs a small share of what is written.
	minHistory int

	index queueIndex
	seen  seenHead

	mu           sync.Mutex
	lastHead     *Head          // the head read or written last
	lastRevision store.Revision // of lastHead
	raced        bool           // another writer has replaced lastHead before an operation did
}

const minHistoryBytes = 64 << 10

// Options configures a Ledger.
type Options struct {
	Sealer *Sealer       // nil if values are not sealed
	TTL    time.Duration // of the leases that the Ledger takes
	// Notify is told what happens in the workspace, with the context of the operation.
	// The caller of the operation may hold locks, and others may wait for their turn,
	// so it must not wait. May be nil.
	Notify func(ctx context.Context, of *Ledger, n Notice)
	// DeadLetters is the maximum number of dead letters (default 64).
	DeadLetters int
	// RecordBytes is the number of bytes of records that compaction keeps. If it is
	// not positive, it keeps none.
	RecordBytes int
	// Retry reports whether a write of a run that has failed with an error is
	// tried again, until its context ends. If it is nil, none is.
	Retry func(error) bool
	// Patience is the time after which an attempt of such a write is ended, and
	// after which other operations do not wait for one that has not ended; 0 if
	// there is no limit.
	Patience time.Duration
	// Fits returns an error for content that the Manager cannot use. Such
	// content is neither given a message nor taken over. May be nil.
	Fits func(*document.Document) error
	// Schema says which values are secrets. If it is nil, none are.
	Schema *state.Schema
	// Unfinished returns the effects that keep what a run has said which is cancelled
	// or interrupted, behind what ends it. May be nil.
	Unfinished func(content *document.Document, u Unfinished) ([]state.Effect, error)
	// UserPart returns the ledger of what the threads of the user share. It is nil
	// unless the workspace is a thread.
	UserPart func() (*Ledger, error)
	// Confirm says that the store shows writes which it has not acknowledged and may
	// take back. A write is then made when a write behind it is acknowledged, and what
	// was only shown does not count as seen.
	Confirm bool
	// Live says that the runs have a Live.
	Live bool
	// Turns puts the writes of this process in order; may be nil.
	Turns Turns
}

// Turns lets one operation at a time write, so that the operations of one
// process do not collide with each other.
type Turns interface {
	Enter(ctx context.Context) error
	Leave()
}

// New returns the ledger of a user's workspace, whose head has a key.
func New(db store.Store, user, key string, opts Options) *Ledger {
	if opts.DeadLetters == 0 {
		opts.DeadLetters = maxDeadLetters
	}
	if again := opts.Retry; again != nil {
		opts.Retry = func(err error) bool { return !isOutcome(err) && again(err) }
	}
	leave := func() {}
	if opts.Turns != nil {
		leave = opts.Turns.Leave
	}
	blobs := blobStore{db: db, key: key, sealer: opts.Sealer, pause: backoff.Sleep, cache: &blobCache{}}
	l := &Ledger{
		contentReader: contentReader{blobStore: blobs, contents: &contentCache{fits: opts.Fits}, lists: &blobCache{}},
		user:          user, opts: opts, now: CurrentTime, leave: leave, minHistory: minHistoryBytes,
	}
	l.failed = l.notifyFailed
	return l
}

// isOutcome reports whether an error of a transition is what the operation is to
// return, and none of the store.
func isOutcome(err error) bool {
	return errors.Is(err, errNoChange) || errors.As(err, new(*uncheckedError)) || errors.As(err, new(*ProgramError))
}

// Key returns the key of the head in the store.
func (l *Ledger) Key() string { return l.key }

// User returns the user whose workspace it is.
func (l *Ledger) User() string { return l.user }

// maxRereads is the number of times that stale data is read again.
const maxRereads = 4

// ReadHead returns the head. The head of a workspace that does not exist has Seq
// 0.
func (l *Ledger) ReadHead(ctx context.Context) (*Head, error) {
	h, _, err := l.readHead(ctx)
	return h, err
}

// readHead returns the head and the condition under which it may be replaced.
// The head of a workspace that does not exist has Seq 0.
func (l *Ledger) readHead(ctx context.Context) (*Head, store.Condition, error) {
	delay := newBackoff()
	var older error
	for reread := 0; ; reread++ {
		before := l.seen.floor()
		h, cond, err := l.fetchHead(ctx)
		switch {
		case errors.As(err, new(*absentHeadError)): // the read may have been stale
		case err != nil:
			return nil, cond, err
		case l.seen.note(h, before):
			if h.Seq > 0 && h.mark() != before {
				l.notify(ctx, Notice{Head: h})
			}
			return h, cond, nil
		default:
			older = fmt.Errorf("%w: %s", work.ErrRolledBack, l.key)
		}
		if reread == maxRereads && older != nil && l.opts.Confirm && l.seen.takeBack(h) {
			l.notify(ctx, Notice{Head: h, TakenBack: true})
			return h, cond, nil
		}
		if reread == maxRereads {
			return nil, cond, cmp.Or(older, err) // a head that is older is not absent
		}
		if err := l.pause(ctx, delay.Delay()); err != nil {
			return nil, cond, err
		}
	}
}

func (l *Ledger) fetchHead(ctx context.Context) (*Head, store.Condition, error) {
	entries, err := l.db.Get(ctx, l.key)
	if err != nil {
		return nil, store.Always, err
	}
	e := entries[0]
	if e.Revision == "" {
		return l.newHead(), store.IfAbsent, l.checkAbsence(ctx)
	}
	h, err := l.HeadOf(e)
	return h, store.IfRevision(e.Revision), err
}

// HeadOf returns the head in an entry of the store.
func (l *Ledger) HeadOf(e store.Entry) (*Head, error) {
	if h := l.cachedHead(e.Revision); h != nil {
		return h, nil
	}
	h, err := l.sealer.openHead(l.user, l.key, e.Value)
	if err == nil {
		l.cacheHead(h, e.Revision)
	}
	return h, err
}

// newHead returns the head of a workspace that does not exist. Its epoch begins
// when it is written.
func (l *Ledger) newHead() *Head { return &Head{Format: headFormat, User: l.user} }

// absentHeadError reports that a head is gone, although there are blobs that only
// a head can have left.
type absentHeadError struct{ key string }

func (e *absentHeadError) Error() string {
	return work.ErrCorrupt.Error() + ": " + e.key + ": missing, although the workspace has other data"
}

func (e *absentHeadError) Unwrap() error { return work.ErrCorrupt }

// checkAbsence returns an absentHeadError if there are blobs, which are written
// together with a head.
func (l *Ledger) checkAbsence(ctx context.Context) error {
	left, err := l.hasBlobs(ctx)
	if left {
		err = &absentHeadError{l.key}
	}
	return err
}

// cachedHead returns the head with a revision, if it is the last one.
// A revision names one write, so its head need not be decoded again.
func (l *Ledger) cachedHead(rev store.Revision) *Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastHead == nil || l.lastRevision != rev {
		return nil
	}
	return l.lastHead
}

func (l *Ledger) cacheHead(h *Head, rev store.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastHead, l.lastRevision = h, rev
}

// recallHead returns the newest head that the ledger has seen, and the condition
// under which it may be replaced, without reading it; or nil. While other
// processes write, too, half of the operations read.
func (l *Ledger) recallHead() (*Head, store.Condition) {
	seen := l.seen.mark()
	l.mu.Lock()
	defer l.mu.Unlock()
	raced := l.raced
	l.raced = false
	if raced || l.lastHead == nil || l.lastHead.mark() != seen {
		return nil, store.Always
	}
	return l.lastHead, store.IfRevision(l.lastRevision)
}

// LastHead returns the head that was read or written last, or nil if it is not
// known.
func (l *Ledger) LastHead() *Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastHead
}

// noteRace notes that another writer was faster, if the operation has replaced a
// head that the ledger remembered.
func (l *Ledger) noteRace(remembered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raced = l.raced || remembered
}

// HasSeen reports whether the ledger remembers a head that it has seen.
func (l *Ledger) HasSeen() bool { return l.seen.mark().Seq > 0 }

// DropCaches frees the memory that only saves time.
func (l *Ledger) DropCaches() {
	l.index.clear()
	l.CacheContent(Position{}, nil)
	l.contents.noteOutcomes("", nil)
	l.cache.clear()
	l.lists.clear()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastHead = nil
}

// forget forgets the head, which was removed.
func (l *Ledger) forget() {
	l.DropCaches()
	l.seen.forget()
}

// ReadStable reads the head and calls fn, which reads what the head refers to.
// It begins again if a blob is missing because the head was replaced meanwhile.
func (l *Ledger) ReadStable(ctx context.Context, fn func(*Head) error) (*Head, error) {
	var missing missingBlobs
	delay := newBackoff()
	for {
		h, _, err := l.readHead(ctx)
		if err != nil {
			return nil, err
		}
		if err = fn(h); err == nil || !missing.retry(err, h) {
			return h, err
		}
		if err := l.pause(ctx, delay.Delay()); err != nil {
			return nil, err
		}
	}
}

// ReadPresent returns the head and the content at it.
func (l *Ledger) ReadPresent(ctx context.Context) (*Head, *document.Document, error) {
	var doc *document.Document
	h, err := l.ReadStable(ctx, func(h *Head) (err error) {
		doc, err = l.Content(ctx, h, h.Position())
		return err
	})
	return h, doc, err
}

// missingBlobs counts how often a blob was missing to which the same head
// refers.
type missingBlobs struct {
	seq   uint64
	times int
}

// retry reports whether err, from reading what h refers to, may be gone when
// the head is read again.
func (m *missingBlobs) retry(err error, h *Head) bool {
	if !isMissing(err) {
		return false
	}
	if h.Seq != m.seq {
		*m = missingBlobs{seq: h.Seq}
	}
	m.times++
	return m.times <= maxRereads
}

// writeMark identifies one write of a workspace.
type writeMark struct {
	Epoch uint64
	Seq   uint64 // the number of writes so far
	Nonce string
}

// seenHead remembers the newest head that a ledger has seen: a store that shows
// an older one has lost a write. It is safe for concurrent use.
type seenHead struct {
	mu       sync.Mutex
	newest   writeMark
	deletion writeMark // the newest head, if it says that the workspace was deleted, also when no head is found since
	kept     keptWrite // with Options.Confirm
}

// mark returns the mark of the newest head that was seen.
func (s *seenHead) mark() writeMark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// isPast reports whether a later head than h was seen.
func (s *seenHead) isPast(h *Head) bool {
	seen := s.mark()
	return (Age{seen.Epoch, seen.Seq}).After(h.Age())
}

// floor returns the mark of the head that the next one is or follows. If there
// was no head after a deletion, the deletion has expired, or the read was stale.
func (s *seenHead) floor() writeMark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.newest, s.deletion)
}

// note notes that a head was seen. It reports false if the head does not follow
// before, the floor when the read began: it is older, or its operations show that
// it comes from another one. A newer one that another goroutine has seen since
// does not count.
func (s *seenHead) note(h *Head, before writeMark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	floor := cmp.Or(s.newest, s.deletion)
	if s.deletion.Seq > 0 && (h.Seq == 0 || h.Epoch > floor.Epoch) { // the deleted workspace has expired
		s.replace(h)
		return true
	}
	if h.Epoch > floor.Epoch { // it is no older one
		before = floor
	}
	if h.Epoch < min(before.Epoch, floor.Epoch) || h.Seq < min(before.Seq, floor.Seq) || h.isFork(floor) ||
		h.isFork(before) {
		return false
	}
	if h.Epoch > floor.Epoch || h.Epoch == floor.Epoch && h.Seq >= floor.Seq {
		s.replace(h)
	}
	if version, known := h.keptVersion(); known {
		s.noteVersion(h.Epoch, version)
	}
	return true
}

// noteWritten notes that the ledger has written a head. It counts as seen even if it
// does not follow the newest one: a failover may have taken that back while the write
// was under way.
func (s *seenHead) noteWritten(h *Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := cmp.Or(s.newest, s.deletion); h.Age().After(Age{last.Epoch, last.Seq}) {
		s.replace(h)
	}
}

// replace makes a head the newest one. The caller holds mu.
func (s *seenHead) replace(h *Head) {
	s.newest = h.mark()
	if h.Seq == 0 {
		return
	}
	s.deletion = writeMark{}
	if !h.Deleted.IsZero() {
		s.deletion = s.newest
	}
}

// isFork reports whether the operations of the head show that it does not follow
// another one.
func (h *Head) isFork(of writeMark) bool {
	known := h.nonceAt(of.Seq)
	return of.Seq > 0 && known != "" && known != of.Nonce
}

// overtake makes a head follow all heads that were seen, in an epoch of its own.
func (s *seenHead) overtake(h *Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Seq, h.Epoch, h.Ops = max(h.Seq, s.newest.Seq, s.deletion.Seq)+acceptLead, 0, ""
}

// nextEpoch returns the name of an epoch that follows those of a head and of all
// heads that were seen.
func (s *seenHead) nextEpoch(now time.Time, h *Head) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nextEpoch(now, max(h.Epoch, s.newest.Epoch, s.deletion.Epoch))
}

// forget forgets the head, which was removed.
func (s *seenHead) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.deletion, s.kept = writeMark{}, writeMark{}, keptWrite{}
}

// mark returns the mark of the write that made the head.
func (h *Head) mark() writeMark { return writeMark{h.Epoch, h.Seq, h.nonce()} }

// acceptLead is the number of writes by which other Managers may have seen more
// of what was lost than the one that accepts the loss.
const acceptLead = 1 << 20
