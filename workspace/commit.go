package workspace

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Commit stores the changes since the last commit. Committed changes survive
// the process: a holder that takes the run over continues with them. What it has
// written to shared fields is stored for this run only, until it is finished. If the
// store is away, Commit tries again until ctx ends or the lease is lost.
//
// If Commit returns an error, nothing was stored, unless the error is
// store.ErrUnknownOutcome. In that case the run has ended here, and the holder
// that takes it over sees what was stored.
func (r *Run) Commit(ctx context.Context) error { return r.commitWith(ctx, nil, false) }

// commitWith is Commit with a function for the transaction. If messages may join the
// run, they are committed too.
func (r *Run) commitWith(ctx context.Context, with func(*sql.Tx) error, mayJoin bool) error {
	committing, op := r.begin(ctx, work.OpCommit)
	err := r.commit(committing, &op, with, mayJoin)
	r.noteResults(&op)
	op.end(err) // the lease is renewed meanwhile
	if err != nil {
		return wrapError("commit", r.user, err)
	}
	return nil
}

func (r *Run) commit(ctx context.Context, op *operation, with func(*sql.Tx) error, mayJoin bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmp.Or(r.life.refusal(), r.checkHeld()); err != nil {
		return err
	}
	err := ledger.ErrJoin
	for try := 0; mayJoin && try < maxJoinTries && errors.Is(err, ledger.ErrJoin); try++ {
		j := &joining{} // nobody waits, as far as is known here
		if waiting := r.ledger.Joining(ctx); len(waiting) > 0 {
			if j, err = r.join(ctx, waiting); err != nil {
				return errors.Join(err, r.leaveJoining(j))
			}
		}
		if err = r.commitDelta(ctx, op, with, j); err != nil {
			if undone := r.leaveJoining(j); undone != nil {
				return errors.Join(err, undone)
			}
		}
	}
	if errors.Is(err, ledger.ErrJoin) { // no message may join
		err = r.commitDelta(ctx, op, with, nil)
	}
	return err
}

// commitDelta makes a version even without changes if there is a function for the
// transaction. Without joining, no message may join the run. The caller holds mu.
func (r *Run) commitDelta(ctx context.Context, op *operation, with func(*sql.Tx) error, joining *joining) error {
	d, err := r.delta()
	if err == nil && r.part != nil {
		err = r.part.store(&d, r.doc)
	}
	if err != nil || len(d.Effects) == 0 && with == nil {
		return err
	}
	d.Title = r.m.titleOf(ctx, &r.liveContent, d.state)
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	by := r.holder()
	if joining != nil {
		by.MayJoin, by.Join = true, joining.waiting
	}
	at, err := r.ledger.Commit(ctx, by, d.Change, with)
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
	r.lease.renewals.Add(1)
	r.steps.Store(int64(at.Version - r.base))
	op.wrote, op.Effects, op.Version = true, len(d.Effects), at.Version
	r.op.isStored.Store(true)
	return r.noteStored(d, at)
}

// holder identifies the run. The caller holds mu.
func (r *Run) holder() ledger.Holder { return r.holderAt(r.position) }

// holderAt is holder for a run that has left the content at a position.
func (r *Run) holderAt(at ledger.Position) ledger.Holder {
	h := r.lease.holder()
	h.At, h.Trace = at, r.trace()
	h.Answers, h.Ended = r.progress()
	return h
}
