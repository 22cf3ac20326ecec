package work

import "github.com/agentstate/state"

// Status says what happened to a message.
type Status string

// The statuses of messages.
const (
	StatusStarted   Status = "started"   // its run has begun
	StatusDone      Status = "done"      // it was handled
	StatusQueued    Status = "queued"    // it waits
	StatusDuplicate Status = "duplicate" // a message with its id was accepted before
	StatusRejected  Status = "rejected"  // it was not accepted because of a run
	StatusFailed    Status = "failed"    // its run has failed
)

// Outcome is what became of a message.
type Outcome struct {
	Status Status `json:"status"`
	RunID  string `json:"run_id,omitempty"` // of the run that handled the message
	Reply  string `json:"reply,omitempty"`  // set by Run.SetReply, which says how long it is kept
	Reason string `json:"reason,omitempty"` // why the message was given up or its run was ended: one line
	// Stop says how the last answer of a turn of package loop has ended, if the model
	// has not said all: such as [state.StopLength]. The message counts as handled.
	Stop state.Stop `json:"stop,omitempty"`
	// First is the status of the first message with the id, if Status is
	// StatusDuplicate. RunID, Reply and Reason are then those of the first.
	First Status `json:"first,omitempty"`
	// Differs is true if Status is StatusDuplicate, and the first message waits
	// or is being handled and has another content: the id was given to two
	// messages, and this one is lost unless it is sent with an id of its own. Of
	// a message that has ended, only the id is kept: Differs is false.
	Differs bool `json:"differs,omitempty"`
}

// Ending says how the handling of a message has ended.
type Ending string

// The endings. All but EndingFenced and EndingAbandoned are stored.
const (
	EndingFinished    Ending = "finished"    // Options.Run returned nil, and its changes are stored
	EndingFailed      Ending = "failed"      // the message is a dead letter
	EndingInterrupted Ending = "interrupted" // another message with BusyInterrupt has ended the run
	EndingRolledBack  Ending = "rolled_back" // another message with BusyRollback has ended the run
	EndingCancelled   Ending = "cancelled"   // Manager.Cancel has ended the run
	EndingReset       Ending = "reset"       // Manager.Reset has dropped the message
	EndingDiscarded   Ending = "discarded"   // Manager.Discard has dropped the message
	EndingDropped     Ending = "dropped"     // there were too many dead letters after it
	EndingFenced      Ending = "fenced"      // another holder has taken the run over, or its lease has expired
	EndingAbandoned   Ending = "abandoned"   // the end of the run could not be stored; it will be taken over
)

// WhenBusy determines what happens to a message that arrives during a run.
type WhenBusy int

// Package workspace names each of them too, and isKnown there has their range.
const (
	// BusyDefault is Options.WhenBusy in a Message, and BusyEnqueue in Options.
	BusyDefault WhenBusy = iota
	// BusyEnqueue lets the message wait in a durable queue. The holder of the
	// run handles it later.
	BusyEnqueue
	// BusyReject rejects the message.
	BusyReject
	// BusyInterrupt ends the run, keeps its committed changes and what was said, as
	// Cancel does, and handles the message.
	BusyInterrupt
	// BusyRollback ends the run, undoes its committed changes and handles the
	// message.
	BusyRollback
	// BusyJoin lets the message wait as BusyEnqueue does, unless the function of the
	// run is one of Loop. Then the message joins the run: it is added to the
	// conversation behind the next results of tools, and the model is asked with it.
	// It joins only if no other message waits in front of it and no call is open, and
	// never with Decisions, Fields, Tools or an Agent. At most 16 join one run. The
	// commit that stores the results takes it in.
	//
	// A message that has joined ends as the message of the run does. It is handled
	// next, by a run of its own, if no model has read it, or if the run fails; and
	// it waits again if the run is rolled back or begun anew.
	BusyJoin
)

// Takeover determines how a run continues whose holder has died.
type Takeover int

const (
	// TakeoverResume keeps the committed changes of the run.
	TakeoverResume Takeover = iota
	// TakeoverRestart undoes the committed changes of the run.
	TakeoverRestart
)
