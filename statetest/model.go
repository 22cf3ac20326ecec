package statetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest/internal/kit"
)

// Model is a model that answers by a script. It stands in for a provider in two
// ways: agents that use the messages of this module call [Model.Next], and agents
// of any framework give their SDK the [Model.Client]. It checks what it is given
// as the provider would. It is safe for concurrent use.
type Model struct {
	report kit.Reporter
	format *provider.Format
	script *script

	// Of a [kit.Case], or nil:
	gate  func(ctx context.Context, ask func()) error
	asked func(ctx context.Context, agent string, messages []string)

	secrets *kit.Secrets // of the States of the requests: failures do not print them

	mu    sync.Mutex
	ended bool // the test has: nothing is reported any more
}

// NewModel returns a Model that gives the replies: to each request the first one
// that is left and whose conditions hold. A reply without conditions is given
// once, in its place. Next speaks the format f; over HTTP the path determines
// the format.
//
// The test fails if a request finds no reply, if the provider would refuse a
// request, and if replies are left at the end.
func NewModel(t testing.TB, f *provider.Format, replies ...Reply) *Model {
	t.Helper()
	s := newScript(replies)
	if f == nil {
		t.Fatalf("statetest: NewModel: no format")
	}
	if err := s.check(); err != nil {
		t.Fatalf("statetest: NewModel: %v", err)
	}
	m := newModel(t, f, s)
	t.Cleanup(func() {
		t.Helper()
		if missing := s.Missing(m.secrets.Mask); len(missing) > 0 && !t.Skipped() {
			m.errorf("statetest: the model was asked %s, and replies are left:\n      %s",
				kit.Count(len(m.Requests()), "time", "times"), strings.Join(missing, "\n      "))
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ended = true
	})
	return m
}

// ModelOf returns a Model for package crash: its parameter is of an internal
// package. The Models of the processes of a case share a script, which lets a
// program that was interrupted ask again.
func ModelOf(c *kit.Case, f *provider.Format, replies ...Reply) *Model {
	if c.Script == nil {
		s := newScript(replies).resumed()
		if err := s.check(); err != nil {
			c.Report.Errorf("Process.Model: %v", err)
		}
		c.Script = s
	}
	m := newModel(c.Report, f, c.Script.(*script))
	m.secrets, m.gate, m.asked = c.Secrets, c.Gate, c.Asked
	return m
}

// newModel returns a Model of a script, which others may share.
func newModel(r kit.Reporter, f *provider.Format, s *script) *Model {
	return &Model{report: r, format: f, script: s, secrets: kit.NewSecrets()}
}

// errorf reports a failure, unless the test has ended.
func (m *Model) errorf(format string, args ...any) {
	m.report.Helper()
	text := m.secrets.Mask(fmt.Sprintf(format, args...))
	if t, ok := m.report.(testing.TB); ok {
		text += "\n    " + rerun(t)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		m.report.Errorf("%s", text)
	}
}

// Next returns the reply to a conversation, which includes the system prompt. It
// is fit for [state.History.Append]: Raw is what the provider would have sent,
// and Prompt and History are msgs. The error is a [*StatusError] for a [Status],
// and for a request that finds no reply, and that of a [Fail] itself.
//
// Failures of the test do not print the secrets of the State that ctx carries.
func (m *Model) Next(ctx context.Context, agent string, msgs []state.Message) (state.InferenceResult, error) {
	m.report.Helper()
	started := time.Now()
	msgs = slices.Clone(msgs)
	if st, ok := state.FromContext(ctx); ok {
		m.secrets.Add(st)
	}
	a, err := m.ask(ctx, asked{Request: Request{Agent: agent, Messages: msgs, Format: m.format}})
	if err != nil {
		return state.InferenceResult{}, err
	}
	result, err := a.result(m.format)
	result.Agent, result.StartedAt, result.CreatedAt = agent, started, time.Now()
	prompt := promptOf(msgs)
	result.Prompt, result.History = msgs[:prompt:prompt], msgs[prompt:]
	return result, err
}

// Ask asks for the agent of a turn with what the turn has to say, and records the
// reply, as a [loop.Agent] does. The error may pass if that of Next is a
// [StatusError] of a busy or broken service, such as 429 and 503.
func (m *Model) Ask(ctx context.Context, t *loop.Turn) error {
	m.report.Helper()
	prompt, err := t.Prompt(ctx, state.Messages.GetOr(t.State(), nil))
	if err != nil {
		return err
	}
	r, err := m.Next(ctx, t.State().Agent(), prompt)
	var status *StatusError
	switch {
	case errors.As(err, &status) && backoff.MayPass(status.Code):
		return loop.Retryable(err, 0)
	case err != nil:
		return err
	}
	return t.Said(ctx, r)
}

// Client returns a client whose transport is the Model, for SDKs. It never
// dials.
func (m *Model) Client() *http.Client { return &http.Client{Transport: m} }

// Requests returns the requests in the order in which they came.
func (m *Model) Requests() []Request {
	m.script.mu.Lock()
	defer m.script.mu.Unlock()
	requests := make([]Request, len(m.script.requests))
	for i, r := range m.script.requests {
		requests[i] = r.Request
	}
	return requests
}

// Sent returns all that the requests of an agent said, with settings and tools,
// for [NoLeak].
func (m *Model) Sent(agent string) string {
	m.script.mu.Lock()
	defer m.script.mu.Unlock()
	var b strings.Builder
	for _, r := range m.script.requests {
		if r.Agent == agent {
			b.WriteString(r.said() + "\n")
		}
	}
	return b.String()
}

// ask passes a request through the gate. The error is that of the answer, too.
func (m *Model) ask(ctx context.Context, r asked) (a answer, err error) {
	m.report.Helper()
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	if m.gate == nil {
		a = m.receive(ctx, r)
		return a, a.err
	}
	var late answer // may still arrive when the agent has given up
	err = m.gate(ctx, func() {
		m.report.Helper()
		late = m.receive(ctx, r)
	})
	if err != nil {
		return answer{}, err
	}
	return late, late.err
}

// receive is what the provider does with a request.
func (m *Model) receive(ctx context.Context, r asked) answer {
	m.report.Helper()
	number := m.script.record(r)
	name := fmt.Sprintf("statetest: request %d, %s", number, r.by())
	if i := slices.IndexFunc(r.Messages, func(msg state.Message) bool { return !inside.IsMessage(msg) }); i >= 0 {
		m.errorf("%s: message %d is nil or the zero message", name, i)
		return refuse("a message is nil or the zero message")
	}
	plain := m.script.plain(r.Request)
	m.check(name, plain)
	if m.asked != nil {
		m.asked(ctx, r.Agent, plain.texts)
	}
	a, ok := m.script.answer(ctx, number, r.Request, plain)
	same := m.script.countEqual(plain, a.from)
	switch {
	case same.counted > maxEqual:
		m.reportEqual(name, r.Request, same)
		return refuse(fmt.Sprintf("this request has come %d times in a row", same.all))
	case !ok:
		m.errorf("%s, finds no reply:\n%s", name, m.explain(r))
		return refuse("no reply is left for this request")
	}
	return a
}

// refuse returns the answer to a request that is wrong. SDKs do not repeat it.
func refuse(problem string) answer {
	return answer{err: &StatusError{http.StatusBadRequest, string(refusalBody(problem))}}
}

// by names the agent of a request.
func (r Request) by() string {
	return "of " + cmp.Or(r.Agent, "no agent")
}
