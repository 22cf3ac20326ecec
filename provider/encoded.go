package provider

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/excerpt"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
	"github.com/agentstate/state/transcript"
)

// Encoded is the conversation of a request as it was encoded. It is for the other
// packages of this module, and does not change.
type Encoded struct {
	by       encoding
	messages []state.Message
	omitted  []Omission // sorted
	text     []byte     // the entries of the messages, as an array
	cuts     []codec.Cut
	types    []codec.CallType
}

// encoding is what decides on the JSON of a message, beside the message and those in
// front of it.
type encoding struct {
	format           *Format
	recall, pictures bool
}

// EncodeNext is [Format.EncodeRequest] for a request of which the one before is known,
// as packages of this module make it: its settings are an object that has been checked.
// What both begin with is not encoded again. It retains r.Messages, and before may be
// nil.
func (f *Format) EncodeNext(_ internal.Key, r Request, before *Encoded) ([]byte, []Omission, *Encoded, error) {
	settings, _ := jsontext.Members([]byte(r.Settings)) // none if it is empty
	return f.encode(r, settings, before)
}

// encode encodes a request. It returns nil for the next one if that cannot go on with
// the conversation.
func (f *Format) encode(r Request, settings jsontext.Object, before *Encoded) ([]byte, []Omission, *Encoded, error) {
	by := encoding{f, slices.ContainsFunc(r.Tools, func(t Tool) bool {
		return t.Name == excerpt.Recall
	}), r.Pictures && f == OpenAI}
	known := before.shared(by, r.Messages)
	if err := f.checkMessages(r.Messages, known); err != nil {
		return nil, nil, nil, err
	}
	msgs, entries := r.Messages, codec.Entries{}
	var left omissions
	if cuts := before.cutsWithin(known); cuts != nil {
		msgs, left = before.resume(&entries, r.Messages, cuts)
	}
	msgs = transcript.Shown(msgs, by.recall)
	if by.pictures {
		msgs, entries.From = f.movePictures(msgs, entries.From)
	}
	tools, err := f.offer(r.Tools, func(what string) { left.add(-1, what) })
	if err != nil {
		return nil, nil, nil, err
	}
	e := newEncoder(f.mark, msgs, entries, &left, f.codec.OwnMembers)
	body, err := f.codec.EncodeRequest(e, codec.Request{Tools: tools, Settings: settings}, msgs)
	if err != nil {
		return nil, nil, nil, f.wrapError(err)
	}
	left = left.sorted()
	next := &Encoded{by, r.Messages, slices.Clone(left), e.Entries.Text, e.Entries.Cuts, e.Entries.Types}
	if !next.mayGoOn() {
		next = nil
	}
	return body.JSON(), left, next, nil
}

// mayGoOn reports whether a request may go on with the conversation: nothing but a
// system prompt is in front of the first entry, and there are several.
func (e *Encoded) mayGoOn() bool {
	return len(e.cuts) > 1 && !slices.ContainsFunc(e.messages[:e.cuts[0].Message], func(m state.Message) bool {
		return !origin.IsSystem(m)
	})
}

// shared returns how many messages at the beginning are the same, and are encoded alike.
func (e *Encoded) shared(by encoding, msgs []state.Message) int {
	if e == nil || e.by != by {
		return 0
	}
	n := 0
	for n < len(msgs) && n < len(e.messages) && isSame(msgs[n], e.messages[n]) {
		n++
	}
	return n
}

// isSame reports whether both are messages that are encoded alike.
func isSame(a, b state.Message) bool {
	return inside.IsMessage(b) && (a == b || inside.IsMessage(a) && a.Raw() == b.Raw())
}

// cutsWithin returns the cuts up to the last one that is within the first n messages,
// nil if there is nothing in front of it.
func (e *Encoded) cutsWithin(n int) []codec.Cut {
	if n == 0 {
		return nil
	}
	k := len(e.cuts)
	for k > 1 && (int(e.cuts[k-1].Message) >= n || e.by.pictures && isResult(e.messages[e.cuts[k-1].Message])) {
		k--
	}
	if k <= 1 {
		return nil
	}
	return e.cuts[:k]
}

// isResult reports whether a message is a result. Pictures of it, or of one before it,
// may be moved behind it.
func isResult(m state.Message) bool {
	_, ok := m.(state.ToolResultMessage)
	return ok
}

// resume returns the messages that are to be encoded, those in front of all entries and
// those behind the last of some cuts, and what was left out of the others, which it
// puts into entries.
func (e *Encoded) resume(
	entries *codec.Entries, msgs []state.Message, cuts []codec.Cut,
) (rest []state.Message, left omissions) {
	front, cut := int(cuts[0].Message), int(cuts[len(cuts)-1].Message)
	entries.Resume(front, e.text, cuts, e.types)
	rest = slices.Concat(msgs[:front], msgs[cut:])
	entries.From = make([]int, len(rest))
	for i := range rest {
		if entries.From[i] = i; i >= front {
			entries.From[i] += cut - front
		}
	}
	for _, o := range e.omitted {
		if front <= o.Message && o.Message < cut {
			left = append(left, o)
		}
	}
	return rest, left
}
