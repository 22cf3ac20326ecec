package work

import "github.com/agentstate/state"

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

// Event is what has happened in a workspace. It shows no secrets. Manager.Watch
// yields it with a summary of the workspace.
type Event struct {
	Kind      EventKind
	Order     uint64         // rises by one with each event of a Watch; by more if events were dropped
	MessageID string         // of the message that the event is about; empty for EventSummary
	Effects   []state.Effect // of EventChange, without results
	Reply     string         // of EventReply and EventEnded
	Outcome   Outcome        // of EventEnded

	// Of EventDelta: the text, how many bytes of its message are in front of it, the
	// number that the message gets when it is stored, as View.Messages yields it, and
	// Run.Attempt. An Offset of 0 begins the text anew.
	Delta   string
	Offset  int
	Message int
	Attempt int
}
