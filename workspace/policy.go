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
