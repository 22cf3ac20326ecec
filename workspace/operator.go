package workspace

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// The methods in this file are for operators: people and programs that look
// after workspaces.

// Retry handles a dead letter again: its message goes to the end of the queue,
// with no attempts counted. If nothing was handled behind it, its run goes on: the
// user's message stands once, no model is asked for what was answered, and the
// calls that have no result are made, with their keys. Otherwise the message is put
// at the end of the conversation once more, with a member "again", and what its
// first run did stays. [DeadLetter].GoesOn tells which it will be. A failed message
// that is sent again with its id is handled in the same way. It returns
// ErrNotFound if no dead letter has the id. If nothing is under way, a Manager
// with Options.Run begins the run at once in the background.
func (m *Manager) Retry(ctx context.Context, userID, messageID string) error {
	return m.operate(ctx, work.Operation{
		Kind: work.OpRetry, UserID: userID, MessageID: messageID,
	}, func(ctx context.Context, l *ledger.Ledger) error {
		if err := checkID(messageID); err != nil {
			return err
		}
		h, err := l.Retry(ctx, messageID, l.NewLease())
		if err == nil || errors.Is(err, store.ErrUnknownOutcome) { // then there may be a vacant run
			m.takeVacantRun(l, h)
			m.watchRun(userID, l)
		}
		return err
	})
}

// Discard drops a dead letter or a message that waits. What the run of a dead
// letter has committed stays in the conversation, with the message. If the
// message is sent again, it is a duplicate. Discard returns ErrNotFound if no
// such message has the id. For a message that is being handled, see Cancel.
func (m *Manager) Discard(ctx context.Context, userID, messageID string) error {
	return m.operate(ctx, work.Operation{
		Kind: work.OpDiscard, UserID: userID, MessageID: messageID,
	}, func(ctx context.Context, l *ledger.Ledger) error {
		if err := checkID(messageID); err != nil {
			return err
		}
		_, err := l.Discard(ctx, messageID)
		return err
	})
}

// Cancel ends a run. Its committed changes stay, and its pending tool calls are
// answered, also those that it has suspended. The message stays in the conversation,
// and behind it, as an answer with [state.StopInterrupted], the text that [Run.Emit]
// has told of an answer that is not stored: the last 64 KiB, masked, if this Manager
// holds the run, or else what Options.Live has stored. The ending of its message is
// EndingCancelled, with the first 256 bytes of the reason, in which the secrets
// of the workspace are masked. If another message waits, its run begins. Cancel
// returns ErrNotFound unless the run with this id is under way, so it
// never ends the run that follows.
//
// The context of the run ends with ErrRunCancelled: at once if this Manager
// holds the run, and otherwise when its holder renews the lease.
func (m *Manager) Cancel(ctx context.Context, userID, runID, reason string) error {
	return m.operate(ctx, work.Operation{
		Kind: work.OpCancel, UserID: userID, RunID: runID,
	}, func(ctx context.Context, l *ledger.Ledger) error {
		if err := checkID(runID); err != nil {
			return err
		}
		if !utf8.ValidString(reason) {
			return fmt.Errorf("%w: the reason is not UTF-8", ErrInvalid)
		}
		if reason != "" {
			reason = m.presentMasks(ctx, l)(reason)
		}
		h, err := l.Cancel(ctx, runID, reason, l.NewLease().Vacant())
		if err != nil {
			m.resumeLive(userID)
			return err
		}
		m.endLocalRuns(userID, h, work.EndingCancelled)
		m.takeVacantRun(l, h)
		return nil
	})
}

