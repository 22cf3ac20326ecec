package workspace

import (
	"context"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/internal/turns"
)

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events. All but EventSummary are about runs.
const (
	EventSummary EventKind = "summary" // the workspace has changed; the first event
	EventStarted EventKind = "started" // a run has begun, was taken over or is tried again
	EventChange  EventKind = "change"  // the run has changed the State, and may not have committed it yet
	EventDelta   EventKind = "delta"   // a piece of an answer that is not finished: see Run.Emit
	EventThought EventKind = "thought" // a piece of what the model thinks before or in that answer: see Run.EmitThought
	EventInput   EventKind = "input"   // a piece of the arguments of a call of it: see Run.EmitInput
	EventReply   EventKind = "reply"   // Run.SetReply
	EventEnded   EventKind = "ended"   // the handling of a message has ended; the last event about it
)

// Event is what [Manager.Watch] yields. It shows no secrets.
//
// A page, as [github.com/agentstate/state/workspace/page] makes one, follows the events
// by these rules:
//
//   - Take a view after the first event, after a summary, and if a number of Order is
//     missing: the reader was too slow.
//   - Show the text of deltas behind the conversation until a view has a message with
//     its number, or its run is gone. An Offset that is not the end of the text so far
//     begins the text anew.
//   - Show the value that a change sets in place of the view's until its run is gone.
//     For edits of lists, wait for the view of their commit.
type Event struct {
	Summary   // of the workspace at the event
	Kind      EventKind
	Order     uint64         // rises by one with each event of a Watch; by more if events were dropped
	MessageID string         // of the message that the event is about; empty for EventSummary
	Effects   []state.Effect // of EventChange, without results
	Reply     string         // of EventReply and EventEnded
	Outcome   Outcome        // of EventEnded
	Err       error          // of EventEnded, if the status is StatusFailed: ErrRunFailed, with the reason

	// Of EventDelta, EventThought and EventInput: the text, how many bytes of the text,
	// the thoughts or the arguments are in front of it, the number that the first
	// message of the answer gets when it is stored, as [View.Messages] yields it, and
	// Run.Attempt. An Offset of 0 begins the text anew. Begun counts the answers that
	// the process has begun in the run: another number begins all of it anew.
	Delta   string
	Offset  int
	Message int
	Attempt int
	Begun   int
	// Of EventInput: how many calls of the answer began before it, and its tool.
	Call int
	Name string
}

// MarshalJSON returns the event for people and programs that show it, such as a
// page: an object with
//
//	kind          of the event, as the constants of EventKind have it
//	seq           Order: a reader that misses a number takes a View
//	user_id, version, queued, dead_letters, suspended, run_id
//	              of the Summary
//	message_id    of the message that the event is about
//	effects       of a change, each as [state.Effect] says
//	message, attempt, begun, offset, delta
//	              of a delta, a thought and an input
//	call, name    of an input
//	reply         of a reply, and of the end
//	outcome       of the end: status, run_id, reply, reason and stop
//
// Members that are 0 or empty are missing, but for kind, seq, user_id and version,
// for offset in a
// delta, a thought and an input, and for call in an input.
func (e Event) MarshalJSON() ([]byte, error) {
	out := struct {
		Kind        EventKind      `json:"kind"`
		Order       uint64         `json:"seq"`
		UserID      string         `json:"user_id"`
		Version     uint64         `json:"version"`
		RunID       string         `json:"run_id,omitempty"`
		Queued      int            `json:"queued,omitempty"`
		DeadLetters int            `json:"dead_letters,omitempty"`
		Suspended   int            `json:"suspended,omitempty"`
		MessageID   string         `json:"message_id,omitempty"`
		Effects     []state.Effect `json:"effects,omitempty"`
		Message     int            `json:"message,omitempty"`
		Attempt     int            `json:"attempt,omitempty"`
		Begun       int            `json:"begun,omitempty"`
		Offset      *int           `json:"offset,omitempty"`
		Call        *int           `json:"call,omitempty"`
		Name        string         `json:"name,omitempty"`
		Delta       string         `json:"delta,omitempty"`
		Reply       string         `json:"reply,omitempty"`
		Outcome     *Outcome       `json:"outcome,omitempty"`
	}{
		Kind: e.Kind, Order: e.Order, UserID: e.UserID, Version: e.Version, Queued: e.Queued, DeadLetters: e.DeadLetters,
		Suspended: e.Suspended, MessageID: e.MessageID, Effects: e.Effects, Message: e.Message, Attempt: e.Attempt,
		Begun: e.Begun, Name: e.Name, Delta: e.Delta, Reply: e.Reply,
	}
	switch {
	case e.Kind == EventInput:
		out.Offset, out.Call = &e.Offset, &e.Call
	case e.isPiece():
		out.Offset = &e.Offset
	case e.Kind == EventEnded:
		out.Outcome = &e.Outcome
	}
	switch {
	case e.Kind == EventEnded: // the run of the workspace is the next one
		out.RunID = e.Outcome.RunID
	case e.Run != nil:
		out.RunID = e.Run.ID
	}
	return jsontext.Marshal(out)
}

// isPiece reports whether the event is a piece of an answer.
func (e *Event) isPiece() bool {
	return e.Kind == EventDelta || e.Kind == EventThought || e.Kind == EventInput
}

// maxItems is the number of events that a follower may be behind.
const maxItems = 64

// follower gets the events of a feed.
type follower struct {
	feed      *feed
	messageID string // the message that it waits for, or "" for all events
	wake      chan struct{}

	// Guarded by feed.mu:
	items   []item
	told    ledger.Age // of the newest head that it was told
	dropped uint64     // how many events it has missed
	live    liveSeen   // of the run that another process holds
	err     error
}

