package codec

import (
	"math"
	"slices"

	"github.com/agentstate/state/internal/jsontext"
)

// Entries are what a format makes of messages, in their order: the entries of a
// conversation, or its items. Those at the beginning may have been made for an
// earlier request that begins with the same messages.
type Entries struct {
	// From says of which message of the conversation each of the messages is (default:
	// the same). A message that was put behind another one is of that one.
	From []int

	Cuts  []Cut      // the first one is in front of all entries
	Types []CallType // in the order of the messages
	Text  []byte     // the entries as an array, once they are written

	head  []byte // those of an earlier request, with a comma behind each
	at    int    // the message in front of which they are put in, if there are any
	made  [][]byte
	bytes int // of all so far, with a comma for each
	ended bool
}

// Cut is a place in front of a message at which no entry is open. What is in front
// of it does not depend on what follows, as long as the message itself follows.
type Cut struct {
	Message int32
	Bytes   int32 // of the entries in front of it, with a comma for each
}

// CallType is the type of the calls with an id from a message on, "" for the one that
// calls have by default.
type CallType struct {
	Message  int
	ID, Type string
}

// cutBytes is how many bytes are between two cuts at least. A cut has 8.
const cutBytes = 256

// Resume puts the entries up to the last of some cuts in front of what is made of the
// message at a place. Text, cuts and types are those of an earlier request. Nothing in
// front of the place becomes an entry.
func (e *Entries) Resume(at int, text []byte, cuts []Cut, types []CallType) {
	cut := cuts[len(cuts)-1]
	e.at, e.head, e.Cuts = at, text[1:][:cut.Bytes], slices.Clone(cuts)
	for _, t := range types {
		if t.Message < int(cut.Message) {
			e.Types = append(e.Types, t)
		}
	}
}

// Reach is called in front of each message.
func (e *Entries) Reach(i int) {
	if i == e.at {
		e.bytes += len(e.head)
	}
}

// Add adds an entry.
func (e *Entries) Add(entry []byte) {
	e.made, e.bytes = append(e.made, entry), e.bytes+len(entry)+1
}

// Begun reports whether there are entries in front of the message that was reached.
func (e *Entries) Begun() bool { return e.bytes > 0 }

// Only returns the only entry, nil if there are none or several.
func (e *Entries) Only() []byte {
	if len(e.head) > 0 || len(e.made) != 1 {
		return nil
	}
	return e.made[0]
}

// Cut says that the i-th message begins an entry, and that none is open; i is none for
// a message that may be left out in another request. An entry that may be the only one
// is not cut off: it may stand for the list.
func (e *Entries) Cut(i int) {
	n := len(e.Cuts)
	if n == 1 && e.bytes == 0 { // nothing has come of the message that should begin
		e.Cuts, n = nil, 0
	}
	isFirst := n == 0 && e.bytes == 0
	isFar := n > 0 && (len(e.head) > 0 || len(e.made) > 1) && e.bytes >= int(e.Cuts[n-1].Bytes)+cutBytes
	if (isFirst || isFar) && !e.ended && i != none && e.bytes <= math.MaxInt32 {
		e.Cuts = append(e.Cuts, Cut{int32(e.Place(i)), int32(e.bytes)})
	}
}

// EndCuts says that what is said from now on changes what is in front of it.
func (e *Entries) EndCuts() { e.ended = true }

// SetType notes the type of the calls with an id from the i-th message on.
func (e *Entries) SetType(i int, id, typ string) {
	e.Types = append(e.Types, CallType{e.Place(i), id, typ})
}

// Place returns of which message of the conversation the i-th message is.
func (e *Entries) Place(i int) int {
	if e.From == nil {
		return i
	}
	return e.From[i]
}

// JSON returns the entries as an array.
func (e *Entries) JSON() []byte {
	if len(e.head) == 0 {
		e.Text = jsontext.Array(e.made)
		return e.Text
	}
	e.Text = append(append(make([]byte, 0, e.bytes+2), '['), e.head...)
	e.Text[len(e.Text)-1] = ',' // where they were all that there was, it is a bracket
	for _, entry := range e.made {
		e.Text = append(append(e.Text, entry...), ',')
	}
	e.Text[len(e.Text)-1] = ']'
	return e.Text
}
