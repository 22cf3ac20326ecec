package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// transactor returns the store if it is in a SQL database.
func (m *Manager) transactor() (store.Transactor, error) {
	db, ok := store.As[store.Transactor](m.db)
	if !ok {
		return nil, fmt.Errorf("%w: the store is not in a SQL database: it is no store.Transactor", ErrInvalid)
	}
	return db, nil
}

// CommitTx is Commit together with writes to tables of the program: what fn
// writes in the transaction and the changes of the run are stored as one, or
// not at all. If the run has lost its lease, fn is not called, so that no other
// holder's rows are followed by those of this one. Without changes, CommitTx
// stores an empty version.
//
// If fn returns an error, nothing is stored, and CommitTx returns that error;
// the changes of the run can be committed again. fn may be called several times,
// in another transaction each, of which at most one is committed: it must do
// nothing else that lasts. Other operations on the workspace wait for it. It
// must not end the transaction, nor call the run or the Manager for this user.
//
// The store must be a [store.Transactor]; with any other, CommitTx returns
// ErrInvalid.
func (r *Run) CommitTx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	if _, err := r.m.transactor(); err != nil {
		return wrapError("commit", r.user, err)
	}
	if fn == nil {
		return wrapError("commit", r.user, fmt.Errorf("%w: the function is nil", ErrInvalid))
	}
	return r.commitWith(ctx, fn, false)
}

// SubmitTx hands a message over in a transaction of the program: the message is
// accepted if the program commits the transaction, together with the program's
// own writes. The store must be a [store.Transactor] on the pool of the
// transaction, as sqlstore.New opens it, or SubmitTx returns ErrInvalid. The
// status of the outcome is StatusQueued, StatusDuplicate or StatusRejected.
//
// A Manager cannot know when the transaction is committed. After the commit,
// call Submit with the same message, or Await or Handle: the message is then
// handled, here or by the holder of the run that is under way. If the process
// ends before, another one finds the message. It must therefore have an ID.
//
// Until the transaction ends, other operations that change the workspace of the
// user wait, so it should end soon; a run of the user must not wait for it. A
// run that the message interrupts ends with the commit.
func (m *Manager) SubmitTx(ctx context.Context, tx *sql.Tx, userID string, msg Message) (Outcome, error) {
	err := m.enter()
	if err != nil {
		return Outcome{}, wrapError("submit", userID, err)
	}
	defer m.leave()
	switch {
	case tx == nil:
		err = fmt.Errorf("%w: the transaction is nil", ErrInvalid)
	case msg.ID == "":
		err = fmt.Errorf("%w: the message has no ID", ErrInvalid)
	}
	if err != nil {
		return Outcome{}, wrapError("submit", userID, err)
	}
	ctx, op := m.beginHandle(ctx, userID, &msg)
	out, err := m.submitTx(ctx, tx, userID, msg)
	op.endHandle(out, err)
	return out, wrapError("submit", userID, err)
}

func (m *Manager) submitTx(ctx context.Context, tx *sql.Tx, userID string, msg Message) (Outcome, error) {
	db, err := m.transactor()
	if err != nil {
		return Outcome{}, err
	}
	b, err := m.newBeginning(userID, msg)
	if err != nil {
		return Outcome{}, err
	}
	l, err := m.ledgerIn(db.In(tx), userID)
	if err != nil {
		return Outcome{}, err
	}
	_, status, fate, err := l.Submit(ctx, b.submission(b.lease.Vacant()))
	out := Outcome{Status: status}
	switch {
	case errors.Is(err, store.ErrInvalid):
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	case errors.Is(err, ErrQueueFull):
		out.Status = StatusRejected
	case out.Status == StatusDuplicate:
		out = duplicateOf(fate)
	case out.Status == StatusStarted:
		out.Status = StatusQueued
	}
	return out, err
}

// ledgerIn returns a ledger for a transaction. What happens there is not known to
// be true, so that nobody is told of the heads.
func (m *Manager) ledgerIn(tx store.Store, id string) (*ledger.Ledger, error) {
	key, err := ledger.HeadKey(id)
	if err != nil {
		return nil, err
	}
	opts := m.ledgerOptions(id)
	opts.Turns, opts.Retry, opts.Patience = nil, nil, 0
	opts.Notify = func(ctx context.Context, of *ledger.Ledger, n ledger.Notice) {
		n.Head = nil
		m.note(ctx, of, n)
	}
	if opts.UserPart != nil {
		user := ownerOf(id)
		opts.UserPart = func() (*ledger.Ledger, error) { return m.ledgerIn(tx, Shared(user)) }
	}
	return ledger.New(tx, id, key, opts), nil
}
