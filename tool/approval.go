package tool

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
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
// An approved call is made as any other, with the rights of the agent that made
// it. An approval holds for what was shown: for the arguments and the injected
// values with which check was asked. If a value is another one when the call is
// made, check is asked again, and the call waits anew or is made. [CallOf] tells
// the function who has approved.
//
// A [Decision] decides: one of the Decisions of a message in a run of package
// workspace, and elsewhere one that the method Decide of a turn of package loop is
// given. A State without a workspace knows of no reason, so that another turn asks
// check again.
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
// program that stores it refuses them.
func Expires(d time.Duration) Option {
	return option(func(b *binder) {
		if d <= 0 {
			b.fail("Expires: %v is not a time to wait", d)
		}
		b.expires = d
	})
}

// DecidedBy names the agents of the Team that may decide about calls of a tool that
// wait, besides the host (default: each agent of the Team). A decision of another
// agent is [state.ErrDenied]. Without [NeedsApproval], which says when, each call needs
// an approval of them.
func DecidedBy(agents ...string) Option {
	return option(func(b *binder) {
		scope := state.Only(agents...)
		b.deciders = &scope
	})
}

// Once is for a tool whose calls must never be made twice, and whose service does
// not drop a call that repeats a key. In a run of package workspace, the beginning
// of a call is stored before the function is called. If its result is then not
// stored, because the process has died or the run was ended, nobody makes the call
// again: it waits for a [Decision], with its result or by [MakeAgain]. It costs one
// write for each call.
func Once() Option {
	return option(func(b *binder) {
		if b.attempts > 1 {
			b.fail("Once: the tool has Attempts, and a call of it may be made twice")
		}
		b.once = true
	})
}

// approve returns the arguments with which a call is made, and reports whether it
// was approved. The error is one of Suspend if the call has to be approved and is
// not.
func (t *Tool) approve(
	ctx context.Context, reads *state.State, call *callState, args state.JSON,
) (input any, err error) {
	approval, approved := call.approval, call.Approved
	if approved && approval.Digest != "" && approval.Digest != t.digest(reads, args) {
		approved = false
	}
	call.Approved = approved
	if !approved {
		call.ApprovedBy = ""
	} else if approval.Input != "" {
		if input, err = t.prepare(reads, approval.Input); err != nil {
			return nil, Suspend(err) // whoever has approved can mend it
		}
		return input, nil
	}
	if input, err = t.prepare(reads, args); err != nil || approved || t.approval == nil {
		return input, err
	}
	reason, needed := t.approval(state.NewContext(ctx, nil), input)
	switch {
	case !needed:
		return input, nil
	case reason == "":
		reason = "a person has to approve the call"
	}
	return nil, Suspend(errors.New(reason))
}

// digest returns a hash of arguments and of the values that are injected.
func (t *Tool) digest(st *state.State, args state.JSON) string {
	h := sha256.New()
	_, _ = io.WriteString(h, string(args))
	for _, source := range t.sources {
		_, _ = io.WriteString(h, "\x00"+source.param+"\x00")
		v, err := source.read(st)
		if err != nil {
			continue // it has no value, or the call will fail
		}
		text, _ := state.JSONOf(v)
		_, _ = io.WriteString(h, "="+string(text))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}
