package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// commitHead replaces the head by the result of apply, exactly once. It is the
// only way to write a head. An error means that nothing was changed, unless it
// is store.ErrUnknownOutcome.
func (l *Ledger) commitHead(ctx context.Context, apply transitionFunc) (*Head, error) {
	return l.newCommit().perform(ctx, apply)
}

// commitRun is commitHead for the writes on which a run depends. If such a write
// fails, it is tried again until ctx ends, as long as Options.Retry wants that.
func (l *Ledger) commitRun(ctx context.Context, apply transitionFunc) (*Head, error) {
	c := l.newCommit()
	c.retry.again = l.opts.Retry
	return c.perform(ctx, apply)
}

func (l *Ledger) enterInTurn(ctx context.Context) (leave func(), err error) {
	if l.opts.Turns == nil {
		return l.leave, nil
	}
	return l.leave, l.opts.Turns.Enter(ctx)
}

func (l *Ledger) newCommit() *commit {
	return &commit{Ledger: l, began: l.now(), op: randomText(opIDLen), retry: l.newRetry(nil), remember: true}
}

func (c *commit) perform(ctx context.Context, apply transitionFunc) (h *Head, err error) {
	err = c.retry.Do(ctx, func(ctx context.Context) (err error) {
		h, err = c.try(ctx, apply) // between two of them, others have their turns
		return err
	})
	if err = c.inDoubt(err); err != nil {
		c.cost.Unknown = errors.Is(err, store.ErrUnknownOutcome)
		c.notify(ctx, Notice{Cost: &c.cost})
	}
	return h, err
}

// try makes attempts, in turn, until one succeeds or fails. A call of the store
// that hangs does not keep others waiting.
func (c *commit) try(ctx context.Context, apply transitionFunc) (h *Head, err error) {
	enter := c.enter
	if enter == nil {
		enter = c.enterInTurn
	}
	leave, err := enter(ctx)
	if err != nil {
		return nil, err
	}
	if c.retry.patience <= 0 {
		defer leave()
	} else {
		late := time.AfterFunc(c.retry.patience, leave)
		defer func() {
			if late.Stop() { // else it leaves
				leave()
			}
		}()
	}
	for h == nil && err == nil {
		err = c.retry.InTime(ctx, func(ctx context.Context) (err error) {
			h, err = c.attempt(ctx, apply)
			return err
		})
	}
	if err == nil {
		c.notifyWritten(ctx)
	}
	return h, err
}

// commit is one operation with all its attempts.
type commit struct {
	*Ledger
	began   time.Time
	op      string // its id, by which an attempt finds out that an earlier one took effect
	missing missingBlobs
	basis   basis
	// substitute is what newSubstitute has returned, or nil.
	substitute *Head
	// remember says that the next attempt may replace the head that the ledger
	// remembers, without reading it.
	remember bool
	retry    Retry
	// with makes writes of the program's own in the transaction of the
	// operation; nil if there are none. The store is a store.Transactor.
	with func(*sql.Tx) error
	// enter waits for the turn of the operation, until leave is called; nil if that is
	// only the turn of the ledger.
	enter func(ctx context.Context) (leave func(), err error)
	// other is the operation on the user part that takes effect together with this
	// one; nil if there is none.
	other *pairedCommit

	written *transition // nil if an attempt is found to have taken effect that had seemed to fail

	cost     Effort   // so far
	inFlight int      // bytes of the last attempt
	unknown  int      // the number of attempts of unknown outcome
	openSeqs []uint64 // the heads that these attempts replace, as long as they may take effect
}

// basis is the head that an operation replaces.
type basis uint8

const (
	basisNewest  basis = iota // the newest one
	basisStored               // the one that is stored, although a newer one was seen
	basisDamaged              // that, or a substitute for one that cannot be read
)

// pairedCommit is an operation that takes effect together with another one, whose id
// it has.
type pairedCommit struct {
	*commit
	apply   transitionFunc
	touches bool // its head is replaced even if nothing changes
}

// attempt reads the head and tries to replace it. It returns the head that the
// operation has written, or neither a head nor an error if it is to be tried
// again.
func (c *commit) attempt(ctx context.Context, apply transitionFunc) (*Head, error) {
	t, written, err := c.prepare(ctx, apply)
	if t == nil {
		return written, err
	}
	if err := c.touchUserPart(t); err != nil {
		return nil, err
	}
	other, again, err := c.prepareOther(ctx)
	if err != nil || again {
		return nil, err
	}
	nonce := c.op + attemptText(c.cost.Tries)
	t.sign(nonce)
	writes := []*transition{t}
	if other != nil {
		other.sign(nonce)
		writes = append(writes, other)
	}
	c.cost.Tries++
	err = c.replaceHeads(ctx, writes)
	switch {
	case err == nil:
		c.cost.Bytes += c.inFlight
		c.noteWritten(t)
		if other != nil {
			c.other.noteWritten(other)
		}
		return t.Head, nil
	case errors.Is(err, store.ErrConflict):
		var failed *store.Error
		for _, t := range writes {
			if !errors.As(err, &failed) || failed.Key == "" || failed.Key == t.ledger.key {
				t.ledger.noteRace(t.remembered)
			}
		}
		if c.cost.Conflicts++; c.cost.Conflicts < 3 { // a few conflicts are no contention
			return nil, nil
		}
	case errors.Is(err, store.ErrUnknownOutcome):
		c.openSeqs = append(c.openSeqs, t.baseSeq)
		if other != nil {
			c.other.openSeqs = append(c.other.openSeqs, other.baseSeq)
		}
		if c.unknown++; c.unknown == maxUnknown && c.retry.again == nil {
			return nil, err
		}
	default:
		return nil, err
	}
	return nil, c.retry.wait(ctx)
}

