package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
)

// ledger is one workspace in a store. It is safe for concurrent use. The
// ledgers of one workspace in all processes share nothing but the store.
type ledger struct {
	contentReader
	batch  store.Batcher // nil if the store is not a Batcher
	user   string
	anchor Anchor
	ttl    time.Duration // of the leases that this ledger takes
	now    func() time.Time
	// minHistory is the number of bytes of records below which they are not
	// compacted, so that there is something for Manager.Records.
	minHistory int

	mu           sync.Mutex
	anchorRead   bool
	seen         Mark           // the newest head seen
	lastHead     *head          // the head read or written last
	lastRevision store.Revision // of lastHead
}

const minHistoryBytes = 64 << 10

func newLedger(db store.Store, user, key string, s *sealer) *ledger {
	batch, _ := db.(store.Batcher)
	return &ledger{
		contentReader: contentReader{blobStore: blobStore{db: db, key: key, sealer: s, pause: backoff.Sleep}},
		batch:         batch, user: user, now: currentTime, minHistory: minHistoryBytes,
	}
}

// maxRereads is the number of times that stale data is read again.
const maxRereads = 4

// readHead returns the head and the condition under which it may be replaced.
// The head of a workspace that does not exist has Seq 0.
func (l *ledger) readHead(ctx context.Context) (*head, store.Condition, error) {
	if err := l.readAnchor(ctx); err != nil {
		return nil, store.Always, err
	}
	delay := newBackoff()
	for reread := 0; ; reread++ {
		before := l.seenMark()
		h, cond, err := l.fetchHead(ctx)
		if err != nil {
			return nil, cond, err
		}
		if l.noteSeen(h, before) {
			return h, cond, nil
		}
		if reread == maxRereads {
			return nil, cond, fmt.Errorf("%w: %s", ErrRolledBack, l.key)
		}
		if err := l.pause(ctx, delay.Delay()); err != nil {
			return nil, cond, err
		}
	}
}

// readAnchor asks the anchor, once, for the newest head that others have seen.
func (l *ledger) readAnchor(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.anchorRead || l.anchor == nil {
		return nil
	}
	m, err := l.anchor.Load(ctx, l.user)
	if err != nil {
		return fmt.Errorf("anchor: %w", err)
	}
	if m.Seq > l.seen.Seq {
		l.seen = m
	}
	l.anchorRead = true
	return nil
}

func (l *ledger) fetchHead(ctx context.Context) (*head, store.Condition, error) {
	e, err := l.db.Get(ctx, l.key)
	if errors.Is(err, store.ErrNotFound) {
		return &head{Format: headFormat}, store.IfAbsent, nil
	}
	if err != nil {
		return nil, store.Always, err
	}
	cond := store.IfRevision(e.Revision)
	if h := l.cachedHead(e.Revision); h != nil {
		return h, cond, nil
	}
	data, err := l.sealer.open(l.key, l.key, e.Value)
	if err != nil {
		return nil, cond, err
	}
	h, err := decodeHead(l.key, data)
	if err == nil {
		l.cacheHead(h, e.Revision)
	}
	return h, cond, err
}

// cachedHead returns a copy of the head with a revision, if it is the last one.
// A revision names one write, so its head need not be decoded again.
func (l *ledger) cachedHead(rev store.Revision) *head {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastHead == nil || l.lastRevision != rev {
		return nil
	}
	return l.lastHead.clone()
}

func (l *ledger) cacheHead(h *head, rev store.Revision) {
	c := h.clone()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastHead, l.lastRevision = c, rev
}

// dropCaches frees the memory that only saves time.
func (l *ledger) dropCaches() {
	l.cacheContent(position{}, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastHead = nil
}

func (l *ledger) seenMark() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// noteSeen notes that a head was seen. It reports false if the head is older
// than the newest one seen before the read began. A newer one that another
// goroutine has seen since does not count.
func (l *ledger) noteSeen(h *head, before Mark) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.Seq < before.Seq || h.Seq == l.seen.Seq && h.Nonce != l.seen.Nonce {
		return false
	}
	if h.Seq > l.seen.Seq {
		l.seen = Mark{h.Seq, h.Nonce}
	}
	return true
}

// readStable reads the head and calls fn, which reads what the head refers to.
// It begins again if a blob is missing because the head was replaced meanwhile.
func (l *ledger) readStable(ctx context.Context, fn func(*head) error) (*head, error) {
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

// readPresent returns the head and the content at it.
func (l *ledger) readPresent(ctx context.Context) (*head, *document.Document, error) {
	var doc *document.Document
	h, err := l.readStable(ctx, func(h *head) (err error) {
		doc, err = l.content(ctx, h, h.position())
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
func (m *missingBlobs) retry(err error, h *head) bool {
	if missing := (*missingBlobError)(nil); !errors.As(err, &missing) {
		return false
	}
	if h.Seq != m.seq {
		*m = missingBlobs{seq: h.Seq}
	}
	m.times++
	return m.times <= maxRereads
}
