package tool

import (
	"context"

	"github.com/agentstate/state"
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

// Call identifies the call of a step for which a function was called.
type Call struct {
	ID    string // of the call; not unique, and "" with some providers
	Name  string // of the tool
	Index int    // of the call in its step
	Agent string // of the state, which signs what the call writes; "" for the host
	// Approved says that the call has waited and was approved, by ApprovedBy: the
	// Agent of the message that has approved it, or that of the state on which
	// [Turn.Approve] was called; "" for the host.
	Approved   bool
	ApprovedBy string
}

type callKey struct{}

// CallOf returns the call of a step for which the function that was given ctx
// was called, by [Run] or by [Step.Call]. It returns false elsewhere, such as
// in a function called by [Tool.Call], which knows of no step.
func CallOf(ctx context.Context) (Call, bool) {
	if ctx == nil {
		return Call{}, false
	}
	call, _ := ctx.Value(callKey{}).(*Call)
	if call == nil {
		return Call{}, false
	}
	return *call, true
}
