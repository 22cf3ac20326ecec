package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agentstate/state/store"
)

// ledger is one workspace in a store. It is safe for concurrent use; all ledgers
// of one workspace, in all processes, see the same.
type ledger struct {
	db     store.Store
	batch  store.Batcher // nil if the store is none
	user   string
	key    string
	sealer *sealer
	anchor Anchor
	pause  func(context.Context, time.Duration) error
	ttl    time.Duration
	now    func() time.Time
	// history is how many bytes of records there have to be before they are compacted.
	minHistory int

	mu            sync.Mutex
	anchorRead    bool // the anchor was asked
	seen          Mark // the latest head that was seen
	cachedContent contentAt
	lastHead      *head          // as it was read or written last
	lastRevision  store.Revision // of last
}

// Mark names one state of a workspace: how often it was written, and the last
// write.
type Mark struct {
	Seq   uint64
	Nonce string
}

// patience is how often something is read again that ought to be there.
const maxRereads = 4

// goneError reports a blob that is not there: the head that refers to it may have
// been replaced, and is read again.
type missingBlobError struct{ key string }

func (e *missingBlobError) Error() string { return ErrCorrupt.Error() + ": " + e.key + ": missing" }
func (e *missingBlobError) Unwrap() error { return ErrCorrupt }

var errNoChange = errors.New("workspace: nothing to do")

// read returns the head, and the condition under which it is replaced.
func (l *ledger) readHead(ctx context.Context) (*head, store.Condition, error) {
	if err := l.readAnchor(ctx); err != nil {
		return nil, store.Always, err
	}
	for try := 0; ; try++ {
		before := l.seenMark()
		h, cond, err := l.fetchHead(ctx)
		if err != nil {
			return nil, cond, err
		}
		if l.noteSeen(h, before) {
			return h, cond, nil
		}
		if try == maxRereads {
			return nil, cond, fmt.Errorf("%w: %s", ErrRolledBack, l.key)
		}
		if err := l.pause(ctx, backoff(try)); err != nil {
			return nil, cond, err
		}
	}
}

// recall learns from the anchor what was seen by others.
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
		return &head{Format: format}, store.IfAbsent, nil
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

// recent returns the head of a revision, if it is the one that was read or written
// last. A revision names one write, so it need not be decoded again.
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

// mark returns the latest head that was seen.
func (l *ledger) seenMark() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// fresh notes that a head was seen, and reports whether it is not older than what
// was seen before it was asked for. Meanwhile others may have seen newer ones.
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

// transition changes the head of a draft, or refuses to. It depends on nothing but
// the draft and what was settled before, since it may be asked again, for another
// head.
type transitionFunc func(d *transition) error

// draft is the next head of a workspace, with what is written along with it.
type transition struct {
	*head
	ctx          context.Context
	ledger       *ledger
	base         position                // of the head that is replaced
	prepared     map[string]preparedBlob // blobs that are in the store already, by hash
	newBlobs     []newBlob               // blobs that have to be
	droppedBlobs []string                // names of blobs to which no head will refer again
}

// blob is one that is to be written, and ready one that was.
type newBlob struct {
	name string
	data []byte
}

type preparedBlob struct {
	ref    blobRef
	expiry uint64
	chain  string // the chain of the head for which it was made
}

// blob returns a ref to data, which is written before the head is.
func (d *transition) addBlob(data []byte) blobRef {
	sum := hash(data)
	if r, ok := d.prepared[sum]; ok && d.Seq < r.expiry && r.chain == d.base.Chain {
		return r.ref
	}
	name := blobName(d.Seq + blobLead)
	d.newBlobs = append(d.newBlobs, newBlob{name, data})
	return blobRef{Name: name, Hash: sum, Bytes: len(data)}
}

// drop says that no head will refer to a blob any more.
func (d *transition) dropBlob(r blobRef) { d.droppedBlobs = append(d.droppedBlobs, r.Name) }

// tries is how often transact begins again after an unknown outcome.
const maxUnknown = 12

// transact replaces the head by what f makes of it, once. An error means that
// nothing was changed, unless it is store.ErrUnknownOutcome.
func (l *ledger) commitHead(ctx context.Context, f transitionFunc) (*head, error) {
	var (
		op        = newID()
		doubts    []uint64 // the seqs read by attempts of unknown outcome
		made      = map[string]preparedBlob{}
		conflicts int
		unknown   int
		gone      absentHead
	)
	// doubt returns err, unless an attempt may still take effect.
	doubt := func(err error) error {
		if len(doubts) == 0 || errors.Is(err, store.ErrUnknownOutcome) {
			return err
		}
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
	}
	for {
		h, cond, err := l.readHead(ctx)
		if err != nil {
			return nil, doubt(err)
		}
		if h.hasOp(op) {
			return h, nil
		}
		// An attempt that replaces an earlier head fails from now on.
		open := doubts[:0]
		for _, base := range doubts {
			switch {
			case base == h.Seq:
				open = append(open, base)
			case !h.hasOpsSince(base + 1):
				return nil, fmt.Errorf("%w: %s: too many others wrote since", store.ErrUnknownOutcome, l.key)
			}
		}
		doubts = open

		d := &transition{head: h, ctx: ctx, ledger: l, base: h.position(), prepared: made}
		base := h.Seq
		if err := f(d); err != nil {
			if !gone.changed(err, h) {
				return nil, doubt(err)
			}
			if err := l.pause(ctx, backoff(gone.times)); err != nil {
				return nil, doubt(err)
			}
			continue
		}
		if l.batch == nil && len(d.newBlobs) > 0 {
			if err := l.putBlobs(ctx, d.newBlobs); err != nil {
				return nil, doubt(err)
			}
			for _, b := range d.newBlobs {
				r := blobRef{Name: b.name, Hash: hash(b.data), Bytes: len(b.data)}
				made[r.Hash] = preparedBlob{r, base + blobLead, d.base.Chain}
			}
			continue
		}
		if l.seenMark().Seq > base { // others of this process have seen a newer head meanwhile
			if err := l.pause(ctx, backoff(conflicts)); err != nil {
				return nil, doubt(err)
			}
			conflicts++
			continue
		}
		h.Seq++
		h.Nonce = newID()
		h.Ops = append(h.Ops, appliedOp{op, h.Seq})
		h.Ops = h.Ops[max(0, len(h.Ops)-maxOps):]
		rev, err := l.replaceHead(ctx, d, cond)
		switch {
		case err == nil:
			l.cacheHead(h, rev)
			l.headWritten(ctx, d)
			return h, nil
		case errors.Is(err, store.ErrConflict):
			conflicts++
			if conflicts < 3 {
				continue
			}
		case errors.Is(err, store.ErrUnknownOutcome):
			doubts = append(doubts, base)
			if unknown++; unknown == maxUnknown {
				return nil, err
			}
		default:
			return nil, doubt(err)
		}
		if err := l.pause(ctx, backoff(conflicts+unknown-3)); err != nil {
			return nil, doubt(err)
		}
	}
}