// item is an event for a follower.
type item struct {
	Event
	head    *ledger.Head
	stored  bool   // Outcome is as it was stored, and not masked
	dropped uint64 // how many events in front of it were dropped, since the beginning
	thread  string // the workspace that the head is of, if the follower is that of a user part
}

func newFollower(f *feed, messageID string) *follower {
	return &follower{feed: f, messageID: messageID, wake: make(chan struct{}, 1)}
}

// add adds an item. If the follower is too far behind, a summary replaces what it
// can do without. The caller holds feed.mu.
func (w *follower) add(i item) {
	if w.messageID != "" {
		switch {
		case i.Kind == EventSummary:
		case i.Kind == EventEnded && i.MessageID == w.messageID && i.head.Age().After(w.told):
		default:
			return
		}
	}
	if i.head != nil && i.thread == "" && (i.Kind == EventSummary || i.Kind == EventEnded) {
		w.noteHead(i.head)
	}
	if n := len(w.items); n > 0 && follows(w.items[n-1], i) {
		w.items[len(w.items)-1].Delta += i.Delta
		return
	}
	if len(w.items) >= maxItems {
		w.drop()
	}
	i.dropped = w.dropped
	w.items = append(w.items, i)
	turns.Wake(w.wake)
}

// beginText tells the follower alone the answer of a run so far, before it has read
// anything. Pieces that have come meanwhile are in it.
func (w *follower) beginText(parts []Event) {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	w.items = slices.DeleteFunc(w.items, func(i item) bool { return i.isPiece() })
	for _, e := range parts {
		w.add(item{Event: e, head: w.feed.head})
	}
}

// follows reports whether i is the next piece of what last is the end of.
func follows(last, i item) bool {
	return last.isPiece() && last.Kind == i.Kind && last.MessageID == i.MessageID && last.Call == i.Call &&
		last.Message == i.Message && last.Attempt == i.Attempt && last.Begun == i.Begun && last.Offset+len(last.Delta) == i.Offset
}

// drop replaces the items by a summary, the threads that have changed, the last
// endings and the answer that is under way. The caller holds feed.mu.
func (w *follower) drop() {
	var threads, endings, text []item
	for _, i := range w.items {
		switch {
		case i.thread != "":
			threads = append(threads, i)
		case i.Kind == EventEnded:
			endings, text = append(endings, i), nil
		case i.isPiece():
			text = appendPiece(text, i)
		}
	}
	endings = endings[max(0, len(endings)-maxItems/2):]
	kept := slices.Concat([]item{{Event: Event{Kind: EventSummary}, head: w.feed.head}}, threads, endings, text)
	w.dropped += uint64(len(w.items) - len(threads) - len(endings) - len(text))
	for n := range kept {
		kept[n].dropped = w.dropped
	}
	w.items = kept
}

// appendPiece appends a piece to those of the answer that is under way. One of
// another answer, or that begins anew, replaces them.
func appendPiece(pieces []item, i item) []item {
	n := slices.IndexFunc(pieces, func(p item) bool { return p.Kind == i.Kind && p.Call == i.Call })
	switch {
	case len(pieces) > 0 && (pieces[0].Message != i.Message || pieces[0].Attempt != i.Attempt || pieces[0].Begun != i.Begun):
		return []item{i}
	case n >= 0 && follows(pieces[n], i):
		pieces[n].Delta += i.Delta
		return pieces
	case n >= 0:
		return []item{i}
	}
	return append(pieces, i)
}

// noteHead notes that the follower was told a head. The caller holds feed.mu.
func (w *follower) noteHead(h *ledger.Head) {
	if h.Age().After(w.told) {
		w.told = h.Age()
	}
}

// addSummary adds a summary of a head that the follower was not told. The caller
// holds feed.mu.
func (w *follower) addSummary(h *ledger.Head) {
	if !h.Age().After(w.told) {
		return
	}
	if n := len(w.items); n > 0 && w.items[n-1].Kind == EventSummary && w.items[n-1].thread == "" {
		w.items = w.items[:n-1]
	}
	w.add(item{Event: Event{Kind: EventSummary}, head: h})
}

// noteTold notes that the follower knows a head. It drops what the feed has told
// of that head and of older ones, which may not know the message yet, and of runs
// that are over by then.
func (w *follower) noteTold(h *ledger.Head) {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	w.noteHead(h)
	w.items = slices.DeleteFunc(w.items, func(i item) bool {
		switch {
		case i.thread != "" || i.head != nil && i.head.Age().After(h.Age()):
			return false
		case i.Kind == EventSummary || i.Kind == EventEnded:
			return i.head != nil
		}
		return i.MessageID != "" && (h.Run == nil || h.Run.Message.ID != i.MessageID)
	})
	if f := w.feed; f.told == nil {
		f.told = h
	}
	if f := w.feed; f.head == nil {
		f.head = h
	}
}

// fail ends the follower. The caller holds feed.mu.
func (w *follower) fail(err error) {
	w.err = err
	turns.Wake(w.wake)
}

// next waits for the next item.
func (w *follower) next(ctx context.Context) (item, error) {
	for {
		if i, ok, err := w.take(); ok || err != nil {
			return i, err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return item{}, context.Cause(ctx)
		case <-w.feed.m.ctx.Done():
			return item{}, context.Cause(w.feed.m.ctx)
		}
	}
}

func (w *follower) take() (i item, ok bool, err error) {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	if len(w.items) == 0 {
		return item{}, false, w.err
	}
	i = w.items[0]
	w.items = w.items[1:]
	return i, true, nil
}
