package workspace

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Run is the handling of one message by the holder of the workspace. Nothing
// else changes the workspace during a run. All methods are safe for concurrent
// use.
type Run struct {
	liveContent
	m       *Manager
	ledger  *ledger.Ledger
	lease   *lease
	runID   string
	attempt int
	base    uint64 // the version at which the run began
	began   time.Time
	message Message
	refused error // why the content has no room for the message; the run fails with it
	manual  bool  // begun by Begin: Options.Run does not handle it
	ticket  bool  // begun by Do: it has no message

	steps atomic.Int64 // as Step, for those who must not wait for a commit
	hooks atomic.Bool  // the hooks for its end are being called
	// ending says that its end is being written, or was: the loss of the lease
	// may be due to that.
	ending atomic.Bool

	told    toldRun
	op      runOperation
	results reportedResults
	live    liveText
	retried error // with which its function has asked for another attempt

	parent context.Context // the context that ctx is made of
	held   context.Context // ends when the run is to be left
	cancel context.CancelCauseFunc
	ctx    context.Context // ends when the function that handles the message is to return
	expire context.CancelCauseFunc
	// returned is closed when that function has returned.
	returned chan struct{}
	// done makes Manager.Wait wait no longer. It may be called more than once.
	done func()

	ready bool // its content is loaded; guarded by Manager.mu

	progressMu sync.Mutex
	answers    int  // of models
	isAnswered bool // the last one has no calls

	mu    sync.Mutex // held during a commit
	ended error      // why nothing more can be committed
	left  error      // why its function can commit nothing more: it was left behind
	reply string
	// isEndStored says that the run was finished or failed here.
	isEndStored bool
	failure     string // the stored reason, if it has failed
}

// newRun returns the run of a head, whose lease this Manager has taken, and
// begins to renew the lease. The head was written after began. If newRun fails,
// it releases the run.
func (m *Manager) newRun(
	ctx context.Context, l *ledger.Ledger, h *ledger.Head, began time.Time, manual bool,
) (*Run, error) {
	r := &Run{
		m: m, ledger: l, runID: h.Run.RunID, attempt: h.Run.Attempt, base: h.Run.Base.Version, began: h.Run.Began, manual: manual,
		ticket: h.Run.Message.Ticket, answers: h.Run.Answers, isAnswered: h.Run.Ended,
		lease: newLease(h.Run, m.holder.leaseOf(h.Run), began), parent: ctx, returned: make(chan struct{}),
	}
	r.live.run = r
	m.slots.take(r.lease)
	untrack := m.trackRun()
	ctx, endTask := newTraceTask(ctx)
	r.done = sync.OnceFunc(func() {
		r.endLost()
		untrack()
		m.slots.free(r.lease)
		endTask()
	})
	held, cancel := context.WithCancelCause(ctx)
	ctx, r.held, r.cancel = held, held, cancel
	m.addLocalRun(r)
	err := ErrClosed
	if m.background(func() { r.keepLease(held) }) {
		ctx = r.beginOperation(held, h)
		r.held = ctx
		err = r.load(ctx, h)
	} else {
		defer r.lease.incarnation.leave()
	}
	if err != nil {
		r.release(err)
		r.markReturned()
		r.done()
		return nil, err
	}
	ctx, r.expire = context.WithCancelCause(ctx)
	r.ctx = state.NewContext(NewContext(ctx, r), r.state)
	if t, ok := m.opts.Tracer.(tool.Tracer); ok {
		r.ctx = tool.WithTracer(r.ctx, t)
	}
	r.tellStarted()
	return r, nil
}

// tellStarted tells those who follow the workspace that the run is held here.
func (r *Run) tellStarted() {
	r.told = toldRun{&r.Workspace, r.runID, r.message.ID, r.ctx}
	r.m.mu.Lock()
	r.ready = true // a follower that comes now finds the run
	r.m.mu.Unlock()
	if f := r.m.feeds.of(r.user); f != nil && r.lease.lost() == nil {
		f.tellStarted(&r.told)
	}
}