// prepare reads the head and returns the transition that apply makes of it. It
// returns the head instead if that has the operation, and neither of them nor an
// error if the attempt is to be made again.
func (c *commit) prepare(ctx context.Context, apply transitionFunc) (*transition, *Head, error) {
	h, cond, remembered, err := c.base(ctx)
	if err != nil {
		return nil, nil, err
	}
	if h.hasOp(c.op) {
		c.cost.Bytes += c.inFlight
		again, err := c.acknowledge(ctx, h, cond)
		switch {
		case err != nil:
			return nil, nil, err
		case again:
			return nil, nil, c.retry.wait(ctx)
		}
		c.seen.noteWritten(h) // what an acceptance reads does not count before
		return nil, h, nil
	}
	if err := c.closeAttempts(h); err != nil {
		return nil, nil, err
	}
	t := &transition{
		ledger: c.Ledger, cond: cond, remembered: remembered, replace: c.basis == basisDamaged,
		makes: !h.Exists() || c.basis == basisDamaged, Head: h.clone(), ctx: ctx, base: h.Position(),
		baseSeq: h.Seq, listed: h.listed(), now: c.began,
	}
	t.reader = contentReader{blobStore: c.blobStore, contents: c.contents, lists: c.lists}
	err = apply(t)
	if err == nil && t.makes && h.Closed && t.Deleted.IsZero() {
		err = work.ErrUserDeleted
	}
	if err != nil {
		if remembered { // the present head may allow it
			return nil, nil, nil
		}
		if c.missing.retry(err, h) {
			return nil, nil, c.retry.wait(ctx)
		}
		return nil, nil, err
	}
	c.missing = missingBlobs{}                      // all of them were there
	if c.basis == basisNewest && c.seen.isPast(h) { // another goroutine has seen a newer head
		return nil, nil, c.retry.wait(ctx)
	} else if c.basis != basisNewest { // its successors must be newer than all heads that were seen
		c.seen.overtake(t.Head)
	}
	if t.Epoch == 0 {
		t.Epoch = c.seen.nextEpoch(c.began, h)
	}
	if c.opts.Confirm {
		t.noteBase(h)
	}
	return t, nil, nil
}

// base returns the head that the attempt replaces. It may be the one that the
// ledger remembers: if that was replaced, the write of the attempt fails.
func (c *commit) base(ctx context.Context) (h *Head, cond store.Condition, remembered bool, err error) {
	remember := c.remember && c.basis == basisNewest
	if c.remember = false; remember {
		if h, cond := c.recallHead(); h != nil {
			return h, cond, true, nil
		}
	}
	h, cond, err = c.read(ctx)
	return h, cond, false, err
}

// read reads the head that the attempt replaces.
func (c *commit) read(ctx context.Context) (*Head, store.Condition, error) {
	if c.basis == basisNewest {
		return c.readHead(ctx)
	}
	h, cond, err := c.fetchHead(ctx)
	if c.basis == basisDamaged && errors.Is(err, work.ErrCorrupt) {
		if c.substitute == nil { // else the blobs may be those of an attempt
			if c.substitute, err = c.newSubstitute(ctx, err); err != nil {
				return nil, cond, err
			}
		}
		return c.substitute, cond, nil
	}
	return h, cond, err // h counts as seen when it is accepted
}

// attemptText returns one character for the number of an attempt.
func attemptText(n int) string {
	return textDigits[n%len(textDigits):][:1]
}

// closeAttempts forgets the attempts that can no longer take effect because the
// head that they replace is gone. They did not take effect, since h does not
// have the operation, if h would still know it.
func (c *commit) closeAttempts(h *Head) error {
	var open []uint64
	for _, seq := range c.openSeqs {
		switch {
		case seq == h.Seq:
			open = append(open, seq)
		case seq > h.Seq:
			return fmt.Errorf("%w: %s: the head is older than the one to be replaced", store.ErrUnknownOutcome, c.key)
		case !h.hasOpsSince(seq + 1):
			return fmt.Errorf("%w: %s: too many other writes since", store.ErrUnknownOutcome, c.key)
		}
	}
	c.openSeqs = open
	return nil
}

