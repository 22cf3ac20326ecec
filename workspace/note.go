package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// maxNote is the length of the text of a note, in bytes.
const maxNote = 1 << 10

// Rename gives a workspace a title that stays whatever [Options].Title returns, or
// with "" that of Options.Title again. It is in [Summary.Title], can be given during a
// run, is masked, and its first 200 bytes are kept. It is exported, and not taken over
// by [Manager.Fork]. The error is ErrNotFound if the workspace does not exist.
func (m *Manager) Rename(ctx context.Context, userID, title string) error {
	return m.operate(ctx, work.Operation{Kind: opRename, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		h, err := l.ReadHead(ctx)
		if err != nil {
			return err
		}
		redact, err := m.presentSecrets(ctx, l, h)
		if err == nil {
			_, err = l.Rename(ctx, titleText(title, redact))
		}
		return err
	})
}

// SetNote notes something about a message of the conversation, as [View.Notes] shows
// it, in place of what the same By has noted about it; an empty Text removes that. Time
// is set. It can be done during a run. A note stays when its message is no longer in
// the conversation, is exported, and a fork has those about its messages. Text has at
// most 1 024 bytes, and is masked. Of more than 64 KiB, those about the messages with
// the lowest numbers are dropped.
//
// The error is ErrNotFound if the conversation does not have the message, and
// ErrInvalid for a Text or a By, of at most 256 bytes, that is too long or not UTF-8.
func (m *Manager) SetNote(ctx context.Context, userID string, note work.Note) error {
	return m.operate(ctx, work.Operation{Kind: opNote, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		if err := checkNote(note); err != nil {
			return err
		}
		h, doc, err := l.ReadPresent(ctx)
		if err != nil {
			return err
		}
		if !doc.HasMessage(note.Message) {
			return fmt.Errorf("%w: the conversation does not have the message", ErrNotFound)
		}
		redact, err := m.presentSecrets(ctx, l, h)
		if err == nil {
			note.Text, note.Time = redact(note.Text), ledger.CurrentTime()
			_, err = l.SetNote(ctx, h, note)
		}
		return err
	})
}

func checkNote(n work.Note) error {
	switch {
	case len(n.Text) > maxNote || !utf8.ValidString(n.Text):
		return fmt.Errorf("%w: a note must be UTF-8 of at most %d bytes", ErrInvalid, maxNote)
	case len(n.By) > maxID || !utf8.ValidString(n.By):
		return fmt.Errorf("%w: By of a note must be UTF-8 of at most %d bytes", ErrInvalid, maxID)
	}
	return nil
}

// titleText returns a title as it is stored.
func titleText(title string, redact func(string) string) string {
	return fault.Prefix(redact(strings.ToValidUTF8(title, "\uFFFD")), maxTitle)
}

// notesOf returns the notes about messages that a content has.
func notesOf(notes []work.Note, has func(number int) bool) []work.Note {
	return slices.DeleteFunc(slices.Clone(notes), func(n work.Note) bool { return !has(n.Message) })
}
