package document

import "fmt"

// A document keeps what it would otherwise compute again from its fields: whether
// messages may be unused, the index of messages and the conversation of a State.
// The law of all of it is that what is live equals what is loaded. Check compares
// the first two, and load the third.

// Check returns an error if what the document keeps beside its fields is not
// what a document with these fields computes.
func (d *Document) Check() error {
	stored, err := Decode(d.Encode())
	if err != nil {
		return err
	}
	if err := d.checkUnused(stored); err != nil {
		return fmt.Errorf("unused messages: %w", err)
	}
	if err := d.checkIndex(stored); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// checkUnused accepts that messages are searched in vain, but not that unused
// ones stay.
func (d *Document) checkUnused(stored *Document) error {
	if effects := stored.unusedMessages(); !d.unused && len(effects) > 0 {
		return fmt.Errorf("%d are not known, the first of them %s", len(effects), effects[0].Field)
	}
	return nil
}

// checkIndex accepts that the index does not find a message whose text another
// one had that was deleted, and that it remembers a higher number: then a
// message is stored again, or numbers are left out.
func (d *Document) checkIndex(stored *Document) error {
	x := d.messages.Load()
	if x == nil {
		return nil
	}
	if want := stored.index(); x.last < want.last || x.first > want.first {
		return fmt.Errorf("the next numbers are around %d and %d, and %d and %d are used", x.first, x.last, want.first, want.last)
	}
	for text, n := range x.numbers.All() {
		if got := stored.message(*n); string(got) != text {
			return fmt.Errorf("message %d is %q, not %q", *n, got, text)
		}
	}
	return nil
}
