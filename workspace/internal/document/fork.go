package document

import (
	"errors"
	"slices"
)

// ErrNoMessage is returned for the number of a message that a conversation does
// not have.
var ErrNoMessage = errors.New("document: no such message")

// HasMessage reports whether the conversation has the message with a number.
func (d *Document) HasMessage(n int) (bool, error) {
	entries, _, err := d.entries()
	return slices.Contains(entries, n), err
}

// CutBefore removes the message with a number from the conversation, and those
// behind it.
func (d *Document) CutBefore(n int) error {
	entries, _, err := d.entries()
	if err != nil {
		return err
	}
	at := slices.Index(entries, n)
	if at < 0 {
		return ErrNoMessage
	}
	next, err := d.nextVersion()
	if err != nil {
		return err
	}
	return d.Apply(append(listEffects(PartConversation, fieldEntries, entries, entries[:at], numberArray), next))
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
	if err != nil {
		return err
	}
	if effects, err = d.AnswerPending(func() (*Document, error) { return New(), nil }, ""); err != nil {
		return err
	}
	return d.Apply(effects)
}
