package workspace

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// ForkPoint says what of a thread [Manager.Fork] takes over. The zero ForkPoint is
// all that it has.
type ForkPoint struct {
	// Version is the version of the content, or 0 for the newest one.
	Version uint64
	// Message is the number of a message of the conversation, as [View.Messages]
	// yields it, in front of which the new conversation ends; 0 if it ends with the
	// last one. With Version, the rest of the content is that of the version.
	// Without, it is what it was before the message came.
	Message int
}

// Fork makes a thread from another one of the same user: its content at a version,
// or in front of a message, so that a user can edit what was said and ask again.
// The thread that it is made from stays as it is. Calls of tools that have no
// result there, or that are suspended, are answered in the new thread as not made.
// Messages that wait, runs, dead letters and the ids of messages are not taken
// over, nor are values of [Manager.Store] and a title of [Manager.Rename]. Secrets, and fields that the schema does
// not have, have their present values.
//
// Fork returns ErrExists if toID exists, ErrInvalid if it is of another user,
// ErrNotFound if fromID or the message does not exist, and state.ErrCompacted if
// the version, or that before the message, is no longer held. A message can then
// be given with the present Version.
func (m *Manager) Fork(ctx context.Context, fromID, toID string, at ForkPoint) error {
	return m.operate(ctx, work.Operation{Kind: opFork, UserID: toID}, func(ctx context.Context, to *ledger.Ledger) error {
		fromUser := ownerOf(fromID)
		if toUser := ownerOf(toID); fromUser != toUser || ledger.IsShared(fromID) || ledger.IsShared(toID) {
			return fmt.Errorf("%w: a fork is a thread of the same user", ErrInvalid)
		}
		from, err := m.ledger(fromID)
		if err != nil {
			return err
		}
		var c *liveContent
		var notes []work.Note
		_, err = from.ReadStable(ctx, func(h *ledger.Head) (err error) {
			if !h.Exists() {
				return fmt.Errorf("%w: %q does not exist", ErrNotFound, fromID)
			}
			if notes, err = from.Notes(ctx, h); err == nil {
				c, err = m.forked(ctx, from, h, at)
			}
			return err
		})
		if err != nil {
			return err
		}
		made := ledger.Copy{Content: c.doc, Title: m.titleOf(ctx, c, c.storedState), Notes: notesOf(notes, c.doc.HasMessage)}
		_, err = to.Import(ctx, made, to.NewLease())
		return err
	})
}

// forked returns the content of a fork.
func (m *Manager) forked(ctx context.Context, l *ledger.Ledger, h *ledger.Head, at ForkPoint) (*liveContent, error) {
	now, err := m.contentAt(ctx, l, h, h.Version)
	if err != nil {
		return nil, err
	}
	version, cut := at.Version, at.Message
	switch {
	case version == 0 && cut == 0:
		version = h.Version
	case version == 0:
		if version, cut, err = beforeMessage(ctx, l, h, now.doc, cut); err != nil {
			return nil, err
		}
	}
	past, err := m.contentAt(ctx, l, h, version)
	if err != nil {
		return nil, err
	}
	doc, open := past.doc, now.open(past)
	err = doc.Apply(doc.RevertFields(now.doc, func(part, field string) bool {
		switch part {
		case document.PartField, document.PartKey, document.PartSecret, document.PartMemory:
			return !open(part, field)
		}
		return false
	}))
	if err == nil && cut != 0 {
		err = noMessage(doc.CutBefore(cut))
	}
	if err == nil {
		err = doc.Apply(doc.DropShared()) // of a run that is not finished there
	}
	if err == nil {
		err = doc.AnswerAll()
	}
	if err == nil {
		_, err = doc.Shorten(-1, -1) // drops the texts of messages that were cut
	}
	if err != nil {
		return nil, err
	}
	return m.content(l.User(), doc, past.position, nil)
}

// beforeMessage returns the newest version in which a message is not there yet. If
// it does not have all messages in front of that, because one record has stored
// them together, beforeMessage returns the version after it, in which the
// conversation is to be cut.
func beforeMessage(
	ctx context.Context, l *ledger.Ledger, h *ledger.Head, now *document.Document, n int,
) (version uint64, cut int, err error) {
	if !now.HasMessage(n) {
		return 0, 0, noMessage(document.ErrNoMessage)
	}
	oldest := h.Oldest()
	next := func(version uint64) (number int) {
		_, doc, failed := l.ContentAt(ctx, h, version)
		if failed == nil {
			number = doc.NextNumber()
		}
		err = errors.Join(err, failed)
		return number
	}
	past := sort.Search(int(h.Version-oldest), func(i int) bool { return err != nil || next(oldest+uint64(i)) > n })
	switch {
	case err != nil:
		return 0, 0, err
	case past == 0:
		return 0, 0, fmt.Errorf("message %d: %w", n, state.ErrCompacted)
	}
	version = oldest + uint64(past) - 1
	if next(version) < n {
		return version + 1, n, err
	}
	return version, 0, err
}

// noMessage returns ErrNotFound for a message that is not in a conversation.
func noMessage(err error) error {
	if errors.Is(err, document.ErrNoMessage) {
		return fmt.Errorf("%w: the conversation does not have the message", ErrNotFound)
	}
	return err
}
