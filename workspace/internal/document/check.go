package document

import (
	"fmt"
	"reflect"

	"github.com/agentstate/state"
)

// A document keeps what it would otherwise compute again from its fields: the
// numbers of the conversation, the ranges of results, whether messages may be unused, the index of messages and
// the conversation of a State. The law of all of it is that what is live equals
// what is loaded. Check and SameState compare the two; only tests call them.

// Check returns an error if what the document keeps beside its fields is not
// what a document with these fields computes.
func (d *Document) Check() error {
	stored, err := Decode(d.Encode())
	if err != nil {
		return err
	}
	for what, check := range map[string]func(*Document) error{
		"entries": d.checkEntries, "numbers": d.checkNumbers, "references": d.checkReferences, "unused messages": d.checkUnused, "index": d.checkIndex, "conversation": d.checkConversation,
	} {
		if err := check(stored); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

func (d *Document) checkEntries(stored *Document) error {
	l := d.entryNumbers.Load()
	if l == nil {
		return nil
	}
	want, err := stored.entryList()
	if err != nil {
		return err
	}
	if a, b := l.Slice(0, l.Len()), want.Slice(0, want.Len()); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("live %v, stored %v", a, b)
	}
	return nil
}

func (d *Document) checkNumbers(stored *Document) error {
	live, err := d.numbering()
	if err != nil {
		return err
	}
	if want, err := stored.numbering(); err != nil || live != want {
		return fmt.Errorf("live %v, stored %v: %w", live, want, err)
	}
	return nil
}

func (d *Document) checkReferences(stored *Document) error {
	if d.references == nil {
		return nil
	}
	want, err := stored.ranges()
	if err != nil {
		return err
	}
	a, b := d.references.Slice(0, d.references.Len()), want.Slice(0, want.Len())
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("live %v, stored %v", a, b)
	}
	return nil
}

// checkUnused accepts that messages are searched in vain, but not that unused
// ones stay.
func (d *Document) checkUnused(stored *Document) error {
	if d.unused {
		return nil
	}
	effects, err := stored.unusedMessages()
	if err == nil && len(effects) > 0 {
		err = fmt.Errorf("%d are not known, the first of them %s", len(effects), effects[0].Field)
	}
	return err
}

// checkIndex accepts that the index does not find a message whose text another
// one had that was deleted, and that it remembers a higher number: then a
// message is stored again, or numbers are left out.
func (d *Document) checkIndex(stored *Document) error {
	x := d.messages.Load()
	if x == nil {
		return nil
	}
	want, err := stored.index()
	if err != nil {
		return err
	}
	if x.last < want.last || x.first > want.first {
		return fmt.Errorf("the next numbers are around %d and %d, and %d and %d are used", x.first, x.last, want.first, want.last)
	}
	for text, n := range x.numbers.All() {
		if got := stored.message(*n); string(got) != text {
			return fmt.Errorf("message %d is %q, not %q", *n, got, text)
		}
	}
	return nil
}

func (d *Document) checkConversation(stored *Document) error {
	kept := d.conversation.newest.Load()
	if kept == nil {
		return nil
	}
	live, _, err := d.Load(kept.schema)
	if err != nil {
		return err
	}
	loaded, _, err := stored.Load(kept.schema)
	if err != nil {
		return err
	}
	return SameState(live, loaded)
}

// SameState returns an error if a State that was made of what was live is not
// the one that was loaded.
func SameState(live, loaded *state.State) error {
	live, loaded = live.Snapshot(), loaded.Snapshot()
	changes, err := live.Effects(loaded)
	if err != nil {
		return err
	}
	if len(changes) > 0 || live.Version() != loaded.Version() {
		return fmt.Errorf("version %d is live, and version %d stored; differences: %v", live.Version(), loaded.Version(), changes)
	}
	if a, b := live.History().Results(), loaded.History().Results(); fmt.Sprint(a) != fmt.Sprint(b) {
		return fmt.Errorf("live %v, stored %v", a, b)
	}
	other := loaded.KV().All()
	for key, a := range live.KV().All() {
		if b := other[key]; fmt.Sprintf("%T %v", a, a) != fmt.Sprintf("%T %v", b, b) {
			return fmt.Errorf("%s: live %v, stored %v", key, a, b)
		}
	}
	return nil
}
