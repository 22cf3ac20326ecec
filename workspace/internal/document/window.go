package document

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/transcript"
)

// SweepAfter is a number of messages: see [Document.Shorten]. To look for those
// that nothing needs takes longer than the rest of what follows a short run. It is
// a variable so that tests reach it with few messages.
var SweepAfter = 32

// MaxConversation is how many bytes the messages of a conversation may have before
// Shorten shortens it, whatever their number. A State takes no more than 16 MiB by
// default. Tests change it.
var MaxConversation = 12 << 20

// Shorten shortens the conversation to its last messages, by whole groups, and
// the history to its last results, and deletes the messages to which nothing
// refers any more. If only old messages were dropped, it deletes them when there
// are SweepAfter more messages than the last time. It returns the effects of all
// that. Calls without a result stay in the conversation, and results with
// suspended calls in the history. A negative limit shortens nothing. If there is
// an error, the document is not to be used any more.
func (d *Document) Shorten(maxMessages, maxResults int) ([]state.Effect, error) {
	messages, effects, err := d.shortenEntries(maxMessages)
	if err != nil {
		return nil, err
	}
	results, shortened, err := d.shortenResults(maxResults)
	if err != nil {
		return nil, err
	}
	short := d.conversation
	if effects = append(effects, shortened...); len(effects) > 0 {
		effects = append(effects, d.nextVersion())
		short = d.conversation.shortened(messages, results)
	}
	if err := d.Apply(effects); err != nil {
		return nil, err
	}
	d.conversation = short
	rest := d.shortenNumbers()
	if d.unused && (d.edited || d.count(PartMessage) >= d.swept+SweepAfter) {
		unused := d.unusedMessages()
		d.unused, d.edited, d.swept = false, false, d.count(PartMessage)-len(unused)
		rest = append(rest, unused...)
	}
	return append(effects, rest...), d.Apply(rest)
}

// Joined returns the effects of one record that saves and then shortens: what the
// second sets again, the version, is set once.
func Joined(saved, shortened []state.Effect) []state.Effect {
	if slices.ContainsFunc(shortened, IsVersion) {
		saved = slices.DeleteFunc(slices.Clone(saved), IsVersion)
	}
	return slices.Concat(saved, shortened)
}

// shortenEntries returns the indexes of the messages that are left of the
// conversation, and the effects that leave them; or nil if all are.
func (d *Document) shortenEntries(most int) ([]int, []state.Effect, error) {
	long, n := d.conversation.bytes() > MaxConversation, d.entryList().Len()
	if most < 0 || n <= most && !long {
		return nil, nil, nil
	}
	if !long && standsAlone(d.conversation.firstMessages(n-most+1, n)) {
		return lastOf(n, most), []state.Effect{dropFirstEffect(fieldEntries, n-most)}, nil
	}
	msgs := d.conversation.firstMessages(n, n)
	if len(msgs) != n {
		var err error
		if msgs, err = d.decodeMessages(d.entries()); err != nil {
			return nil, nil, err
		}
	}
	shapes := transcript.ShapesOf(msgs)
	kept := shapes.KeepLast(most)
	for k := len(kept); long && k > 0; kept = shapes.KeepLast(k) {
		size, half := bytesOf(msgs, kept), MaxConversation/2 // so that it is not long again after the next run
		if size <= half {
			break
		}
		k = min(k-1, k*half/size)
	}
	kept, effects := d.keepElements(fieldEntries, n, kept)
	return kept, effects, nil
}

// standsAlone reports whether transcript.KeepLast drops all messages of the front of
// a conversation but the last, if it keeps as many as there are from that one on. The
// last one is a request of the user, and nothing behind it depends on what is before:
// texts, and calls that have their results, by their keys. So most runs need not look
// at the whole conversation.
func standsAlone(front []state.Message) bool {
	last := len(front) - 1
	var calls []string // their keys
	answered := map[string]bool(nil)
	for i, s := range transcript.ShapesOf(front) {
		_, isText := front[i].(state.TextMessage)
		switch {
		case s.Reasoning || len(s.Refs) > 0, i == last && (!isText || s.Role != "user" || s.Joined):
			return false
		case isText && s.Role != "user" && s.Role != "assistant", !isText && len(s.Calls)+len(s.Answers) == 0:
			return false
		}
		for _, c := range s.Calls {
			if c.Key == "" || slices.Contains(calls, c.Key) {
				return false
			}
			calls = append(calls, c.Key)
		}
		for _, a := range s.Answers {
			if answered[a.Key] || !slices.Contains(calls, a.Key) {
				return false
			}
			if answered == nil {
				answered = map[string]bool{}
			}
			answered[a.Key] = true
		}
	}
	return last >= 0 && len(answered) == len(calls)
}

// lastOf returns the last indexes of n.
func lastOf(n, most int) []int {
	last := make([]int, most)
	for i := range last {
		last[i] = n - most + i
	}
	return last
}

// bytesOf returns how many bytes some of the messages have.
func bytesOf(msgs []state.Message, indexes []int) (n int) {
	for _, i := range indexes {
		n += len(msgs[i].Raw())
	}
	return n
}

// shortenResults returns the indexes of the results that are left of the
// history, and the effects that leave them; or nil if all are.
func (d *Document) shortenResults(most int) ([]int, []state.Effect, error) {
	results := d.resultList()
	n := results.Len()
	if most < 0 || n <= most {
		return nil, nil, nil
	}
	suspended, err := d.Suspended()
	if err != nil {
		return nil, nil, err
	}
	kept := make([]int, 0, most)
	for i := range n {
		keep := i >= n-most
		if !keep && len(suspended) > 0 {
			if keep, err = d.holdsSuspended(persist.At[result](results, i), suspended); err != nil {
				return nil, nil, err
			}
		}
		if keep {
			kept = append(kept, i)
		}
	}
	kept, effects := d.keepElements(fieldResults, n, kept)
	return kept, effects, nil
}

// keepElements returns the indexes of those of the n elements of a list that are
// kept, and the effects that leave them; or nil if all are.
func (d *Document) keepElements(field string, n int, kept []int) ([]int, []state.Effect) {
	dropped := n - len(kept)
	switch {
	case dropped == 0:
		return nil, nil
	case len(kept) == 0 || kept[0] == dropped: // the last ones
		return kept, []state.Effect{dropFirstEffect(field, dropped)}
	}
	texts, _ := d.get(PartConversation, field).texts()
	return kept, listEffects(PartConversation, field, texts, transcript.Select(texts, kept), arrayText)
}

func dropFirstEffect(field string, n int) state.Effect {
	return state.Effect{Part: PartConversation, Field: field, Kind: state.EffectDropFirst, N: n}
}
