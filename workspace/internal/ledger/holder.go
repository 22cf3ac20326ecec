package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/work"
)

// The methods in this file are what the holder of a run does with it.

// CheckLease returns ErrFenced if the head shows that the holder has lost the
// lease of the run.
func (l *Ledger) CheckLease(ctx context.Context, by Holder) error {
	h, err := l.ReadHead(ctx)
	if err != nil {
		return err
	}
	return l.checkLease(ctx, h, by)
}

// Renew renews the lease of one run, and stores the trace of its holder.
func (l *Ledger) Renew(ctx context.Context, by Holder) (*Head, error) {
	return l.commitRun(ctx, func(t *transition) error {
		if err := t.checkLease(by); err != nil {
			return err
		}
		t.renewLease(by)
		return nil
	})
}

// Commit adds a record of a run and returns the position that it leads to. It
// renews the lease. with, which may be nil, makes writes of the program's own in
// the same transaction; if it fails, the error is a ProgramError, or
// store.ErrUnknownOutcome with one. The error is ErrJoin if other messages want to
// join than by says.
func (l *Ledger) Commit(ctx context.Context, by Holder, c Change, with func(*sql.Tx) error) (Position, error) {
	var to Position
	commit := l.newCommit()
	commit.retry.again, commit.with = l.opts.Retry, with
	_, err := commit.perform(ctx, func(t *transition) error {
		if err := t.checkHolder(by); err != nil {
			return err
		}
		t.renewLease(by)
		t.Run.Answers, t.Run.Ended = by.Answers, by.Ended
		if err := t.join(by); err != nil {
			return err
		}
		if err := t.addRecord(t.runRecord(KindStep, c.Time, c.Effects)); err != nil {
			return err
		}
		t.noteChange(c)
		to = t.Position()
		return nil
	})
	if err == nil {
		l.contents.noteFitting(to)
	}
	return to, err
}

// Finish adds the last record of a run, and begins the next run if a message
// waits. What the run does to the user part, which may be nil, takes effect
// together with that. It also returns the position that the record leads to.
func (l *Ledger) Finish(
	ctx context.Context, by Holder, c Change, reply string, next Lease, shared *SharedChange,
) (*Head, Position, error) {
	var to Position
	h, err := l.commitShared(ctx, shared, l.opts.Retry, func(t *transition) error {
		if err := t.checkHolder(by); err != nil {
			return err
		}
		t.Run.Answers = by.Answers
		r := t.runRecord(KindFinish, c.Time, c.Effects)
		r.Ending, r.Reply, r.Stop = work.EndingFinished, reply, by.Stop
		if err := t.endMessage(r); err != nil {
			return err
		}
		t.noteChange(c)
		to = t.Position()
		return t.beginNextRun(next)
	})
	if err == nil {
		l.contents.noteFitting(to)
	}
	return h, to, err
}

// Restart lets the run begin anew from where it began, without what it has
// committed. It counts no attempt.
func (l *Ledger) Restart(ctx context.Context, by Holder) (*Head, error) {
	now := l.now()
	return l.commitRun(ctx, func(t *transition) error {
		if err := t.checkHolder(by); err != nil {
			return err
		}
		t.renewLease(by)
		return t.restartRun(now)
	})
}

// Fail gives up the message of a run, which becomes a dead letter, and begins
// the next run if a message waits. The committed changes of the run stay. It
// also returns the dead letters that had to go.
func (l *Ledger) Fail(ctx context.Context, by Holder, reason string, next Lease) (*Head, []DeadLetter, error) {
	now := l.now()
	var dropped []DeadLetter
	h, err := l.commitRun(ctx, func(t *transition) error {
		if err := t.checkHolder(by); err != nil {
			return err
		}
		stop := t.leavePendingCalls
		if t.Run.Message.Ticket {
			stop = t.answerPendingCalls
		}
		effects, err := stop()
		if err != nil {
			return err
		}
		if err := t.giveUp(effects, KindFail, t.Run.Attempt+1, reason, now); err != nil {
			return err
		}
		dropped = t.droppedLetters
		return t.beginNextRun(next)
	})
	return h, dropped, err
}

// giveUp makes the message of the run a dead letter. The effects are those of
// the last record of the run.
func (t *transition) giveUp(effects []state.Effect, kind work.Kind, attempts int, reason string, now time.Time) error {
	r := t.runRecord(kind, now, effects)
	if t.Run.Message.Ticket {
		return t.endMessage(r)
	}
	stored := kind != KindRollback && t.Version > t.Run.Base.Version // its first commit has
	t.Run.Message.Stands = t.Run.Message.Stands || stored
	r.Ending, r.Reason = work.EndingFailed, reason
	if err := t.addRecord(r); err != nil {
		return err
	}
	t.outcomes = append(t.outcomes, outcomeOf(&r))
	if err := t.endJoined(&r); err != nil {
		return err
	}
	return t.addDeadLetter(attempts, reason, now)
}

// ErrAttempts is returned for a run that was begun too often.
var ErrAttempts = fault.Final("workspace: no attempts are left")

// Again counts another attempt of the holder, and renews the lease. It returns
// ErrAttempts if there were maxAttempts.
func (l *Ledger) Again(ctx context.Context, by Holder, maxAttempts int) (*Head, error) {
	return l.commitRun(ctx, func(t *transition) error {
		if err := t.checkHolder(by); err != nil {
			return err
		}
		if t.Run.Attempt+1 >= maxAttempts {
			return fmt.Errorf("%w: the run was begun %d times", ErrAttempts, t.Run.Attempt+1)
		}
		t.Run.Attempt++
		t.renewLease(by)
		return nil
	})
}

// Release gives the lease of a run back, so that any holder may take it at
// once. It counts no attempt.
func (l *Ledger) Release(ctx context.Context, by Holder) (*Head, error) {
	return l.commitRun(ctx, func(t *transition) error {
		if err := t.checkLease(by); err != nil {
			return err
		}
		t.Run.LeaseID, t.Run.Holder, t.Run.Renewals = "", "", 0
		return nil
	})
}
