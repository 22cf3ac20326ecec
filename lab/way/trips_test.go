package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/lab/way/marks"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// trips are the trips in the order of the table. prepare returns what is measured.
var trips = []struct {
	name    string
	prepare func(t *testing.T) func() error
}{
	{"Field.Set of a string", func(t *testing.T) func() error {
		st := newState(t)
		return func() error { return city.Set(st, "Graz") }
	}},
	{"Field.Get of a string", func(t *testing.T) func() error {
		st := newState(t)
		return func() error { _, err := city.Get(st); return err }
	}},
	{"tool.Run of one call", func(t *testing.T) func() error {
		st := newState(t)
		return func() error {
			_, err := tool.Run(t.Context(), st, []*tool.Tool{weather}, []state.ToolCall{{ID: "c1", Name: "weather", Input: `{}`}})
			return err
		}
	}},
	{"wire: one request of an SDK", func(t *testing.T) func() error {
		st := newState(t)
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Where?")}))
		return func() error { return request(state.NewContext(t.Context(), st)) }
	}},
	{"workspace.Handle of a second message", func(t *testing.T) func() error {
		m := open(t, store.NewMemory(), greet)
		handle(t, m, say("1"))
		return func() error { return handled(t, m, say("2")) }
	}},
	{"workspace.View", func(t *testing.T) func() error {
		m := open(t, store.NewMemory(), greet)
		handle(t, m, say("1"))
		handle(t, m, say("2"))
		handle(t, m, say("3"))
		return func() error { _, err := m.View(t.Context(), user); return err }
	}},
	{"a message with one call of a tool", func(t *testing.T) func() error {
		m := open(t, store.NewMemory(), callOne(weather, `{}`))
		handle(t, m, say("1"))
		return func() error { return handled(t, m, say("2")) }
	}},
	{"a message that approves a call", func(t *testing.T) func() error {
		m := open(t, store.NewMemory(), callOne(refund, `{"amount":5}`))
		handle(t, m, say("1"))
		v, err := m.View(t.Context(), user)
		require.NoError(t, err)
		require.Len(t, v.Suspended(), 1)
		return func() error { return handled(t, m, approval("2", v.Suspended()[0])) }
	}},
	{"opening a Manager that takes a run over", func(t *testing.T) func() error {
		begun, die := make(chan struct{}), make(chan struct{})
		db := store.NewMemory()
		dying := open(t, db, func(ctx context.Context, run *workspace.Run) error {
			if err := visits.Set(run.State(), 1); err != nil {
				return err
			}
			if err := run.Commit(ctx); err != nil {
				return err
			}
			close(begun)
			<-die
			return nil
		})
		_, err := dying.Submit(t.Context(), user, say("1"))
		require.NoError(t, err)
		<-begun
		left := copyOf(t, db)
		close(die)
		require.NoError(t, dying.Close())
		taken := false
		return func() error { // by the next process of the name
			open(t, left, func(ctx context.Context, run *workspace.Run) error {
				taken = true
				return greet(ctx, run)
			})
			if synctest.Wait(); !taken {
				return errors.New("the run was not taken over")
			}
			return nil
		}
	}},
}

// TestTrips makes each trip. If WAY names a file, it makes each trip 20 times, and
// writes the calls of the shortest to the file: goroutines interleave, and waits are
// random. There are calls only in a build with marks.
func TestTrips(t *testing.T) {
	path, times := os.Getenv("WAY"), 1
	if path != "" {
		times = 20
	}
	var made []trip
	for _, way := range trips {
		shortest := trip{Name: way.name}
		for range times {
			synctest.Test(t, func(t *testing.T) {
				fn := way.prepare(t)
				synctest.Wait()
				marks.Begin()
				err := fn()
				synctest.Wait() // until nothing is left to do, in whatever goroutine
				calls := marks.End()
				require.NoError(t, err, way.name)
				if shortest.Calls == nil || len(calls) < len(shortest.Calls) {
					shortest.Calls = calls
				}
			})
		}
		made = append(made, shortest)
	}
	if path != "" {
		data, err := json.Marshal(made)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
}

const user = "ann"

var (
	city   = &state.Field[string]{Name: "city"}
	visits = &state.Field[int]{Name: "visits", Handler: state.Sum[int]()}
	schema = state.MustSchema(city, visits)
)

func newState(t *testing.T) *state.State {
	st := state.New(schema)
	require.NoError(t, city.Set(st, "Vienna"))
	return st
}

var weather = tool.Must(tool.New("weather", "Tells the weather.", func(context.Context, struct {
	City string `json:"city"`
},
) (string, error) {
	return "sun", nil
}, tool.From(city, "city")))

type amount struct {
	Amount int `json:"amount"`
}

var refund = tool.Must(tool.New("refund", "Refunds an amount.",
	func(context.Context, amount) (string, error) { return "refunded", nil },
	tool.NeedsApproval(func(context.Context, amount) (string, bool) { return "it is money", true })))

// request sends a request as an SDK does.
func request(ctx context.Context) error {
	client := &http.Client{Transport: &wire.Transport{Base: answer{}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://provider.test/v1/chat/completions",
		strings.NewReader(`{"model":"m","messages":[{"role":"system","content":"Be brief."}]}`))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

type answer struct{}

func (answer) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	const said = `{"id":"1","choices":[{"message":{"role":"assistant","content":"It is on its way."},"finish_reason":"stop"}]}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(said)), Request: req,
	}, nil
}

func open(t *testing.T, db store.Store, run func(context.Context, *workspace.Run) error) *workspace.Manager {
	m, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: schema, Run: run, Name: "desk"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func say(id string) workspace.Message {
	return workspace.Message{ID: id, Content: state.UserText("Where is my order?")}
}

func approval(id string, call workspace.Suspended) workspace.Message {
	return workspace.Message{ID: id, Decisions: []tool.Decision{tool.Approve(call.Key)}}
}

func handled(t *testing.T, m *workspace.Manager, msg workspace.Message) error {
	_, err := m.Handle(t.Context(), user, msg)
	return err
}

func handle(t *testing.T, m *workspace.Manager, msg workspace.Message) {
	require.NoError(t, handled(t, m, msg))
	synctest.Wait()
}

// greet handles a message without a model.
func greet(_ context.Context, run *workspace.Run) error {
	if err := visits.Set(run.State(), 1); err != nil {
		return err
	}
	run.SetReply("hello")
	return nil
}

// callOne lets a model call a tool once for each message, and then reply.
func callOne(usable *tool.Tool, input state.JSON) func(context.Context, *workspace.Run) error {
	ask := func(ctx context.Context, turn *loop.Turn) error {
		prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
		if err != nil {
			return err
		}
		var said state.Message = state.ToolCalls(state.ToolCall{ID: "c1", Name: usable.Name(), Input: input})
		if prompt[len(prompt)-1].Role() != "user" {
			said = state.AssistantText("It is done.")
		}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
	}
	return workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"": {Ask: ask, Tools: []*tool.Tool{usable}}}})
}

// copyOf returns a copy of a store: what is left if its process dies now.
func copyOf(t *testing.T, db store.Store) store.Store {
	copied := store.NewMemory()
	for e, err := range db.List(t.Context(), "", "", true) {
		require.NoError(t, err)
		_, err = store.Put(t.Context(), copied, e.Key, e.Value, store.Always)
		require.NoError(t, err)
	}
	return copied
}
