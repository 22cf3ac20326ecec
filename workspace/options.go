package workspace

import (
	"context"
	"fmt"
	"time"

	"github.com/agentstate/state"
)

// Options configures a Manager. All Managers of one workspace, in all
// processes, should have the same Options.
type Options struct {
	// Schema is the schema of the State (default: any name is accepted).
	Schema *state.Schema

	// Run handles a message. If it returns nil, the run is finished: the
	// changes of the State are stored, and the message is done. If it returns
	// an error, the uncommitted changes are lost and the message has failed;
	// but if ctx has ended, another holder continues the run. After the death
	// of a process, Run is called again with the committed changes. ctx ends
	// when the run loses its lease; context.Cause says why.
	Run func(ctx context.Context, run *Run) error

	// Busy determines what happens to a message that arrives during a run and
	// whose own Busy is BusyDefault (default BusyEnqueue).
	Busy Busy

	// Queue is the maximum number of waiting messages (default 32).
	Queue int

	// TTL is the lifetime of a lease that is not renewed (default 30 s). A run
	// is taken over 1.5 × TTL after the last heartbeat of its holder.
	TTL time.Duration

	// Takeover determines what happens to the committed changes of a run that
	// is taken over (default TakeoverResume).
	Takeover Takeover

	// Attempts is the maximum number of times that a run is begun (default 3).
	// After that, its message becomes a dead letter.
	Attempts int

	// Messages is the number of messages of the conversation that a finished
	// run keeps, as transcript.KeepLast does (default 50). Results is the
	// number of results of the history that it keeps (default 50). A negative
	// number keeps all.
	Messages, Results int

	// Keys seal the stored data (default: not sealed). The first key seals, and
	// all of them open.
	Keys []Key

	// Anchor remembers the newest state of each workspace outside the store
	// (default: none).
	Anchor Anchor

	Hooks Hooks
}

// complete sets the defaults and checks the options.
func (o *Options) complete() error {
	for _, d := range []struct {
		n     *int
		value int
	}{{&o.Queue, 32}, {&o.Attempts, 3}, {&o.Messages, 50}, {&o.Results, 50}} {
		if *d.n == 0 {
			*d.n = d.value
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
		return fmt.Errorf("%w: Queue and Attempts must not be negative", ErrInvalid)
	case o.TTL < 10*time.Millisecond:
		return fmt.Errorf("%w: TTL is less than 10 ms", ErrInvalid)
	case !o.Busy.valid():
		return fmt.Errorf("%w: Busy is unknown", ErrInvalid)
	case o.Takeover < TakeoverResume || o.Takeover > TakeoverRestart:
		return fmt.Errorf("%w: Takeover is unknown", ErrInvalid)
	}
	return nil
}
