package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

// The fields of the desk, the team of all tests.
var (
	orderID = &state.Field[string]{
		Name: "order_id", Description: "The order the customer is asking about.",
		Owner: "support", Read: state.Public,
	}
	notes = &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public}
	cost  = &state.Field[float64]{Name: "cost", Read: state.Public, Write: state.Public, Handler: state.Sum[float64]()}
	card  = &state.Field[string]{Name: "card", Owner: "support", Read: state.Only("billing"), Secret: true}
	plan  = &state.Field[map[string]any]{Name: "plan", Owner: "billing"}
	codes = &state.Field[map[string]any]{Name: "codes", Owner: "support", Secret: true}
	cache = &state.Field[string]{Name: "cache", Read: state.Public, Ephemeral: true}
	desk  = state.MustSchema(
		state.Team{"support": {"billing", "search"}}, orderID, notes, cost, card, codes, plan, cache,
	)
)

const (
	cardNumber = "4242-4242-4242"
	mailToken  = "tok-4711-abc"
)

var errRefused = errors.New("the bank has refused the card")

// fixture is a store with workspaces in every state:
//
//	alice    versions 1 to 5, memory, results, a call with its result
//	bob      a run that this Manager holds, and a message that waits
//	carol    a dead letter
//	dave     damaged
//	erin…    as many more as asked for, with one version each
//	..       and "a/b?x=1", whose ids have a meaning in addresses
type fixture struct {
	db      *store.Memory
	manager *workspace.Manager
	refuse  error // why the agent refuses messages whose ids begin with "refused"
}

// newFixture makes a fixture with more workspaces named erin0000 and so on.
func newFixture(t testing.TB, more int) *fixture {
	t.Helper()
	ctx := context.Background()
	f := &fixture{db: store.NewMemory(), refuse: errRefused}
	f.manager = f.open(t, &workspace.Options{Schema: desk, Run: f.answer})
	for _, text := range []string{"Where is my order?", "Then refund it."} {
		_, err := f.manager.Handle(ctx, "alice", workspace.Message{ID: "m-" + text[:4], Content: state.UserText(text)})
		require.NoError(t, err)
	}
	require.NoError(t, f.manager.Update(ctx, "alice", func(w *workspace.Workspace) error {
		return errors.Join(
			w.Memory().Set("name", "Alice"),
			w.Memory().SetSecret("token", mailToken),
			w.SetSettings(func(s *workspace.Settings) {
				s.ChatID, s.Platform = "7", "web"
				s.MCPServers = map[string]state.JSON{"mail": `{"key":"key-of-the-server"}`}
			}),
		)
	}))
	f.update(t, "alice", func(st *state.State) error {
		return errors.Join(
			notes.Set(st.As("search").WithCause("call_71"), []string{"refunds within 30 days", "paid with " + cardNumber}),
			plan.Set(st.As("billing"), map[string]any{"steps": []any{"check", "refund"}, "total": 12.5}),
		)
	})
	f.update(t, "alice", func(st *state.State) error { return orderID.Set(st.As("support"), "#W2378156") })

	_, err := f.manager.Submit(ctx, "bob", workspace.Message{ID: "b1", Content: state.UserText("Hello?")})
	require.NoError(t, err)
	_, err = f.manager.Submit(ctx, "bob", workspace.Message{ID: "b2", Content: state.UserText("Anybody there?")})
	require.NoError(t, err)

	_, err = f.manager.Handle(ctx, "carol", workspace.Message{ID: "refused", Content: state.UserText("Refund it.")})
	require.ErrorIs(t, err, errRefused)

	f.visit(t, "dave")
	_, err = store.Put(ctx, f.db, "agent:workspace:dave", []byte("{}"), store.Always)
	require.NoError(t, err)
	f.visit(t, "..")
	f.visit(t, "a/b?x=1")
	for i := range more {
		f.visit(t, "erin"+numbered(i))
	}
	return f
}

// answer is the agent of the fixture: it calls a tool. It is at work on "Hello?",
// and on messages whose ids begin with "run", as long as it may be.
func (f *fixture) answer(ctx context.Context, run *workspace.Run) error {
	if said := run.Message().Content; strings.HasPrefix(run.Message().ID, "run") || said != nil && said.Text() == "Hello?" {
		<-ctx.Done()
		return ctx.Err()
	}
	if strings.HasPrefix(run.Message().ID, "refused") {
		return f.refuse
	}
	id := fmt.Sprintf("call_%d", run.State().History().Len()+1)
	st := run.State().As("support").WithCause(id)
	call := state.ToolCall{ID: id, Name: "find_order", Input: `{"name":"Alice"}`}
	err := errors.Join(
		orderID.Set(st, "#W1"), card.Set(st, cardNumber), cost.Set(st, 0.0121),
		st.History().Append(state.InferenceResult{
			Agent: "support", Input: "Where is my order?", Raw: `{"model":"test"}`,
			Output: []state.Message{state.ToolCalls(call)},
		}),
		st.History().Answer(state.ToolResult(call, `{"order":"#W1"}`)),
		state.Messages.Set(st, []state.Message{state.AssistantText("It is on its way to <Oslo> & paid with " + cardNumber + ".")}),
	)
	run.SetReply("It is on its way.")
	return err
}

// open opens another Manager on the store of the fixture.
func (f *fixture) open(t testing.TB, opts *workspace.Options) *workspace.Manager {
	t.Helper()
	m, err := workspace.Open(context.Background(), f.db, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func (f *fixture) update(t testing.TB, user string, fn func(st *state.State) error) {
	t.Helper()
	require.NoError(t, f.manager.Update(context.Background(), user, func(w *workspace.Workspace) error { return fn(w.State()) }))
}

func (f *fixture) visit(t testing.TB, user string) {
	t.Helper()
	f.update(t, user, func(st *state.State) error { return cost.Set(st, 1) })
}

// handler returns a handler for the fixture. Without options, every request may
// read.
func (f *fixture) handler(t testing.TB, opts *inspect.Options) *inspect.Handler {
	t.Helper()
	return newHandler(t, f.manager, opts)
}

func newHandler(t testing.TB, m *workspace.Manager, opts *inspect.Options) *inspect.Handler {
	t.Helper()
	if opts == nil {
		opts = &inspect.Options{Authorize: inspect.Trusted(inspect.Access{Read: true})}
	}
	h, err := inspect.New(m, opts)
	require.NoError(t, err)
	return h
}

// response is an answer of a handler.
type response struct {
	code   int
	header http.Header
	body   string
}

// get asks a handler for a page, as a browser on this machine does.
func get(t testing.TB, h http.Handler, target string) response {
	t.Helper()
	return send(t, h, localRequest(http.MethodGet, target, ""))
}

// localRequest returns a request of this machine. A body is that of a form.
func localRequest(method, target, form string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(form))
	r.Host, r.RemoteAddr = "localhost:8377", "127.0.0.1:40000"
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

func send(t testing.TB, h http.Handler, r *http.Request) response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return response{w.Code, w.Result().Header, string(body)}
}
