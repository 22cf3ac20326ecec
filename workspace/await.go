package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// errOwnRun is returned within a run for what cannot end before the run.
var errOwnRun = fmt.Errorf("%w: it is that of the caller, which cannot wait for another message of its user; use Submit", ErrBusy)

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
	err := m.operate(ctx, Operation{Kind: opAwait, UserID: userID, MessageID: messageID}, func(ctx context.Context, l *ledger.Ledger) error {
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
	h, fate, err := m.readFate(ctx, l, id)
	if err != nil {
		return Outcome{}, err
	}
	w.noteTold(h)
	defer m.lendSlot(ctx)()
	for {
		switch fate.Place {
		case ledger.PlaceNone:
			return Outcome{}, fmt.Errorf("%w: message %s: it was not accepted, or has ended long ago", ErrNotFound, fault.Quote(id))
		case ledger.PlaceEnded, ledger.PlaceDead:
			return outcomeOf(fate), errorOf(fate)
		}
		if m.inRunOf(ctx, l.User()) {
			return outcomeOf(fate), errOwnRun
		}
		m.watchRun(l.User(), l)
		i, err := w.next(ctx)
		if err != nil {
			return outcomeOf(fate), err
		}
		if i.Kind == EventEnded {
			return i.Outcome, i.Err
		}
		inTime, cancel := context.WithTimeout(ctx, m.patience())
		newer, err := l.Fate(inTime, i.head, id)
		cancel()
		if err != nil { // the head may have been replaced
			_, newer, err = m.readFate(ctx, l, id)
		}
		switch {
		case err == nil:
			fate = newer
		case !mayPass(err):
			return outcomeOf(fate), err
		}
	}
}

// readFate returns what the store knows of a message.
func (m *Manager) readFate(ctx context.Context, l *ledger.Ledger, id string) (h *ledger.Head, f ledger.Fate, err error) {
	ctx, cancel := m.withinStoreTimeout(ctx)
	defer cancel()
	err = m.persist(ctx, l.User(), mayPass, func(ctx context.Context) (err error) {
		h, err = l.ReadStable(ctx, func(h *ledger.Head) (err error) {
			f, err = l.Fate(ctx, h, id)
			return err
		})
		return err
	})
	return h, f, err
}
