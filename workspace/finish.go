package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Finish stores the changes since the last commit, marks the message as done
// and begins the next run if messages wait, all in one write. It returns the
// next run, or nil. The conversation and the history are shortened to
// Options.Messages and Options.Results. Concurrent writes to the run's State
// are not stored. If the store is away, Finish tries again as Commit does.
//
// Finish and Fail are for runs that Begin has begun. In Options.Run they return
// ErrInvalid: the run ends when the function returns.
func (r *Run) Finish(ctx context.Context) (*Run, error) {
	next, err := r.endManually(ctx, r.endFinished)
	return next, wrapError("finish", r.user, err)
}

// Fail ends the run without storing the changes since the last commit. Its
// message becomes a dead letter with the text of reason, in which secrets are
// masked. Committed tool calls of the run are answered, unless they are
// suspended. It returns the next run, as Finish does.
func (r *Run) Fail(ctx context.Context, reason error) (*Run, error) {
	next, err := r.endManually(ctx, func(ctx context.Context) (*Run, error) {
		if reason == nil {
			return nil, fmt.Errorf("%w: no reason", ErrInvalid)
		}
		return r.endFailed(ctx, reason)
	})
	return next, wrapError("fail", r.user, err)
}

// endManually ends a run of Begin.
func (r *Run) endManually(ctx context.Context, end func(context.Context) (*Run, error)) (*Run, error) {
	if !r.manual {
		return nil, fmt.Errorf("%w: Options.Run handles the run", ErrInvalid)
	}
	next, err := end(ctx)
	for next != nil && next.start() != nil && next.refused != nil {
		next = next.refuse(ctx)
	}
	return next, err // if next has ended, its methods say so
}

// refuse fails the run of a message for which there is no room, and returns the
// next run.
func (r *Run) refuse(ctx context.Context) *Run {
	next, err := r.endFailed(ctx, r.refused)
	if err != nil {
		r.release(err)
	}
	return next
}

// endFinished is Finish for every run, without starting the next.
func (r *Run) endFinished(ctx context.Context) (*Run, error) {
	finishing, op := r.beginEnd(ctx)
	s, err := r.finish(finishing, &op)
	r.endCommit(&op, err)
	if err != nil {
		return nil, err
	}
	r.endOperation(EndingFinished, s.head.Waiting(), nil)
	next := r.nextRun(s)
	r.hooks.Store(true)
	defer r.hooks.Store(false)
	r.m.runCompleted(ctx, r, nil)
	r.m.tidy(ctx, r.ledger, s.head)
	return next, nil
}

// endFailed is Fail for every run, without starting the next.
func (r *Run) endFailed(ctx context.Context, reason error) (*Run, error) {
	failing, op := r.beginEnd(ctx)
	s, dropped, err := r.fail(failing, reason, &op)
	r.endCommit(&op, err)
	if err != nil {
		return nil, err
	}
	r.endOperation(EndingFailed, s.head.Waiting(), reason)
	next := r.nextRun(s)
	if !r.ticket {
		r.m.noteDeadLetter(ctx, r.user, r.message.ID, r.runID)
	}
	r.hooks.Store(true)
	defer r.hooks.Store(false)
	r.m.runCompleted(ctx, r, reason)
	r.m.logDropped(ctx, r.user, dropped)
	r.m.tidy(ctx, r.ledger, s.head)
	return next, nil
}

// successor is the head that the end of a run has written.
type successor struct {
	head    *ledger.Head
	leaseID string    // of the next run, if this Manager takes it
	began   time.Time // when the write began
}

func (r *Run) finish(ctx context.Context, op *operation) (successor, error) {
	defer startCommitRegion(ctx).End()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkHeld(); err != nil {
		return successor{}, err
	}
	d, err := r.delta()
	if err != nil {
		return successor{}, err
	}
	doc := r.doc.Clone()
	if err := doc.ApplySaved(d.Effects, r.origin(d), r.schema, d.state); err != nil {
		return successor{}, err
	}
	shorten, err := doc.Shorten(r.m.opts.Messages, r.m.opts.Results)
	if err != nil {
		return successor{}, err
	}
	d.Title = r.m.titleOf(ctx, &r.liveContent, d)
	all := d.Change
	all.Effects = document.Joined(d.Effects, shorten)
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	began, next := time.Now(), r.nextLease()
	h, at, err := r.ledger.Finish(ctx, r.holder(), all, r.reply, next)
	if err != nil {
		r.dropNext(next, err)
		return successor{}, r.endIfLost(err)
	}
	r.position = at
	op.wrote, op.Effects, op.Version, op.Queued = true, len(all.Effects), at.Version, h.Waiting()
	r.ledger.CacheContent(at, doc)
	r.passSlot(next.ID, h)
	r.isEndStored = true
	r.end(ErrRunEnded)
	return successor{h, next.ID, began}, nil
}

// passSlot gives the slot of the run to the lease of the next one, if that has
// begun at a head. Nobody has a vacant lease.
func (r *Run) passSlot(nextID string, h *ledger.Head) {
	if nextID == "" || h.Run == nil || h.Run.LeaseID != nextID {
		r.m.slots.drop(nextID) // see nextLease
	} else {
		r.m.slots.pass(r.lease, nextID)
	}
}

// dropNext drops the lease of the next run, because of err.
func (r *Run) dropNext(next ledger.Lease, err error) {
	r.m.slots.drop(next.ID)
	if errors.Is(err, store.ErrUnknownOutcome) { // it may have begun
		r.m.releaseInDoubt(r.ledger, r.lease.incarnation, next)
	}
}

// fail also returns the dead letters that had to go.
func (r *Run) fail(ctx context.Context, reason error, op *operation) (successor, []ledger.DeadLetter, error) {
	defer startCommitRegion(ctx).End()
	text := r.Redact(reason.Error())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkHeld(); err != nil {
		return successor{}, nil, err
	}
	text = fault.ClipTo(r.redactStored(text), ledger.MaxReason)
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	began, next := time.Now(), r.nextLease()
	h, dropped, err := r.ledger.Fail(ctx, r.holder(), text, next)
	if err != nil {
		r.dropNext(next, err)
		return successor{}, nil, r.endIfLost(err)
	}
	r.position = h.Position()
	op.wrote, op.Version, op.Queued = true, h.Version, h.Waiting()
	r.passSlot(next.ID, h)
	r.isEndStored, r.failure = true, text
	r.end(ErrRunEnded)
	return successor{h, next.ID, began}, dropped, nil
}

// nextRun holds the run that has begun at the end of this one, or returns nil.
func (r *Run) nextRun(s successor) *Run {
	defer r.lease.giveUp(ErrRunEnded)
	if h := s.head; h.Run != nil && h.Run.Vacant() {
		if h.Run.Message.Ticket {
			r.m.watchRun(r.user, r.ledger) // nobody may take it
		} else {
			r.m.takeVacantRun(r.ledger, h)
		}
	}
	if s.head.Run == nil || s.leaseID == "" || s.head.Run.LeaseID != s.leaseID {
		return nil
	}
	// The next run does not end with the call that has begun this one.
	next, err := r.m.newRun(r.m.ctx, r.ledger, s.head, s.began, r.manual)
	if err != nil {
		r.m.logGivenUp(r.m.ctx, "next run", r.user, err)
		r.m.watchRun(r.user, r.ledger)
		return nil
	}
	return next
}
