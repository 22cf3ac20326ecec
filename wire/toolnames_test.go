package wire_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/wire"
	"github.com/stretchr/testify/require"
)

// calling are the events of streams that call a tool, by format.
var calling = map[*provider.Format][]string{
	provider.OpenAI: {
		`data: {"id":"r1","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c2","type":"function","function":{"name":"NAME","arguments":""}}]}}]}`,
		`data: {"id":"r1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"said\":\"NAME\"}"}}]}}]}`,
		`data: {"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`data: [DONE]`,
	},
	provider.OpenAIResponses: {
		"event: response.output_item.added\ndata: " + `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c2","name":"NAME","arguments":""}}`,
		"event: response.output_item.done\ndata: " + `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c2","name":"NAME","arguments":"{\"said\":\"NAME\"}"}}`,
		"event: response.completed\ndata: " + `{"type":"response.completed","response":{"id":"r1","status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"c2","name":"NAME","arguments":"{\"said\":\"NAME\"}"}]}}`,
	},
	provider.Anthropic: {
		"event: message_start\ndata: " + `{"type":"message_start","message":{"id":"r1","type":"message","role":"assistant","content":[]}}`,
		"event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c2","name":"NAME","input":{}}}`,
		"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"said\":\"NAME\"}"}}`,
		"event: content_block_stop\ndata: " + `{"type":"content_block_stop","index":0}`,
		"event: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`,
		"event: message_stop\ndata: " + `{"type":"message_stop"}`,
	},
	provider.Gemini: {
		`data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"NAME","args":{"said":"\"NAME\""}}}]},"finishReason":"STOP"}],"responseId":"r1"}`,
	},
}

// The names of tools that a provider refuses are replaced in tools and calls of
// the request. The client and the State get the names of the program.
func TestToolsHaveTheNamesOfTheProgram(t *testing.T) {
	const name = "mail/send"
	call := state.ToolCall{ID: "c1", Name: name, Input: `{}`}
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		accepted := a.profile.ToolName(name)
		require.NotEqual(t, name, accepted)
		var bodies []provider.Request
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			request, err := a.format.DecodeRequest(body)
			require.NoError(t, err)
			bodies = append(bodies, request)
			require.Equal(t, accepted, request.Tools[0].Name)
			if !streamed {
				said := state.ToolCall{ID: "c2", Name: accepted, Input: state.JSON(`{"said":"\"` + accepted + `\""}`)}
				answer, _, err := a.format.EncodeResponse(state.InferenceResult{ID: "r1", Output: []state.Message{state.ToolCalls(said)}}, provider.Usage{})
				require.NoError(t, err)
				w.Header().Set("Content-Type", "application/json")
				w.Write(answer)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, piece := range strings.SplitAfter(strings.ReplaceAll(sse(calling[a.format]...), "NAME", accepted), "_") {
				io.WriteString(w, piece) // names come in pieces
				w.(http.Flusher).Flush()
			}
		})
		plain, err := a.format.DecodeRequest([]byte(a.body(streamed)))
		require.NoError(t, err)
		plain.Tools = []provider.Tool{{Name: name, Schema: `{"type":"object"}`}}
		body, _, err := a.format.EncodeRequest(plain)
		require.NoError(t, err)

		st := newState(t, state.UserText("go"), state.ToolCalls(call), state.ToolResult(call, `"done"`))
		client := newClient(t, &wire.Transport{Converse: true})
		for round := range 2 {
			resp := post(t, client, st, server.URL+a.pathOf(streamed), string(body))
			answer, err := readAll(resp)
			require.NoError(t, err)
			require.Contains(t, []int64{-1, int64(len(answer))}, resp.ContentLength)
			require.Contains(t, answer, `"`+name+`"`)
			require.NotContains(t, answer, `"`+accepted+`"`)
			require.Contains(t, answer, accepted+`\`) // what the model says is no name

			msgs := state.Messages.Or(st, nil)
			made := msgs[len(msgs)-1].(state.ToolCallMessage).Calls()[0]
			require.Equal(t, name, made.Name, "round %d", round)
			require.Contains(t, string(made.Input), accepted)
			for _, m := range bodies[round].Messages {
				if m, ok := m.(state.ToolCallMessage); ok {
					require.Equal(t, accepted, m.Calls()[0].Name)
				}
			}
			require.NoError(t, state.Messages.Set(st, append(msgs, state.ToolResult(made, `"done"`))))
		}
	})
}