// load reads the message and the content of the run.
func (r *Run) load(ctx context.Context, h *ledger.Head) error {
	if r.lease.age() > r.lease.ttl/2 { // the write has waited for the store
		if err := r.renew(r.lease.ttl); errors.Is(err, ErrFenced) || errors.Is(err, ErrRolledBack) {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	content, err := r.read(ctx, h)
	if err != nil {
		return err
	}
	c, err := newLiveContent(r.ledger.User(), r.m.opts.Schema, content, h.Position())
	if err != nil {
		return err
	}
	r.liveContent = *c
	r.messageID = r.message.ID
	r.steps.Store(int64(r.position.Version - r.base))
	r.results.last = c.storedState
	if r.ended != nil {
		return r.ended
	}
	if r.position.Version == r.base && !r.ticket { // otherwise a commit of the run has stored it
		r.refused = r.receiveMessage()
		return nil
	}
	r.findDecisions()
	return nil
}

// read reads the message of the run, and returns the content.
func (r *Run) read(ctx context.Context, h *ledger.Head) (content *document.Document, err error) {
	if h.Run.Message.Blob == "" { // most need no store
		if content = r.ledger.CachedContent(h.Position()); content != nil {
			r.message, err = readMessage(ctx, r.ledger, h.Run.Message)
			return content, err
		}
	}
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	err = r.m.persist(ctx, r.ledger.User(), mayPassInRun, func(ctx context.Context) (err error) {
		if r.message, err = readMessage(ctx, r.ledger, h.Run.Message); err != nil {
			return err
		}
		content, err = r.ledger.Content(ctx, h, h.Position())
		return err
	})
	return content, err
}

// receiveMessage adds the message to the conversation and to the settings.
func (r *Run) receiveMessage() error {
	r.receiveDecisions()
	if r.message.Content != nil {
		if err := state.Messages.Set(r.state, []state.Message{r.message.Content}); err != nil {
			return err
		}
	}
	return r.settings.change(func(s *Settings) {
		if r.message.ChatID != "" {
			s.ChatID = r.message.ChatID
		}
		if r.message.Platform != "" {
			s.Platform = r.message.Platform
		}
	})
}

// ID returns the id of the run. It stays the same when another process takes
// the run over, which makes the calls again that have no result yet. Calls that
// were committed before they were made keep their ids, so that ID together with
// the id of the call is an idempotency key. With TakeoverRestart, ID together with
// Step is a key for everything between two commits.
func (r *Run) ID() string { return r.runID }

// Step returns the number of records of the run. A run that is taken over
// continues at the same step, except that a record that answers pending tool
// calls counts too.
func (r *Run) Step() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.position.Version - r.base)
}

// Attempt returns the number of attempts before this one: the times that the
// run was taken over from a holder that had died, or was tried again because of
// RetryAfter.
func (r *Run) Attempt() int { return r.attempt }

// Message returns the message that is being handled. It is in the conversation.
// A run of [Manager.Do] has the zero Message.
func (r *Run) Message() Message { return r.message }

// Context returns a context that ends when the run loses its lease, with the
// context of Handle or Begin that has begun the run, with the context of Open,
// and with Close. If the lease is lost, context.Cause is ErrFenced, together
// with ErrInterrupted if another message or a reset has ended the run. The
// context carries the run, for FromContext, and the state, for
// state.FromContext.
func (r *Run) Context() context.Context { return r.ctx }

// Store returns a store for the user's data outside the workspace. Writes to it
// take effect at once, whatever happens to the run.
func (r *Run) Store() *store.Manager { return r.m.Store(r.user) }

// SetReply sets the reply that Handle returns to the sender of the message. The
// last call counts. When the run has ended, SetReply does nothing.
//
// A workspace remembers its newest replies, up to 64 KiB together. A message
// whose reply is forgotten still counts as handled: Await in another process, and
// duplicates, get an empty reply.
func (r *Run) SetReply(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil || r.left != nil || r.lease.lost() != nil {
		return
	}
	r.reply = text
	if f := r.m.feeds.of(r.user); f != nil {
		f.tellReply(&r.told, text) // before the end of the run
	}
}

// Reply returns the reply that was set last.
func (r *Run) Reply() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reply
}

// failureText returns the stored reason of a run that has failed here.
func (r *Run) failureText() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// Commit stores the changes since the last commit. Committed changes survive
// the process: a holder that takes the run over continues with them. If the
// store is away, Commit tries again until ctx ends or the lease is nearly over.
//
// If Commit returns an error, nothing was stored, unless the error is
// store.ErrUnknownOutcome. In that case the run has ended here, and the holder
// that takes it over sees what was stored.
func (r *Run) Commit(ctx context.Context) error { return r.commitWith(ctx, nil) }

