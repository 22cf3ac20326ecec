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
	EventReply   EventKind = "reply"   // Run.SetReply
	EventEnded   EventKind = "ended"   // the handling of a message has ended; the last event about it
)

// Event is what [Manager.Watch] yields. It shows no secrets.
type Event struct {
	Summary   // of the workspace at the event
	Kind      EventKind
	MessageID string         // of the message that the event is about; empty for EventSummary
	Effects   []state.Effect // of EventChange, without results
	Reply     string         // of EventReply and EventEnded
	Outcome   Outcome        // of EventEnded
	Err       error          // of EventEnded, if the status is StatusFailed: ErrRunFailed, with the reason
}

// MarshalJSON returns the event for people and programs that show it.
func (e Event) MarshalJSON() ([]byte, error) {
	out := struct {
		Kind        EventKind      `json:"kind"`
		UserID      string         `json:"user_id"`
		Version     uint64         `json:"version"`
		Seq         uint64         `json:"seq"`
		RunID       string         `json:"run_id,omitempty"`
		Queued      int            `json:"queued"`
		DeadLetters int            `json:"dead_letters"`
		MessageID   string         `json:"message_id,omitempty"`
		Effects     []state.Effect `json:"effects,omitempty"`
		Reply       string         `json:"reply,omitempty"`
		Status      Status         `json:"status,omitempty"`
		Reason      string         `json:"reason,omitempty"`
	}{
		Kind: e.Kind, UserID: e.UserID, Version: e.Version, Seq: e.Seq, Queued: e.Queued, DeadLetters: e.DeadLetters,
		MessageID: e.MessageID, Effects: e.Effects, Reply: e.Reply, Status: e.Outcome.Status, Reason: e.Outcome.Reason,
	}
	switch {
	case e.Kind == EventEnded: // the run of the workspace is the next one
		out.RunID = e.Outcome.RunID
	case e.Run != nil:
		out.RunID = e.Run.ID
	}
	return jsontext.Marshal(out)
}
