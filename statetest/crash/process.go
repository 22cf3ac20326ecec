package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// Process is one process of a case of [Test]. What is done through
// it after its death does not take place: each call returns an error. Its
// Effect is safe for concurrent use. Open calls Model and Store in the same order
// for each process of a case.
type Process struct {
	w       *world
	name    string // A, B, …
	ctx     context.Context
	end     context.CancelCauseFunc
	manager *workspace.Manager

	models, stores int         // the number of calls of Model and Store
	settles        atomic.Bool // its Manager sees the runs that others have left

	// Guarded by world.mu:
	dead     bool
	standing chan struct{} // closed when the process goes on; nil if it does not stand still
	halted   chan struct{} // closed when it first dies or stands still
}

var (
	errDead        = errors.New("crash: the process is dead")
	errUnavailable = noService{}
	errBroken      = fmt.Errorf("crash: connection broken: %w", io.ErrUnexpectedEOF)
)

// noService is the error of a service that does not answer: a [net.Error].
type noService struct{}

func (noService) Error() string   { return "crash: service unavailable" }
func (noService) Timeout() bool   { return true }
func (noService) Temporary() bool { return true }

// Model returns a Model whose script all processes of the case share: the nth
// call of each process returns a Model of the nth script, which has the replies
// of the first process. A request that comes again gets the answer that it got
// before. Calls of which a prompt says that they were not completed are
// made again, with new ids.
func (p *Process) Model(f *provider.Format, replies ...statetest.Reply) *statetest.Model {
	c := &kit.Case{Report: p.w, Secrets: p.w.secrets, Asked: p.w.noteRequest, Gate: func(ctx context.Context, ask func()) error {
		_, err := pass(ctx, p, place{kindModel, "model"}, func(point) (struct{}, error) {
			ask()
			return struct{}{}, nil
		})
		return err
	}}
	if p.models < len(p.w.scripts) {
		c.Script = p.w.scripts[p.models].Script
	}
	m := statetest.ModelOf(c, f, replies...)
	if p.models == len(p.w.scripts) {
		p.w.scripts = append(p.w.scripts, sharedScript{c.Script, f})
	}
	p.models++
	return m
}

// Effect does something outside of the process, such as a refund, and returns
// {"ok":true}. A key that comes again for the name has no effect; with another
// input it is an error. "" is no key. input is encoded as JSON.
func (p *Process) Effect(ctx context.Context, name, key string, input any) (state.JSON, error) {
	in, err := inputOf(input)
	if err != nil {
		return "", fmt.Errorf("crash: effect %s: %w", name, err)
	}
	if isAnswered(ctx) {
		p.w.fail(fmt.Sprintf("effect %s is made for a call that has a result", name))
	}
	return pass(ctx, p, place{kindEffect, "effect_" + pointName(name)}, func(at point) (state.JSON, error) {
		e := effect{Name: name, Key: key, Input: in, at: at.String(), process: p.name}
		if call, ok := tool.CallOf(ctx); ok {
			e.Call = call.Key
		}
		if run, ok := workspace.FromContext(ctx); ok {
			e.Run, e.attempt = run.ID(), run.Attempt()
			p.w.secrets.Add(run.State()) // the timeline has the input
		}
		return `{"ok":true}`, p.w.makeEffect(e)
	})
}

// isAnswered reports whether the call of a context has a result: its function must
// not be called any more. One that goes on after the end of its context was called
// before.
func isAnswered(ctx context.Context) bool {
	call, calls := tool.CallOf(ctx)
	run, runs := workspace.FromContext(ctx)
	return calls && runs && ctx.Err() == nil &&
		slices.ContainsFunc(state.Messages.GetOr(run.State(), nil), func(m state.Message) bool {
			r, ok := m.(state.ToolResultMessage)
			return ok && r.Call().Key == call.Key
		})
}

// Store returns another store, which the processes of the case share: the nth
// call of each process returns the nth db of the first process. Make db in Open.
func (p *Process) Store(db *store.Memory) store.Store {
	if p.stores == len(p.w.stores) {
		p.w.stores = append(p.w.stores, db)
	}
	p.stores++
	return &port{p, p.w.stores[p.stores-1].Open(), nil}
}
