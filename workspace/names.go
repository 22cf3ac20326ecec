package workspace

import (
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace/work"
)

// What programs name every day is declared in package work, and has its names here
// too.
type (
	// Status says what happened to a message: StatusStarted, StatusDone, StatusQueued,
	// StatusDuplicate, StatusRejected or StatusFailed.
	Status = work.Status
	// Outcome is what became of a message:
	//
	//	Status  Status     // what happened to it
	//	RunID   string     // of the run that handled it
	//	Reply   string     // the last words of the model, or what Run.SetReply has set
	//	Reason  string     // why it was given up, or its run was ended: one line
	//	Stop    state.Stop // how an answer has ended that was not whole, such as state.StopLength
	//	First   Status     // of a duplicate: that of the first message with the id
	//	Differs bool       // of a duplicate: the first message has another content
	Outcome = work.Outcome
	// WhenBusy determines what happens to a message that arrives during a run:
	// BusyDefault, BusyEnqueue, BusyReject, BusyInterrupt, BusyRollback or BusyJoin.
	WhenBusy = work.WhenBusy
	// Takeover determines how a run continues whose holder has died: TakeoverResume or
	// TakeoverRestart.
	Takeover = work.Takeover
)

// The statuses of messages.
const (
	StatusStarted   Status = work.StatusStarted   // its run has begun
	StatusDone      Status = work.StatusDone      // it was handled
	StatusQueued    Status = work.StatusQueued    // it waits
	StatusDuplicate Status = work.StatusDuplicate // a message with its id was accepted before
	StatusRejected  Status = work.StatusRejected  // it was not accepted because of a run
	StatusFailed    Status = work.StatusFailed    // its run has failed
)

// What happens to a message that arrives during a run.
const (
	BusyDefault   WhenBusy = work.BusyDefault   // Options.WhenBusy in a Message, and BusyEnqueue in Options
	BusyEnqueue   WhenBusy = work.BusyEnqueue   // it waits in a durable queue
	BusyReject    WhenBusy = work.BusyReject    // it is rejected
	BusyInterrupt WhenBusy = work.BusyInterrupt // it ends the run, whose committed changes stay
	BusyRollback  WhenBusy = work.BusyRollback  // it ends the run, and undoes its committed changes
	BusyJoin      WhenBusy = work.BusyJoin      // it joins the run of a Loop, and waits otherwise
)

// How a run continues whose holder has died.
const (
	TakeoverResume  Takeover = work.TakeoverResume  // with its committed changes
	TakeoverRestart Takeover = work.TakeoverRestart // without them
)

// The errors. Package work says more of each.
var (
	ErrBusy         = work.ErrBusy         // the operation is not possible during a run
	ErrQueueFull    = work.ErrQueueFull    // the queue has no room for the message
	ErrFenced       = work.ErrFenced       // the run has lost its lease
	ErrInterrupted  = work.ErrInterrupted  // another message or a reset has ended the run
	ErrRunCancelled = work.ErrRunCancelled // Manager.Cancel has ended the run
	ErrNotFound     = work.ErrNotFound     // the workspace has no such message, dead letter or run
	ErrUserDeleted  = work.ErrUserDeleted  // Manager.DeleteUser has deleted the user
	ErrSchema       = work.ErrSchema       // the content does not fit Options.Schema
	ErrExists       = work.ErrExists       // the workspace exists already
	ErrRolledBack   = work.ErrRolledBack   // the workspace is older than it was seen before
	ErrNewerFormat  = work.ErrNewerFormat  // a newer version of this package wrote the data
	ErrCorrupt      = work.ErrCorrupt      // the data is damaged
	ErrInvalidKey   = work.ErrInvalidKey   // the data is sealed with a key that was not given, or with none
	ErrInvalid      = work.ErrInvalid      // an argument is invalid
	ErrRunFailed    = work.ErrRunFailed    // the message was not handled to its end
	ErrRunEnded     = work.ErrRunEnded     // the run has ended
	ErrHolder       = work.ErrHolder       // another Manager has the name of Options.Name
	ErrRunTimeout   = work.ErrRunTimeout   // the run has taken longer than Options.RunTimeout
	ErrClosed       = work.ErrClosed       // the Manager was closed

	// ErrNotSuspended is returned for a message that decides about a call that is
	// not suspended, or about which another accepted message decides. The message
	// was not accepted.
	ErrNotSuspended = loop.ErrNotSuspended
	// ErrExpired is returned for a message that decides about a call whose time to
	// wait is over: see [tool.Expires]. The message was not accepted.
	ErrExpired = tool.ErrExpired
)