// inDoubt returns err, as store.ErrUnknownOutcome if an attempt may still take
// effect.
func (c *commit) inDoubt(err error) error {
	if err == nil || len(c.openSeqs) == 0 || errors.Is(err, store.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

// replaceHeads writes the heads of transitions, and writes and deletes blobs with
// them, all or none.
func (c *commit) replaceHeads(ctx context.Context, all []*transition) error {
	n := 0
	for _, t := range all {
		n += len(t.newBlobs) + 1 + len(t.droppedBlobs) + maxBusyWrites
	}
	writes := make([]store.Write, 0, n)
	var heads [2]int // where the writes have them: that of the workspace, and that of the user part
	c.inFlight = 0
	for i, t := range all {
		heads[i] = len(writes) + len(t.newBlobs)
		writes = t.ledger.appendWrites(writes, t)
	}
	for _, w := range writes {
		c.inFlight += len(w.Value)
	}
	revs, err := c.writeBatch(ctx, writes)
	if err != nil {
		return err
	}
	for i, t := range all {
		t.revision = revs[heads[i]]
	}
	return nil
}

// appendWrites appends the writes of a transition: new blobs, the head, and what
// goes with it.
func (l *Ledger) appendWrites(writes []store.Write, t *transition) []store.Write {
	for _, b := range t.newBlobs {
		key := l.blobKey(b.name)
		writes = append(writes, store.Write{Key: key, Value: l.sealer.seal(l.key, key, b.data), Cond: store.IfAbsent})
	}
	writes = append(writes, store.Write{Key: l.key, Value: l.sealer.seal(l.key, l.key, t.encode()), Cond: t.cond})
	t.keyID = l.sealer.keyID()
	for _, name := range t.droppedBlobs {
		writes = append(writes, store.Write{Key: l.blobKey(name), Delete: true})
	}
	return l.appendBusy(writes, t.listed, t.Head.listed(), !t.replace)
}

func (c *commit) writeBatch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if c.with == nil {
		return c.db.Batch(ctx, writes)
	}
	tx, ok := store.As[store.Transactor](c.db)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	var own *functionError
	revs, err := tx.Transact(ctx, writes, func(tx *sql.Tx) error {
		own = nil
		if err := c.with(tx); err != nil {
			own = &functionError{err}
			return own
		}
		return nil
	})
	if own != nil && ctx.Err() == nil && errors.Is(err, own) { // else the end of ctx may be the reason
		return nil, &ProgramError{own.error}
	}
	return revs, err
}

// functionError marks the error of a function of the program for its way through
// the store, which looks for the answers of the database in it.
type functionError struct{ error }

func (e *functionError) Unwrap() error { return e.error }

// noteWritten notes that the head of a transition is written.
func (c *commit) noteWritten(t *transition) {
	c.cacheHead(t.Head, t.revision)
	c.seen.noteWritten(t.Head)
	if c.opts.Confirm {
		c.seen.noteKept(t.Head)
	}
	for _, b := range t.newBlobs {
		c.cache.add(b.name, b.data)
	}
	c.written = t
}

// pairWith lets the operation take effect together with one on the user part.
func (c *commit) pairWith(l *Ledger, apply transitionFunc) {
	c.other = &pairedCommit{commit: l.newCommit(), apply: apply}
	c.other.op = c.op
}

// touchUserPart lets the operation replace the head of the user part, if need be by
// one that says the same, if its transition makes a thread, also one that was
// deleted. So when that head says that the user was deleted, no thread is made
// any more: a batch that is about to make one has a condition that does not hold.
// Other writes of a thread do not touch it.
func (c *commit) touchUserPart(t *transition) error {
	touches := c.opts.UserPart != nil && t.makes && t.Deleted.IsZero()
	if touches && c.other == nil {
		l, err := c.opts.UserPart()
		if err != nil {
			return err
		}
		c.pairWith(l, func(*transition) error { return errNoChange })
	}
	if c.other != nil {
		c.other.touches = touches
	}
	return nil
}

// prepareOther prepares the operation on the user part, if there is one that
// changes it. The attempt is to be made again if it can tell that something else
// has happened.
func (c *commit) prepareOther(ctx context.Context) (t *transition, again bool, err error) {
	if c.other == nil {
		return nil, false, nil
	}
	t, written, err := c.other.prepare(ctx, func(t *transition) error {
		err := c.other.apply(t)
		switch {
		case !c.other.touches || !errors.Is(err, errNoChange):
			return err
		case t.Closed:
			return work.ErrUserDeleted
		}
		return nil
	})
	switch {
	case errors.Is(err, errNoChange):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("what the threads of the user share: %w", err)
	case written != nil: // the head of the thread was read before
		return nil, true, c.retry.wait(ctx)
	}
	return t, t == nil, nil
}
