package workspace

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events. All but EventSummary are about runs.
const (
	EventSummary EventKind = "summary" // the workspace has changed; the first event
	EventStarted EventKind = "started" // a run has begun, was taken over or is tried again
	EventChange  EventKind = "change"  // the run has changed the State, and may not have committed it yet
	EventDelta   EventKind = "delta"   // a piece of an answer that is not finished: see Run.Emit
	EventReply   EventKind = "reply"   // Run.SetReply
	EventEnded   EventKind = "ended"   // the handling of a message has ended; the last event about it
)

// Event is what [Manager.Watch] yields. It shows no secrets.
type Event struct {
	Summary   // of the workspace at the event
	Kind      EventKind
	Order     uint64         // rises by one with each event of a Watch; by more if events were dropped
	MessageID string         // of the message that the event is about; empty for EventSummary
	Effects   []state.Effect // of EventChange, without results
	Reply     string         // of EventReply and EventEnded
	Outcome   Outcome        // of EventEnded
	Err       error          // of EventEnded, if the status is StatusFailed: ErrRunFailed, with the reason

	// Of EventDelta: the text, how many bytes of its message are in front of it, the
	// number that the message gets when it is stored, as [View.Messages] yields
	// it, and Run.Attempt. An Offset of 0 begins the text anew.
	Delta   string
	Offset  int
	Message int
	Attempt int
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
//	message, attempt, offset, delta
//	              of a delta
//	reply         of a reply, and of the end
//	outcome       of the end: status, run_id, reply and reason
//
// Members that are 0 or empty are missing, but for kind, seq, user_id and version,
// and for offset in a delta.
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
		Offset      *int           `json:"offset,omitempty"`
		Delta       string         `json:"delta,omitempty"`
		Reply       string         `json:"reply,omitempty"`
		Outcome     *Outcome       `json:"outcome,omitempty"`
	}{
		Kind: e.Kind, Order: e.Order, UserID: e.UserID, Version: e.Version, Queued: e.Queued, DeadLetters: e.DeadLetters,
		Suspended: e.Suspended, MessageID: e.MessageID, Effects: e.Effects, Message: e.Message, Attempt: e.Attempt,
		Delta: e.Delta, Reply: e.Reply,
	}
	switch e.Kind {
	case EventDelta:
		out.Offset = &e.Offset
	case EventEnded:
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
