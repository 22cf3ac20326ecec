package workspace

import (
	"context"
	"fmt"
	"time"

	"github.com/agentstate/state"
)

// Options says how a Manager works. Managers of one workspace, in whatever
// process, should be given the same.
type Options struct {
	// Schema is that of the State; nil accepts any name.
	Schema *state.Schema

	// Run handles a message. When it returns nil, the run is finished: what it
	// has left in the State is stored, and the message is done. When it returns an
	// error, what it has not committed is gone and the message has failed, unless
	// ctx has ended: then the run goes on elsewhere, or later. It is called
	// again with what was committed when its process has died. ctx
	// ends when the run has lost its workspace; context.Cause says why.
	Run func(ctx context.Context, run *Run) error

	// Busy determines what happens to a message that arrives during a run and
	// whose own Busy is BusyDefault (default BusyEnqueue).
	Busy Busy

	// Queue is how many messages may wait; 32.
	Queue int

	// TTL is for how long the holder of a run may be silent until others think
	// that it has died; 30 seconds. They wait for half as long again.
	TTL time.Duration

	// Takeover says what becomes of what a run has committed when it is taken
	// over.
	Takeover Takeover

	// Attempts is how often a run is begun before its message is given up and goes
	// to the dead; 3.
	Attempts int

	// Messages is how many messages of the conversation a finished run leaves, as
	// transcript.KeepLast does; 50. Results is how many results of the history; 50.
	// A negative number keeps all.
	Messages, Results int

	// Keys, if there are any, seal what is stored: the first seals, all open.
	Keys []Key

	// Anchor, if there is one, remembers outside the store how far workspaces have
	// come.
	Anchor Anchor

	Hooks Hooks
}

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
	// BusyInterrupt ends the run, keeps what it has committed and handles the
	// message.
	BusyInterrupt
	// BusyRollback ends the run, undoes what it has committed and handles the
	// message.
	BusyRollback
)

func (b Busy) valid() bool { return b >= BusyDefault && b <= BusyRollback }

// Takeover says how a run goes on whose process has died.
type Takeover int

const (
	// Resume goes on with what was committed.
	TakeoverResume Takeover = iota
	// Restart takes it back.
	TakeoverRestart
)

// Status is what has become of a message.
type Status string

const (
	StatusStarted   Status = "started"   // a run has begun
	StatusDone      Status = "done"      // it was handled
	StatusQueued    Status = "queued"    // it waits
	StatusDuplicate Status = "duplicate" // a message with its id was taken before
	StatusRejected  Status = "rejected"  // a run is under way, and it was to be rejected then
	StatusFailed    Status = "failed"    // the run has failed
)

// Outcome is what came of a message.
type Outcome struct {
	Status Status
	RunID  string // of the run that handled it
	Reply  string // what the run replied
}

// Anchor remembers, in a place that is not restored together with the store, how
// far workspaces have come.
type Anchor interface {
	// Load returns the mark of a user's workspace, and the zero Mark if there is
	// none.
	Load(ctx context.Context, user string) (Mark, error)
	// Advance sets the mark, unless there is one with a higher Seq.
	Advance(ctx context.Context, user string, to Mark) error
}

// complete fills in what is usual, and checks the rest.
func (o *Options) complete() error {
	for _, d := range []struct {
		n       *int
		usually int
	}{{&o.Queue, 32}, {&o.Attempts, 3}, {&o.Messages, 50}, {&o.Results, 50}} {
		if *d.n == 0 {
			*d.n = d.usually
		}
	}
	if o.TTL == 0 {
		o.TTL = 30 * time.Second
	}
	if o.Busy == BusyDefault {
		o.Busy = BusyEnqueue
	}
	switch {
	case o.Queue < 0 || o.Attempts < 0:
		return fmt.Errorf("%w: Queue and Attempts are not negative", ErrInvalid)
	case o.TTL < 10*time.Millisecond:
		return fmt.Errorf("%w: TTL is less than 10 ms", ErrInvalid)
	case !o.Busy.valid():
		return fmt.Errorf("%w: Busy is unknown", ErrInvalid)
	case o.Takeover < TakeoverResume || o.Takeover > TakeoverRestart:
		return fmt.Errorf("%w: Takeover is unknown", ErrInvalid)
	}
	return nil
}
