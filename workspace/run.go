package workspace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
)

// Run is the handling of one message by the holder of the workspace. Nothing
// else changes the workspace during a run. All methods are safe for concurrent
// use.
type Run struct {
	liveContent
	m       *Manager
	ledger  *ledger.Ledger
	shared  *ledger.Ledger // of the user part, nil if nothing is shared
	lease   *lease
	keeping keeping // of the lease
	slot    *turns.Slot
	runID   string
	attempt int
	base    uint64 // the version at which the run began
	epoch   uint64 // of the workspace: see ledger.Head
	began   time.Time
	message Message
	given   *Message // the message as it was handed over here, or nil
	refused error    // why the content has no room for the message; the run fails with it
	ticket  bool     // begun by Do: it has no message
	stands  bool     // an earlier run of the message has stored it in the conversation

	life     life
	steps    atomic.Int64 // as Step, for those who must not wait for a commit
	isCutOff atomic.Bool  // Close has ended it

	told    toldRun
	op      runOperation
	results reportedResults
	live    liveText
	retried error // with which its function has asked for another attempt
	// dueWindows are the windows that are to be moved after it: see DeferWindow.
	dueWindows sync.Map

	parent context.Context // the context that ctx is made of
	held   context.Context // ends when the run is to be left
	cancel context.CancelCauseFunc
	ctx    context.Context // ends when the function that handles the message is to return
	expire context.CancelCauseFunc
	// returned is closed when that function has returned.
	returned chan struct{}
	once     sync.Once // for done

	progressMu sync.Mutex
	answers    int        // of models
	isAnswered bool       // the last one has no calls
	loopStop   state.Stop // how a Loop has ended that was stopped

	mu      turns.Lock // held during a commit
	reply   string
	stop    state.Stop // how the last answer has ended, if the model has not said all
	failure string     // the stored reason, if it has failed
}

// ID returns the id of the run. It stays the same when another process takes
// the run over, which makes the calls again that have no result yet, with the Key
// of [tool.CallOf] as the idempotency key. With TakeoverRestart, ID together with
// Step is a key for what a program does between two commits outside of calls.
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
// context of Handle or Do that has begun the run, and with Close. If the lease is
// lost, context.Cause is ErrFenced, together with ErrInterrupted if another
// message or a reset has ended the run. The context carries the run, for
// FromContext, and the state, for state.FromContext.
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
	if r.life.refusal() != nil || r.lease.lost() != nil {
		return
	}
	r.reply = text
	if f := r.m.feeds.of(r.user); f != nil {
		e := Event{Kind: EventReply, MessageID: r.message.ID, Reply: r.Redact(text)}
		f.tellOf(r.runID, e) // before the end of the run
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

// checkHeld returns why nothing more can be committed, or nil. The caller holds
// mu.
func (r *Run) checkHeld() error {
	if lost := r.lease.lost(); lost != nil {
		r.end(phaseGone, lost)
	}
	return r.life.ended()
}

// endIfLost ends the run if err says that its lease is lost, or that what is
// stored is not known. It returns err. The caller holds mu.
func (r *Run) endIfLost(err error) error {
	switch {
	case errors.Is(err, store.ErrUnknownOutcome):
		r.end(phaseGone, err) // the next holder sees what is stored
	case r.lease.lost() != nil:
		r.end(phaseGone, r.lease.lost())
	case errors.Is(err, ErrFenced):
		r.lease.giveUp(err)
		r.end(phaseGone, err)
	case errors.Is(err, ErrRolledBack):
		r.lease.abandon(err)
		r.end(phaseGone, err)
	}
	return err
}

// end lets the run be over here, by which everything that changes it fails with cause.
// The caller holds mu.
func (r *Run) end(p phase, cause error) {
	if !r.life.to(p, cause) {
		return
	}
	if r.state != nil { // else it is not loaded yet
		r.endWrites(cause)
	}
	r.cancel(cause)
}

// markReturned notes that the function that handles the message has returned.
// It may be called more than once.
func (r *Run) markReturned() {
	if r.m.deleteLocalRun(r) {
		close(r.returned)
	}
}

// isLoaded reports whether the run is held here, with its content.
func (r *Run) isLoaded() bool {
	return r.life.is(phaseRunning, phaseLeft, phaseEnding) && r.lease.lost() == nil
}

// canEnd reports whether the run can still be ended by its holder.
func (r *Run) canEnd() bool {
	r.mu.Lock() // during a commit, nobody knows
	defer r.mu.Unlock()
	return r.life.ended() == nil
}
