package tool

import (
	"context"
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/runctx"
)

// invoke calls the function.
func (t *Tool) invoke(ctx context.Context, st *state.State, input any) (result, error) {
	if t.stateful {
		if t.annotations.ReadOnly {
			st = st.Snapshot()
		}
		ctx = state.NewContext(ctx, st)
	} else {
		st = nil
		if _, ok := state.FromContext(ctx); ok {
			ctx = state.NewContext(ctx, nil)
		}
	}
	r, err := t.call(ctx, st, input)
	switch e := err.(type) {
	case nil:
		return r, nil
	case *OutputError:
		if e.Tool == t.name {
			return r, err
		}
	case *ArgumentError:
		if e.Tool == t.name {
			return r, err
		}
	}
	return r, t.errorf("%w", err)
}

// Call identifies a call for which a function was called.
type Call struct {
	// Key identifies the call, and is its idempotency key: a service that drops what
	// it has seen under a key makes the call at most once, whatever happens to the
	// run. It is [state.ToolCall].Key of a call of a recorded answer. A call that the
	// function of another one makes has a key made of that one's and of its place
	// in it, and a call by the program a random one, which ends with the process.
	Key   string
	ID    string // by which the provider knows the call; it may repeat, and is "" with some
	Name  string // of the tool
	Index int    // of the call in its step
	Agent string // of the state, which signs what the call writes; "" for the host
	// Approved says that the call has waited and was approved, by ApprovedBy: the
	// agent that has decided; "" for the host.
	Approved   bool
	ApprovedBy string
}

// callState is a call while it is made.
type callState struct {
	Call
	approval runctx.Approval
	inner    atomic.Int64 // how many calls its function has made
}

type callKey struct{}

// CallOf returns the call for which the function that was given ctx was called.
// It returns false elsewhere.
func CallOf(ctx context.Context) (Call, bool) {
	if call := callIn(ctx); call != nil {
		return call.Call, true
	}
	return Call{}, false
}

// callIn returns the call that ctx carries, or nil.
func callIn(ctx context.Context) *callState {
	if ctx == nil {
		return nil
	}
	call, _ := ctx.Value(callKey{}).(*callState)
	return call
}

// newKey returns the key of a call that has none: that of the next call in the one
// that the first of the contexts carries, or a random one.
func newKey(contexts ...context.Context) string {
	for _, ctx := range contexts {
		if outer := callIn(ctx); outer != nil {
			return callkey.Child(outer.Key, int(outer.inner.Add(1)))
		}
	}
	return callkey.New()
}
