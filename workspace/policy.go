package workspace

// Busy determines what happens to a message that arrives during a run.
type Busy int

const (
	// BusyDefault is Options.Busy in a Message, and BusyEnqueue in Options.
	BusyDefault Busy = iota
	// BusyEnqueue lets the message wait in a durable queue. The holder of the
	// run handles it later.
	BusyEnqueue
	// BusyReject rejects the message.
	BusyReject
	// BusyInterrupt ends the run, keeps its committed changes and handles the
	// message.
	BusyInterrupt
	// BusyRollback ends the run, undoes its committed changes and handles the
	// message.
	BusyRollback
)

func (b Busy) valid() bool { return b >= BusyDefault && b <= BusyRollback }

// Takeover determines how a run continues whose holder has died.
type Takeover int

const (
	// TakeoverResume keeps the committed changes of the run.
	TakeoverResume Takeover = iota
	// TakeoverRestart undoes the committed changes of the run.
	TakeoverRestart
)

// Pending determines what happens to the tool calls of a run that is taken over
// that have no result and are not suspended.
type Pending int

const (
	// PendingAnswer answers the calls with an error, as package transcript does,
	// so that the model can be asked at once. It may make the calls again, with
	// other ids.
	PendingAnswer Pending = iota
	// PendingLeave leaves the calls open. Options.Run finds them with
	// transcript.Pending, and makes them again before it asks the model. Since
	// Run.ID and the ids of the calls stay the same, both together are an
	// idempotency key.
	PendingLeave
)
