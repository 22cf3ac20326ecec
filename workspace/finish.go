package workspace

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentstate/state"
)

// Finish stores the changes since the last commit, marks the message as done
// and begins the next run if messages wait, all in one write. It returns the
// next run, or nil. The conversation and the history are shortened to
// Options.Messages and Options.Results. Concurrent writes to the run's State
// are not stored.
func (r *Run) Finish(ctx context.Context) (*Run, error) {
	next, effects, err := r.finish(ctx)
	if err != nil {
		return nil, wrapError("finish", r.user, err)
	}
	r.m.opts.Hooks.memoryChanged(ctx, r.user, effects)
	r.m.opts.Hooks.runCompleted(ctx, r, nil)
	return r.nextRun(ctx, next), nil
}

// successor is the head that the end of a run has written.
type successor struct {
	head    *head
	leaseID string // of the next run, if there is one
}

// finish also returns the effects of the run, without those that shorten the
// content.
func (r *Run) finish(ctx context.Context) (successor, []state.Effect, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return successor{}, nil, r.ended
	}
	d, err := r.delta()
	if err != nil {
		return successor{}, nil, err
	}
	doc := r.doc.Clone()
	if err := doc.Apply(d.effects); err != nil {
		return successor{}, nil, err
	}
	shorten, err := doc.Shorten(r.m.opts.Messages, r.m.opts.Results)
	if err != nil {
		return successor{}, nil, err
	}
	if err := doc.Apply(shorten); err != nil {
		return successor{}, nil, err
	}
	all := change{slices.Concat(d.effects, shorten), d.purge}
	next := r.ledger.newLease()
	h, at, err := r.ledger.finish(ctx, r.holder(), all, next)
	if err != nil {
		return successor{}, nil, r.endIfLost(err)
	}
	r.position = at
	r.ledger.cacheContent(at, doc)
	r.end(ErrRunEnded)
	return successor{h, next.leaseID}, d.effects, nil
}

// Fail ends the run without storing the changes since the last commit, and
// marks the message as failed. Committed tool calls without a result are
// answered. It returns the next run, as Finish does.
func (r *Run) Fail(ctx context.Context, reason error) (*Run, error) {
	if reason == nil {
		return nil, wrapError("fail", r.user, fmt.Errorf("%w: no reason", ErrInvalid))
	}
	next, err := r.fail(ctx)
	if err != nil {
		return nil, wrapError("fail", r.user, err)
	}
	r.m.opts.Hooks.runCompleted(ctx, r, reason)
	return r.nextRun(ctx, next), nil
}

func (r *Run) fail(ctx context.Context) (successor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		return successor{}, r.ended
	}
	next := r.ledger.newLease()
	h, err := r.ledger.fail(ctx, r.holder(), next)
	if err != nil {
		return successor{}, r.endIfLost(err)
	}
	r.end(ErrRunEnded)
	return successor{h, next.leaseID}, nil
}

// nextRun returns the run that has begun at the end of this one, or nil.
func (r *Run) nextRun(ctx context.Context, s successor) *Run {
	r.m.compactIfDue(ctx, r.ledger, s.head)
	if s.head.Run == nil || s.head.Run.LeaseID != s.leaseID {
		return nil
	}
	// The next run does not end with the call that has begun this one.
	next, err := r.m.newRun(r.m.ctx, r.ledger, s.head)
	if err != nil {
		r.m.watchRun(r.user, r.ledger) // nothing renews its lease
		return nil
	}
	r.m.opts.Hooks.runStarted(next.ctx, next)
	return next
}

// abandon ends the run here without storing its end. Its lease is no longer
// renewed, so that it is taken over.
func (r *Run) abandon(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(fmt.Errorf("%w: the end of the run was not stored: %v", ErrFenced, err))
}
