package einostate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// What plugins keep in an Extra comes back from a store with its types: one that
// finds a string in place of its bytes drops a signature.
func TestExtrasKeepTheirTypes(t *testing.T) {
	extra := func() map[string]any {
		return map[string]any{
			"sig": []byte("S\x00\xff"), "n": int64(5), "big": json.Number("9007199254740993"), "list": []string{"a"}, "u": uint32(7),
			"plain": map[string]any{"f": 1.5, "inner": []any{[]byte("x"), "y", nil, true}}, "null": nil, "text": "t",
			"strings": map[string]string{"a": "b"},
		}
	}
	index := 0
	in := []*schema.Message{
		{Role: schema.User, Content: "go", Extra: extra()},
		{Role: schema.Assistant, Extra: extra(), ToolCalls: []schema.ToolCall{{
			ID: "c1", Type: "function", Index: &index, Extra: extra(), Function: schema.FunctionCall{Name: "f", Arguments: "{}"},
		}}},
		{Role: schema.Tool, ToolCallID: "c1", ToolName: "f", Content: "done", Extra: extra()},
	}
	msgs, err := einostate.Messages(in...)
	require.NoError(t, err)
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, msgs))
	data, err := st.Export()
	require.NoError(t, err)
	stored, err := state.Import(nil, data)
	require.NoError(t, err)
	for _, msgs := range [][]state.Message{msgs, state.Messages.GetOr(stored, nil)} {
		out, err := einostate.FromMessages(msgs...)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(in, out))
	}
}

// A schema without CheckpointField is found before a model is asked, and the error
// says what is missing.
func TestCheckpointsNeedTheirField(t *testing.T) {
	ctx := context.Background()
	model := script(said("never"))
	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{Name: "desk", Description: "d", Model: model})
	require.NoError(t, err)
	for _, row := range []struct {
		checkpoints adk.CheckPointStore
		fails       bool
	}{{einostate.Checkpoints(), true}, {nil, false}} {
		runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, CheckPointStore: row.checkpoints})
		m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
			Schema: state.MustSchema(&state.Field[string]{Name: "note"}), Run: einostate.Handle(runner, nil),
		})
		require.NoError(t, err)
		_, err = m.Handle(ctx, "ann", workspace.Message{Content: state.UserText("Hello?")})
		if row.fails {
			require.ErrorIs(t, err, state.ErrUnknownField)
			require.ErrorContains(t, err, "give it einostate.CheckpointField")
		} else {
			require.NoError(t, err, "and the model was not asked before")
		}
		require.NoError(t, m.Close())
	}
}
