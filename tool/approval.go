package tool

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/agentstate/state"
)

// NeedsApproval lets calls of a tool wait until a person has approved them. check
// is called before the function, with the input that the function would get:
// the arguments of the model, which have been checked, and the injected fields.
// In is the type of the input of the function, state.JSON for [Raw]. If check
// says that the call needs an approval, the call is suspended with the reason,
// as by [Suspend], and the function is not called.
//
// An approved call is made as any other, with the arguments as they were, which
// are checked again, with the rights of the agent that made it, and with injected
// fields as they are now. check is not asked again. [CallOf] tells the function
// who has approved.
//
// In a run of package workspace, the Approve and Refuse of a message decide. On
// any other State, [Turn.Approve] and [Turn.Refuse] do; the State knows of no
// reason, so that another turn asks check again.
func NeedsApproval[In any](check func(ctx context.Context, in In) (reason string, needed bool)) Option {
	return option(func(b *binder) {
		switch typ := reflect.TypeFor[In](); {
		case check == nil:
			b.fail("NeedsApproval: no function")
		case b.approval != nil:
			b.fail("NeedsApproval: is given twice")
		case typ != b.in:
			b.fail("NeedsApproval: its function takes %s, that of the tool takes %s", typ, b.in)
		}
		b.approval = func(ctx context.Context, input any) (string, bool) {
			if in, ok := input.(*In); ok {
				return check(ctx, *in)
			}
			return check(ctx, input.(In)) // a map or JSON is not given by reference
		}
	})
}

// Expires limits how long calls of a tool wait in a workspace, because of
// [NeedsApproval] or [Suspend], to d. A call that has waited for so long is
// answered as one about which nobody has decided in time, and its agent answers to
// that. A decision that was accepted before counts. See
// [github.com/agentstate/state/workspace.Suspended].
//
// A State without a workspace has no clock, and its calls wait without limit: the
// program that stores it calls [Turn.Refuse].
func Expires(d time.Duration) Option {
	return option(func(b *binder) {
		if d <= 0 {
			b.fail("Expires: %v is not a time to wait", d)
		}
		b.expires = d
	})
}

// checkApproval returns an error of Suspend for a call that has to be approved
// and is not.
func (t *Tool) checkApproval(ctx context.Context, input any) error {
	if call, _ := CallOf(ctx); call.Approved {
		return nil
	}
	reason, needed := t.approval(state.NewContext(ctx, nil), input)
	switch {
	case !needed:
		return nil
	case reason == "":
		return Suspend(errors.New("a person has to approve the call"))
	}
	return Suspend(errors.New(reason))
}