// Delete deletes a workspace with all its messages, and the values of
// [Manager.Store]. It ends a run that is under way. List no longer yields the
// user. Deleting a workspace that does not exist is not an error, so that a
// Delete that has failed halfway can be called again.
//
// Within a run of the user, Delete ends the run: its context ends, and the
// message that asked for the deletion gets no reply.
//
// What is left is a head without content, which refuses the writes of earlier
// holders. [Manager.Expire] removes it. A message that is sent later creates
// the workspace anew, also if it was handled before.
//
// Delete also deletes a workspace whose data is damaged or missing. Only a head
// that a newer version wrote, or that is sealed with a key that was not given,
// is refused. A damaged seal may be that of such a key: it is refused unless
// Options.Keys open another value of the workspace.
func (m *Manager) Delete(ctx context.Context, userID string) error {
	return m.operate(ctx, work.Operation{Kind: work.OpDelete, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		ownRun := m.inRunOf(ctx, userID)
		h, err := l.Delete(ctx)
		if err != nil {
			return err
		}
		if ownRun { // which ends now
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), m.opts.TTL)
			defer cancel()
		}
		m.endLocalRuns(userID, h, work.EndingReset)
		return m.data(userID).Clear(ctx)
	})
}

// Expire removes what Delete has left of workspaces that were deleted more than
// olderThan ago, and returns their number. A program that was about to write to
// such a workspace before it was deleted, and was paused for longer than that,
// may bring it back: choose hours or days. If the user returns, a Manager that
// knows the workspace, but has not seen its deletion returns ErrRolledBack until
// [Manager.AcceptRollback].
func (m *Manager) Expire(ctx context.Context, olderThan time.Duration) (n int, err error) {
	defer func() { err = wrapError("expire", "", err) }()
	if err := m.enter(); err != nil {
		return 0, err
	}
	defer m.leave()
	switch {
	case m.readOnly:
		return 0, store.ErrReadOnly
	case olderThan < 0:
		return 0, fmt.Errorf("%w: olderThan is negative", ErrInvalid)
	}
	before := ledger.CurrentTime().Add(-olderThan)
	var removed atomic.Int64
	deleted := func(yield func(string, error) bool) {
		for u, err := range ledger.Heads(ctx, m.db, m.sealer, ledger.Range{Deleted: true}) {
			if (err != nil || u.Head != nil && u.Head.Expired(before)) && !yield(u.User, err) {
				return
			}
		}
	}
	err = m.forEach(ctx, "expire", deleted, func(user string) error {
		l, err := m.ledger(user)
		if err != nil {
			return err
		}
		if ledger.IsShared(user) && errors.Is(m.checkOpen(ctx, l), ErrUserDeleted) { // what a process that has died has added late
			if err := m.files(ownerOf(user)).Clear(ctx); err != nil {
				return err
			}
		}
		gone, err := l.Expire(ctx, before)
		if gone {
			removed.Add(1)
			m.forgetLedger(user, l)
		}
		return err
	})
	return int(removed.Load()), err
}

// AcceptRollback accepts the stored state of a workspace for which this Manager
// returns ErrRolledBack. It is for an operator who knows why the state is
// older, for example because a failover has lost writes or a backup was
// restored. What was lost stays lost: a message may be handled again.
// AcceptRollback writes the workspace, so that Managers that have seen the lost
// state accept it too.
func (m *Manager) AcceptRollback(ctx context.Context, userID string) error {
	return m.operate(ctx, work.Operation{Kind: opAccept, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		_, err := l.Accept(ctx)
		return err
	})
}

// RolledBack yields the ids of the workspaces for which this Manager returns
// ErrRolledBack, with that error, for an operator who calls AcceptRollback. It
// reads the head of each workspace that this Manager has seen, so that it finds
// also those that nobody has asked for since; other processes may have seen
// more. Another error is that of a workspace that could not be read.
func (m *Manager) RolledBack(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		m.mu.Lock()
		known := slices.SortedFunc(maps.Values(m.ledgers), func(a, b *ledger.Ledger) int {
			return strings.Compare(a.User(), b.User())
		})
		m.mu.Unlock()
		for _, l := range known {
			_, err := l.ReadHead(ctx)
			if err != nil && !yield(l.User(), wrapError("rolled back", l.User(), err)) || ctx.Err() != nil {
				return
			}
		}
	}
}
