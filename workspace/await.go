package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Await waits until the handling of a message has ended, in any process, and
// returns its outcome: the status is StatusDone, with the reply, or
// StatusFailed, with the reason. If ctx ends first, Await returns the cause and
// whether the message is being handled or waits. It returns ErrNotFound if the
// workspace does not know the message: it was never accepted, or more than 64
// other messages have ended since it did.
//
// If this Manager handles the message, Await returns at once when it has ended.
// Otherwise it looks at the workspace when the store reports a change, if the
// store is a [store.Watcher], and four times a second if not. All that wait for
// messages of one user share that look. With Options.Run, the Manager also takes
// the run over if its holder dies.
//
// If the store does not answer for Options.StoreTimeout, Await returns its error.
//
// Within a run of the same user, Await returns ErrBusy unless the message has
// ended.
func (m *Manager) Await(ctx context.Context, userID, messageID string) (Outcome, error) {
	var out Outcome
	err := m.operate(ctx, work.Operation{
		Kind: opAwait, UserID: userID, MessageID: messageID,
	}, func(ctx context.Context, l *ledger.Ledger) error {
		if err := checkID(messageID); err != nil {
			return err
		}
		var err error
		if out, err = m.await(ctx, l, messageID); errors.Is(err, ErrRunFailed) {
			err = nil // the outcome says so
		}
		return err
	})
	return out, err
}

// await also returns ErrRunFailed for a message that has failed.
func (m *Manager) await(ctx context.Context, l *ledger.Ledger, id string) (Outcome, error) {
	w, leave, err := m.feeds.follow(l, id)
	if err != nil {
		return Outcome{}, err
	}
	defer leave()
	a := &awaited{m: m, ledger: l, id: id}
	if err := a.read(ctx); err != nil {
		return Outcome{}, err
	}
	w.noteTold(a.head)
	defer m.lendSlot(ctx)()
	for {
		switch a.fate.Place {
		case ledger.PlaceNone:
			return Outcome{}, fmt.Errorf("%w: message %s: it was not accepted, or has ended long ago",
				ErrNotFound, fault.Quote(id))
		case ledger.PlaceEnded, ledger.PlaceDead:
			again, err := a.confirm(ctx, a.head, a.fate)
			switch {
			case err != nil:
				return Outcome{}, err
			case again:
				continue
			}
			return outcomeOf(a.fate), errorOf(a.fate)
		}
		if m.inRunOf(ctx, l.User()) {
			return outcomeOf(a.fate), errOwnRun
		}
		m.watchRun(l.User(), l)
		i, err := w.next(ctx)
		if err != nil {
			return outcomeOf(a.fate), err
		}
		if i.Kind == EventEnded {
			again, err := a.confirm(ctx, i.head, ledger.Fate{})
			switch {
			case err != nil:
				return Outcome{}, err
			case again:
				continue
			}
			return i.Outcome, i.Err
		}
		if err := a.look(ctx, i.head); err != nil && !mayPass(err) {
			return outcomeOf(a.fate), err
		}
	}
}

// awaited is a message whose end somebody waits for, with what is known of it. It is
// for one goroutine.
type awaited struct {
	m      *Manager
	ledger *ledger.Ledger
	id     string
	head   *ledger.Head // that says so
	fate   ledger.Fate
}

// read reads what the store knows of the message.
func (a *awaited) read(ctx context.Context) error {
	ctx, cancel := a.m.withinStoreTimeout(ctx)
	defer cancel()
	return a.m.persist(ctx, a.ledger.User(), mayPass, func(ctx context.Context) error {
		var fate ledger.Fate
		h, err := a.ledger.ReadStable(ctx, func(h *ledger.Head) (err error) {
			fate, err = a.ledger.Fate(ctx, h, a.id)
			return err
		})
		if err == nil {
			a.head, a.fate = h, fate
		}
		return err
	})
}

// look looks up what a newer head says of the message. It reads the head anew if that
// was replaced.
func (a *awaited) look(ctx context.Context, h *ledger.Head) error {
	inTime, cancel := context.WithTimeout(ctx, a.m.patience())
	defer cancel()
	fate, err := a.ledger.Fate(inTime, h, a.id)
	if err != nil {
		return a.read(ctx)
	}
	a.head, a.fate = h, fate
	return nil
}

// confirm waits until the store has acknowledged what a head says of the message. It
// reports true if that was read again, because it may be otherwise by now.
func (a *awaited) confirm(ctx context.Context, h *ledger.Head, f ledger.Fate) (again bool, err error) {
	inTime, cancel := a.m.withinStoreTimeout(ctx)
	defer cancel()
	if again, err = a.ledger.Confirm(inTime, h, f); again && err == nil {
		err = a.read(ctx)
	}
	return again, err
}
