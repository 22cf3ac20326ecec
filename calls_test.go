package state_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// manyCalls returns a message of n calls.
func manyCalls(n int) state.ToolCallMessage {
	calls := make([]state.ToolCall, n)
	for i := range calls {
		calls[i] = state.ToolCall{ID: fmt.Sprint("call_", i), Name: "f", Input: "{}"}
	}
	return state.ToolCalls(calls...)
}

// A message has at most 256 calls, and so has the output of a result, whatever
// the Limits are and whichever way it comes.
func TestMoreThan256CallsAreALimitError(t *testing.T) {
	most, more := manyCalls(256), manyCalls(257)
	output := func(msgs ...state.Message) state.InferenceResult { return state.InferenceResult{Output: msgs} }
	list := func(msgs ...state.Message) []byte {
		data, err := json.Marshal(msgs)
		require.NoError(t, err)
		return data
	}
	schema := state.MustSchema(state.Limits{NameBytes: -1, ValueBytes: -1, Depth: -1, Keys: -1, Results: -1, Journal: -1})
	// exported returns what Export would write if more were allowed.
	exported := func(r state.InferenceResult, replace, by string) []byte {
		st := state.New(schema)
		require.NoError(t, st.History().Push(r))
		data, err := st.Export()
		require.NoError(t, err)
		changed := strings.Replace(string(data), replace, by, 1)
		require.NotEqual(t, string(data), changed)
		return []byte(changed)
	}
	imports := func(data []byte) error { _, err := state.Import(schema, data); return err }
	const oneCall, twoCalls = `{"type":"tool","id":"call_255",`, `{"type":"tool","id":"","name":"f"},{"type":"tool","id":"call_255",`
	type write func(st *state.State) error
	for name, do := range map[string]write{
		"Append":       func(st *state.State) error { return st.History().Append(output(more)) },
		"Push":         func(st *state.State) error { return st.History().Push(output(more)) },
		"two messages": func(st *state.State) error { return st.History().Append(output(most, manyCalls(1))) },
		"in the history": func(st *state.State) error {
			return st.History().Append(state.InferenceResult{History: []state.Message{more}})
		},
		"in the prompt": func(st *state.State) error {
			return st.History().Append(state.InferenceResult{Prompt: []state.Message{more}})
		},
		"Reset":         func(st *state.State) error { return st.History().Reset([]state.InferenceResult{output(more)}) },
		"Load results":  func(st *state.State) error { return st.History().Load([]state.InferenceResult{output(more)}, nil) },
		"Load messages": func(st *state.State) error { return st.History().Load(nil, []state.Message{more}) },
		"Set":           func(st *state.State) error { return state.Messages.Set(st, []state.Message{more}) },
		"Update": func(st *state.State) error {
			return state.Messages.Update(st, func(msgs []state.Message) ([]state.Message, error) { return append(msgs, more), nil })
		},
		"KV.Set": func(st *state.State) error { return st.KV().Set("messages", more) },
		"Patch":  func(st *state.State) error { return st.Patch(map[string]any{"messages": []state.Message{more}}) },
		"DecodeMessage": func(*state.State) error {
			_, err := state.DecodeMessage([]byte(more.Raw()))
			return err
		},
		"DecodeMessages": func(*state.State) error {
			_, err := state.DecodeMessages(list(most, more))
			return err
		},
		"Unmarshal": func(*state.State) error { return json.Unmarshal([]byte(more.Raw()), new(state.ToolCallMessage)) },
		"Unmarshal a result": func(*state.State) error {
			return json.Unmarshal(must(json.Marshal(output(more))), new(state.InferenceResult))
		},
		"Import": func(*state.State) error { return imports(exported(output(most), oneCall, twoCalls)) },
		"Import a history": func(*state.State) error {
			return imports(exported(state.InferenceResult{History: []state.Message{most}}, oneCall, twoCalls))
		},
		"Import two messages": func(*state.State) error {
			return imports(exported(state.InferenceResult{History: []state.Message{most, manyCalls(1)}}, `"history":`, `"output":`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(schema)
			require.NoError(t, st.History().Append(output(most)))
			ruleUnchanged(t, st, func() {
				err := do(st)
				var limit *state.LimitError
				require.ErrorAs(t, err, &limit)
				require.Equal(t, "Calls", limit.Name)
				require.Equal(t, 256, limit.Limit)
				require.Equal(t, 257, limit.Got)
			})
		})
	}
}

// The results of 256 calls may come one by one, and in any order.
func TestAMessageOf256CallsIsAnsweredOneByOne(t *testing.T) {
	for name, order := range map[string]func(i int) int{
		"in call order":    func(i int) int { return i },
		"in other order":   func(i int) int { return i ^ 1 },
		"in reverse order": func(i int) int { return 255 - i },
	} {
		calls := manyCalls(256)
		st := state.New(nil)
		require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{calls}}))
		said := []state.Message{calls}
		for _, c := range calls.Calls() {
			said = append(said, partDone(c))
		}
		for i := range 256 {
			require.Len(t, st.History().Pending(), 256-i, name)
			require.NoError(t, st.History().Answer(partDone(calls.Calls()[order(i)])), name)
		}
		require.Equal(t, said, state.Messages.Or(st, nil), name)
		data, err := st.Export()
		require.NoError(t, err)
		again, err := state.Import(nil, data)
		require.NoError(t, err)
		require.Equal(t, st.History().Results(), again.History().Results(), name)
	}
}
