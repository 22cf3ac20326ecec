package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
)

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
		{"nothing was said", nil, nil, "", nil, "nobody has said anything: add a message of the user to state.Messages"},
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