func (r *Run) commitWith(ctx context.Context, with func(*sql.Tx) error) error {
	committing, op := r.begin(ctx, OpCommit)
	err := r.commit(committing, &op, with)
	r.endCommit(&op, err)
	if err != nil {
		return wrapError("commit", r.user, err)
	}
	return nil
}

// commit makes a version even without changes if there is a function for the
// transaction.
func (r *Run) commit(ctx context.Context, op *operation, with func(*sql.Tx) error) error {
	defer startCommitRegion(ctx).End()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmp.Or(r.left, r.checkHeld()); err != nil {
		return err
	}
	d, err := r.delta()
	if err != nil || len(d.Effects) == 0 && with == nil {
		return err
	}
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	began := time.Now()
	at, err := r.ledger.Commit(ctx, r.holder(), d.Change, with)
	if err != nil {
		err = r.endIfLost(err)
		var own *ledger.ProgramError
		switch {
		case !errors.As(err, &own):
		case errors.Is(err, store.ErrUnknownOutcome):
			err = fmt.Errorf("%w: %w", err, own.Err)
		default:
			err = own.Err
		}
		return err
	}
	r.lease.noteRenewed(began)
	r.steps.Store(int64(at.Version - r.base))
	op.wrote, op.Effects, op.Version = true, len(d.Effects), at.Version
	r.op.isStored.Store(true)
	return r.noteStored(d, at)
}

// checkHeld returns why nothing more can be committed, or nil. The caller holds
// mu.
func (r *Run) checkHeld() error {
	if lost := r.lease.lost(); lost != nil {
		r.end(lost)
	}
	return r.ended
}

// holder identifies the run. The caller holds mu.
func (r *Run) holder() ledger.Holder {
	h := r.lease.holder()
	h.At, h.Trace = r.position, r.trace()
	h.Answers, h.Ended = r.progress()
	return h
}

// endIfLost ends the run if err says that its lease is lost, or that what is
// stored is not known. It returns err. The caller holds mu.
func (r *Run) endIfLost(err error) error {
	switch {
	case errors.Is(err, store.ErrUnknownOutcome):
		r.end(err) // the next holder sees what is stored
	case r.lease.lost() != nil:
		r.end(r.lease.lost())
	case errors.Is(err, ErrFenced):
		r.lease.giveUp(err)
		r.end(err)
	case errors.Is(err, ErrRolledBack):
		r.lease.abandon(err)
		r.end(err)
	}
	return err
}

// end makes everything that changes the run fail with err. The caller holds mu.
func (r *Run) end(err error) {
	if r.ended != nil {
		return
	}
	r.ended = err
	if r.state != nil && r.left == nil { // else it is not loaded yet, or they have ended
		r.endWrites(err)
	}
	r.cancel(err)
}

// leaveFunction notes that the function that handles the message is left behind.
// What it does from now on is not stored.
func (r *Run) leaveFunction(ctx context.Context, c *userCode) {
	r.mu.Lock()
	r.left = errLeftBehind
	if r.state != nil {
		r.endWrites(errLeftBehind)
	}
	r.mu.Unlock()
	r.m.leaveCode(ctx, c, r.user, r.runID)
}

// markReturned notes that the function that handles the message has returned.
// It may be called more than once.
func (r *Run) markReturned() {
	if r.m.deleteLocalRun(r) {
		close(r.returned)
	}
}

// start waits for the functions of earlier runs, and calls OnRunStart. It returns
// an error if the context of the run ends.
func (r *Run) start() error {
	if err := r.awaitEarlier(); err != nil {
		return err
	}
	r.m.runStarted(r)
	return nil
}

// awaitEarlier waits until the functions of earlier runs of the user in this
// process have returned, but not longer than the TTL. It returns an error if the
// context of the run ends, or if there is no room for the message.
func (r *Run) awaitEarlier() error {
	if earlier := r.m.earlierLocalRuns(r); len(earlier) > 0 {
		r.waitFor(earlier)
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return r.refused
}

// waitFor waits until channels are closed, but not longer than the TTL.
func (r *Run) waitFor(returned []<-chan struct{}) {
	timeout := time.NewTimer(r.lease.ttl)
	defer timeout.Stop()
	for _, c := range returned {
		select {
		case <-c:
		case <-r.ctx.Done():
			return
		case <-timeout.C:
			return
		}
	}
}

// leaseValid reports whether the run can still be ended by its holder.
func (r *Run) leaseValid() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended == nil
}