// absence is how often something was not there to which the same head refers.
type absentHead struct {
	seq   uint64
	times int
}

// moved reports whether err is about a blob that may be gone since another head
// has replaced the one that was read.
func (a *absentHead) changed(err error, h *head) bool {
	if gone := (*missingBlobError)(nil); !errors.As(err, &gone) {
		return false
	}
	if h.Seq != a.seq {
		*a = absentHead{seq: h.Seq}
	}
	a.times++
	return a.times <= maxRereads
}

// replace writes the draft's head, and with a Batcher all that belongs to it.
func (l *ledger) replaceHead(ctx context.Context, d *transition, cond store.Condition) (store.Revision, error) {
	data, err := d.encode()
	if err != nil {
		return "", err
	}
	data = l.sealer.seal(l.key, l.key, data)
	if l.batch == nil {
		return l.db.Put(ctx, l.key, data, cond)
	}
	var writes []store.Write
	for _, b := range d.newBlobs {
		key := l.blobKey(b.name)
		writes = append(writes, store.Write{Key: key, Value: l.sealer.seal(l.key, key, b.data), Cond: store.IfAbsent})
	}
	writes = append(writes, store.Write{Key: l.key, Value: data, Cond: cond})
	for _, name := range d.droppedBlobs {
		writes = append(writes, store.Write{Key: l.blobKey(name), Delete: true})
	}
	revs, err := l.batch.Batch(ctx, writes)
	if err != nil {
		return "", err
	}
	return revs[len(d.newBlobs)], nil
}

// wrote does what is to be done after a head was written: nothing of it can make
// the write undone.
func (l *ledger) headWritten(ctx context.Context, d *transition) {
	l.noteSeen(d.head, Mark{})
	if l.batch == nil {
		for _, name := range d.droppedBlobs {
			_ = l.db.Delete(ctx, l.blobKey(name), store.Always) // collect finds it
		}
	}
	if l.anchor != nil {
		_ = l.anchor.Advance(ctx, l.user, Mark{d.Seq, d.Nonce}) // the next one does
	}
}

func (l *ledger) blobKey(name string) string { return l.key + blobInfix + name }

// put writes blobs, which nobody else has the names of.
func (l *ledger) putBlobs(ctx context.Context, list []newBlob) error {
	for _, b := range list {
		key := l.blobKey(b.name)
		data := l.sealer.seal(l.key, key, b.data)
		for try := 0; ; try++ {
			_, err := l.db.Put(ctx, key, data, store.IfAbsent)
			if err == nil || errors.Is(err, store.ErrConflict) {
				break
			}
			// Until a head refers to it, it is as good as not written.
			if !errors.Is(err, store.ErrUnknownOutcome) || try == maxUnknown {
				return fmt.Errorf("%s: not written: %v", l.key, err)
			}
			if err := l.pause(ctx, backoff(try)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetch returns the content of a blob. A blob that is not there is a
// goneError.
func (l *ledger) fetchBlob(ctx context.Context, r blobRef) ([]byte, error) {
	key := l.blobKey(r.Name)
	e, err := l.db.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &missingBlobError{key}
	}
	if err != nil {
		return nil, err
	}
	data, err := l.sealer.open(l.key, key, e.Value)
	if err != nil {
		return nil, err
	}
	if hash(data) != r.Hash {
		return nil, corrupt(key, "the hash does not fit")
	}
	return data, nil
}

// fetchJSON decodes a blob.
func fetchBlobJSON[T any](ctx context.Context, l *ledger, r blobRef) (T, error) {
	var v T
	data, err := l.fetchBlob(ctx, r)
	if err == nil {
		if err = json.Unmarshal(data, &v); err != nil {
			err = fmt.Errorf("%w: %s: %w", ErrCorrupt, l.blobKey(r.Name), err)
		}
	}
	return v, err
}

// backoff returns a random time that grows with the number of tries.
func backoff(n int) time.Duration {
	most := time.Millisecond << min(max(n, 0), 8)
	return most/2 + rand.N(most)
}

// sleep waits, or returns why ctx has ended.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
