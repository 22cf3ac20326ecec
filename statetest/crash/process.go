package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Process is one process of a case of [Test]. What is done through
// it after its death does not take place: each call returns an error. Its
// methods are safe for concurrent use, except that Open calls Model, Transport
// and Store in the same order for each process of a case.
type Process struct {
	w       *world
	name    string // A, B, …
	ctx     context.Context
	end     context.CancelCauseFunc
	manager *workspace.Manager

	models, handlers, stores int // the number of calls of Model, Transport and Store

	// Guarded by world.mu:
	dead     bool
	standing chan struct{} // closed when the process goes on; nil if it does not stand still
	halted   chan struct{} // closed when it first dies or stands still
	isHalted bool
}

var (
	errDead        = errors.New("crash: the process is dead")
	errUnavailable = errors.New("crash: service unavailable")
	errBroken      = fmt.Errorf("crash: connection broken: %w", io.ErrUnexpectedEOF)
)

// Model returns a Model whose script all processes of the case share: the nth
// call of each process returns a Model of the nth script, which has the replies
// of the first process. A request that comes again gets the answer that it got
// before. Calls that a takeover has answered with an error are made again, with
// new ids.
func (p *Process) Model(f *provider.Format, replies ...statetest.Reply) *statetest.Model {
	c := &kit.Case{Report: p.w, Masks: p.w.secrets, Gate: func(ctx context.Context, ask func()) error {
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
// the result that [Test].Results has for its name. A key that comes again for
// the name has no effect and gets the first result; with another input it is an
// error. "" is no key. input is encoded as JSON. A failing function of Results
// makes no effect.
func (p *Process) Effect(ctx context.Context, name, key string, input any) (state.JSON, error) {
	in, err := state.JSONOf(input)
	if err != nil {
		return "", fmt.Errorf("crash: effect %s: %w", name, err)
	}
	return pass(ctx, p, place{kindEffect, "effect_" + pointName(name)}, func(at point) (state.JSON, error) {
		e := p.effect(ctx, at, name, key, in)
		return p.w.makeEffect(e, func() (state.JSON, error) { return p.w.result(name, in) })
	})
}

// Lookup asks something outside of the process that has no effect. Results has
// the answers.
func (p *Process) Lookup(ctx context.Context, name string, input any) (state.JSON, error) {
	in, err := state.JSONOf(input)
	if err != nil {
		return "", fmt.Errorf("crash: lookup %s: %w", name, err)
	}
	return pass(ctx, p, place{kindLookup, "lookup_" + pointName(name)}, func(point) (state.JSON, error) {
		return p.w.result(name, in)
	})
}

// Transport returns a transport for the clients of an API that h stands for. GET
// and HEAD are lookups. Other requests are effects with names such as "POST
// /refunds", with their Idempotency-Key as the key, unless h answers with a
// status of 400 or more. The handler of the first process serves all of the
// case.
func (p *Process) Transport(h http.Handler) http.RoundTripper {
	t := &transport{p, p.w.handler(p.handlers, h)}
	p.handlers++
	return t
}

// Store returns another store, which the processes of the case share: the nth
// call of each process returns the nth db of the first process. Make db in Open.
func (p *Process) Store(db *store.Memory) store.Store {
	s := &port{p, p.w.store(p.stores, db).Open(), nil}
	p.stores++
	return s
}

// effect returns an effect that the process is about to make.
func (p *Process) effect(ctx context.Context, at point, name, key string, input state.JSON) effect {
	e := effect{at: at.String(), name: name, key: key, input: input, process: p.name}
	if run, ok := workspace.FromContext(ctx); ok {
		e.run, e.attempt = run.ID(), run.Attempt()
		p.w.secrets.Add(run.State()) // the timeline has the input
	}
	return e
}

// transport calls a handler in place of a server.
type transport struct {
	p *Process
	h http.Handler
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
	}
	name := r.Method + " " + r.URL.Path
	serve := func() *http.Response {
		in := r.Clone(r.Context())
		in.Body = io.NopCloser(bytes.NewReader(body))
		rec := httptest.NewRecorder()
		t.h.ServeHTTP(rec, in)
		return rec.Result()
	}
	at := place{kindEffect, "effect_" + pointName(name)}
	do := func(at point) (*http.Response, error) {
		input := state.JSON(body)
		if !input.Valid() {
			input = state.JSONText(string(body))
		}
		e := t.p.effect(r.Context(), at, name, r.Header.Get("Idempotency-Key"), input)
		return t.p.w.exchange(e, serve)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		at = place{kindLookup, "lookup_" + pointName(name)}
		do = func(point) (*http.Response, error) { return serve(), nil }
	}
	resp, err := pass(r.Context(), t.p, at, do)
	if errors.Is(err, errUnavailable) {
		rec := httptest.NewRecorder()
		rec.WriteHeader(http.StatusServiceUnavailable)
		resp, err = rec.Result(), nil
	}
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}
