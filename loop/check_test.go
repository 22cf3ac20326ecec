package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/tool"
)

// A field that the schema lacks looks unset to a route, which would end the run
// without a word.
func TestLoopTellsOfFieldsThatARouteUsesInVain(t *testing.T) {
	intent, other := &state.Field[string]{Name: "intent"}, &state.Field[string]{Name: "intend"}
	number := &state.Field[int]{Name: "intent"}
	rules, err := route.Parse(state.MustSchema(other), []byte(`{"rules":[{"when":{"field":"intend","op":"has"},"agent":"desk"}]}`))
	require.NoError(t, err)
	for _, row := range []struct {
		name  string
		route func(*state.State) (string, bool)
		want  string
	}{
		{"a rule", route.Must(route.New(route.When(route.Has(other), "desk"))).Next, `"intend": unknown field; did you mean "intent"?`},
		{"a rule under Not", route.Must(route.New(route.When(route.Not(route.Eq(other, "x")), "desk"))).Next, `"intend": unknown field`},
		{"a rule in front of Otherwise", route.Must(route.New(route.When(route.Has(other), "bill"), route.Otherwise("desk"))).Next, `"intend": unknown field`},
		{"rules in JSON", rules.Next, `"intend": unknown field`},
		{"a field of another type", route.Must(route.New(route.When(route.Gt(number, 1), "desk"))).Next, `"intent": type: want string, got int`},
		{"a function", func(st *state.State) (string, bool) { return "desk", other.Has(st) }, `"intend": unknown field`},
		{"a handle of the function", func(st *state.State) (string, bool) { return "desk", other.Has(st.As("desk").Snapshot()) }, `"intend": unknown field`},
		{"a field that is unset", func(st *state.State) (string, bool) { return "desk", intent.Has(st) }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			st := state.New(state.MustSchema(intent))
			require.NoError(t, st.UserSays("Hello!"))
			asked := 0
			desk := loop.Agent{Ask: func(ctx context.Context, turn *loop.Turn) error {
				asked++
				return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("Hi.")}})
			}}
			_, err := (&loop.Loop{Route: row.route, Agents: map[string]loop.Agent{"desk": desk, "bill": desk}}).Run(t.Context(), st)
			require.Zero(t, asked)
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, state.ErrInvalid)
			require.ErrorContains(t, err, "loop: Route uses a field that the schema of the State does not have: state: "+row.want)
			_, err = (*state.Field[string])(other).Get(st)
			require.ErrorIs(t, err, state.ErrUnknownField, "elsewhere it is an error as before")
		})
	}
}

// What would go wrong in silence, or only when a model has made a call, is an error
// before anybody is asked.
func TestLoopChecksWhatItIsGiven(t *testing.T) {
	noop := func(name string) *tool.Tool {
		return tool.Must(tool.New(name, "Does nothing.", func(context.Context, struct{}) (string, error) { return "", nil }))
	}
	hello := []state.Message{state.UserText("Hello!")}
	for _, row := range []struct {
		name   string
		schema *state.Schema
		said   []state.Message
		agent  string
		tools  []*tool.Tool
		want   string
	}{
		{"nothing was said", nil, nil, "", nil, "nobody has said anything: State.UserSays adds what the user says"},
		{"only instructions", nil, []state.Message{state.SystemText("Be kind.")}, "", nil, "nobody has said anything"},
		{"two tools of one name", nil, hello, "desk", []*tool.Tool{noop("a"), noop("b"), noop("a")}, `two tools of the agent "desk" have the name "a"`},
		{"an agent that the Team lacks", state.MustSchema(state.Team{"support": {"billing"}}), hello, "biling", nil,
			`the Team of the schema has no agent "biling", which the Loop has; it has ["billing" "support"]`},
		{"an agent of the Team", state.MustSchema(state.Team{"support": {"billing"}}), hello, "billing", []*tool.Tool{noop("a"), nil}, ""},
		{"no Team", nil, hello, "billing", nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := 0
			l := &loop.Loop{Agents: map[string]loop.Agent{row.agent: {Tools: row.tools, Ask: func(ctx context.Context, turn *loop.Turn) error {
				asked++
				return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("Hi.")}})
			}}}}
			st := state.New(row.schema)
			require.NoError(t, state.Messages.Set(st, row.said))
			_, err := l.Run(t.Context(), st)
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, state.ErrInvalid)
			require.ErrorContains(t, err, row.want)
			require.Zero(t, asked)
		})
	}
}
