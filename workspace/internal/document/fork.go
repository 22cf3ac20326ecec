package document

import (
	"slices"

	"github.com/agentstate/state/internal/fault"
)

// ErrNoMessage is returned for the number of a message that a conversation does
// not have.
var ErrNoMessage = fault.Passing("document: no such message")

// HasMessage reports whether the conversation has the message with a number.
func (d *Document) HasMessage(n int) bool { return slices.Contains(d.entries(), n) }

// CutBefore removes the message with a number from the conversation, and those
// behind it.
func (d *Document) CutBefore(n int) error {
	entries := d.entries()
	at := slices.Index(entries, n)
	if at < 0 {
		return ErrNoMessage
	}
	return d.Apply(append(listEffects(PartConversation, fieldEntries, entries, entries[:at], numberArray),
		d.nextVersion()))
}

// AnswerAll answers all calls without a result, also those that are suspended.
func (d *Document) AnswerAll() error {
	suspended, err := d.Suspended()
	if err != nil {
		return err
	}
	effects, err := SuspendedEffects(suspended, nil)
	if err == nil {
		err = d.Apply(effects)
	}
	if err == nil {
		effects, err = d.EndRun(func() (*Document, error) { return New(), nil }, "")
	}
	if err == nil {
		err = d.Apply(effects)
	}
	return err
}
