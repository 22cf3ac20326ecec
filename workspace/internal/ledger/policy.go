package ledger

// Busy determines what happens to a message that arrives during a run. Its
// numbers are those of package workspace.
type Busy int

const (
	BusyEnqueue Busy = iota + 1 // 0 is workspace.BusyDefault
	BusyReject
	BusyInterrupt
	BusyRollback
)

// Takeover determines how a run continues whose holder has died. Its numbers
// are those of package workspace.
type Takeover int

const (
	TakeoverResume Takeover = iota
	TakeoverRestart
)

// Status says what happened to a message that was submitted.
type Status string

const (
	StatusStarted   Status = "started"
	StatusQueued    Status = "queued"
	StatusDuplicate Status = "duplicate"
	StatusRejected  Status = "rejected"
)
