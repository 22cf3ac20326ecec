package statetest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/stretchr/testify/require"
)

var builtIn = []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini}

// A response says what it was made of, whole and written to a stream.
func TestResponse(t *testing.T) {
	call := state.ToolCall{ID: "call_1", Name: "search", Input: `{"q":"<&>","n":1.0}`}
	made := state.InferenceResult{
		ID: "r1", CreatedAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Usage: state.Usage{Input: 100, Output: 20, CacheRead: 40, Reasoning: 5},
	}
	for name, output := range map[string][]state.Message{
		"nothing":        {},
		"a text":         {state.AssistantText("Hi <&>.")},
		"a call":         {state.ToolCalls(call)},
		"text and calls": {state.AssistantText("Let me look."), state.ToolCalls(call, state.ToolCall{ID: "call_2", Name: "now", Input: `{}`})},
	} {
		for _, f := range builtIn {
			t.Run(name+"/"+f.String(), func(t *testing.T) {
				made := made
				made.Output = output
				body, omitted, err := statetest.Response(f, "m", made)
				require.NoError(t, err)
				require.Empty(t, omitted)
				got, err := f.DecodeResponse(body)
				require.NoError(t, err)
				require.Equal(t, made.ID, got.ID)
				require.Equal(t, made.Usage, got.Usage)
				require.Equal(t, saidBy(output), saidBy(got.Output))
				require.Contains(t, []time.Time{{}, made.CreatedAt}, got.CreatedAt.UTC()) // Anthropic has none
				stream := f.Stream()
				_, _ = stream.Write(body) // never fails
				streamed, err := stream.Result()
				require.NoError(t, err)
				require.Equal(t, saidBy(output), saidBy(streamed.Output))
				if n := len(output); n > 0 {
					want := "stop"
					if _, ok := output[n-1].(state.ToolCallMessage); ok {
						want = "tool"
					}
					if f == provider.OpenAIResponses || f == provider.Gemini {
						want = "stop" // they have no word for calls
					}
					require.Equal(t, want, origin.StopReason(got.Output[len(got.Output)-1]))
				}
				said, ok := provider.Summarize(string(body))
				require.True(t, ok)
				require.Same(t, f, said.Format)
				require.Equal(t, "m", said.Model)
			})
		}
	}
}

// saidBy returns the texts and the calls of messages. Ids are not compared: some
// providers have none.
func saidBy(msgs []state.Message) (said []string) {
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			if m.Text() != "" {
				said = append(said, m.Text())
			}
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				said = append(said, fmt.Sprintf("%s(%s)", c.Name, c.Input))
			}
		}
	}
	return said
}

// What no model says in one response is an error.
func TestResponseRefuses(t *testing.T) {
	for _, f := range builtIn {
		for _, output := range [][]state.Message{
			{state.SystemText("a")}, {state.UserText("a")}, {state.UserText("a"), state.AssistantText("b")}, {state.AssistantText("a"), state.UserText("b")}, {nil},
		} {
			_, _, err := statetest.Response(f, "m", state.InferenceResult{Output: output})
			require.Error(t, err, f)
		}
	}
	_, _, err := statetest.Response(provider.New("bedrock", provider.OpenAI.Profile(), provider.Table{}), "m", state.InferenceResult{})
	require.EqualError(t, err, "statetest: the responses of bedrock are not known")
}

// A response of calls has no content that the messages do not have.
func TestResponseAddsNoContent(t *testing.T) {
	made, err := provider.OpenAI.DecodeResponse([]byte(`{"choices":[{"message":{"role":"assistant","tool_calls":[` +
		`{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`))
	require.NoError(t, err)
	body, _, err := statetest.Response(provider.OpenAI, "m", made)
	require.NoError(t, err)
	require.NotContains(t, string(body), `"content"`)
}

// A limit is a limit, whichever provider said it.
func TestResponseTranslatesTheReason(t *testing.T) {
	for _, limit := range []string{"length", "max_tokens", "MAX_TOKENS", "max_output_tokens"} {
		m, err := state.DecodeMessage([]byte(`{"type":"text","role":"assistant","content":"a","stop_reason":"` + limit + `"}`))
		require.NoError(t, err)
		body, _, err := statetest.Response(provider.OpenAI, "m", state.InferenceResult{Output: []state.Message{m}})
		require.NoError(t, err)
		require.Contains(t, string(body), `"finish_reason":"length"`)
	}
}

// The container in which Anthropic has run code is named with what it did there.
func TestResponseNamesTheContainer(t *testing.T) {
	const container = `{"id":"container_1","expires_at":"2026-04-24T11:14:17Z"}`
	made, err := provider.Anthropic.DecodeResponse([]byte(`{"role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","container":` + container + `}`))
	require.NoError(t, err)
	body, omitted, err := statetest.Response(provider.Anthropic, "m", made)
	require.NoError(t, err)
	require.Empty(t, omitted)
	require.Contains(t, string(body), `"container":`+container)
}

// A server of a test answers as the provider would.
func ExampleResponse() {
	said := state.InferenceResult{
		ID: "msg_1", Output: []state.Message{state.AssistantText("Hello.")}, Usage: state.Usage{Input: 12, Output: 3},
	}
	body, _, err := statetest.Response(provider.Anthropic, "scripted", said)
	fmt.Println(string(body), err)
	// Output:
	// {"id":"msg_1","type":"message","role":"assistant","model":"scripted","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":3,"output_tokens_details":{"thinking_tokens":0}}} <nil>
}
