package wire_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
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

// answerWithCall returns what a provider answers with a call of a tool.
func answerWithCall(t *testing.T, a api, streamed bool, tool string) string {
	t.Helper()
	if streamed {
		return strings.ReplaceAll(sse(calling[a.format]...), "NAME", tool)
	}
	said := state.ToolCall{ID: "c2", Name: tool, Input: state.JSON(`{"said":"\"` + tool + `\""}`)}
	answer, _, err := statetest.Response(a.format, "m", state.InferenceResult{ID: "r1", Output: []state.Message{state.ToolCalls(said)}})
	require.NoError(t, err)
	return string(answer)
}

// The names of tools that a provider refuses are replaced in tools and calls of
// the request. The client and the State get the names of the program, however the
// answer comes: whole, in pieces that end within a name, or compressed, which
// only the State reads.
func TestToolsHaveTheNamesOfTheProgram(t *testing.T) {
	const name = "mail/send"
	call := state.ToolCall{ID: "c1", Name: name, Input: `{}`}
	packed := func(r io.Reader) io.Reader {
		var to bytes.Buffer
		zip := gzip.NewWriter(&to)
		_, err := io.Copy(zip, r)
		require.NoError(t, err)
		require.NoError(t, zip.Close())
		return &to
	}
	for way, comes := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "in bytes": iotest.OneByteReader, "compressed": packed,
	} {
		t.Run(way, func(t *testing.T) {
			eachAPI(t, func(t *testing.T, a api, streamed bool) {
				accepted := a.profile.ToolName(name)
				require.NotEqual(t, name, accepted)
				var sent provider.Request
				header := http.Header{"Content-Type": {"application/json"}}
				if way == "compressed" {
					header.Set("Content-Encoding", "gzip")
				}
				base := roundTripper(func(req *http.Request) (*http.Response, error) {
					body, err := io.ReadAll(req.Body)
					require.NoError(t, err)
					sent, err = a.format.DecodeRequest(body)
					require.NoError(t, err)
					answer := comes(strings.NewReader(answerWithCall(t, a, streamed, accepted)))
					return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(answer), ContentLength: 1}, nil
				})
				plain, err := a.format.DecodeRequest([]byte(a.body(streamed)))
				require.NoError(t, err)
				plain.Tools = []provider.Tool{{Name: name, Schema: `{"type":"object"}`}}
				body, _, err := a.format.EncodeRequest(plain)
				require.NoError(t, err)

				st := newState(t, state.UserText("go"), state.ToolCalls(call), state.ToolResult(call, `"done"`))
				client := newClient(t, &wire.Transport{Base: base})
				for round := range 2 {
					resp := post(t, client, st, "http://a.example"+a.pathOf(streamed), string(body))
					answer, err := readAll(resp)
					require.NoError(t, err)
					if way != "compressed" {
						require.EqualValues(t, -1, resp.ContentLength)
						require.Contains(t, answer, `"`+name+`"`)
						require.NotContains(t, answer, `"`+accepted+`"`)
						require.Contains(t, answer, accepted+`\`) // what the model says is no name
					}
					msgs := state.Messages.GetOr(st, nil)
					made := msgs[len(msgs)-1].(state.ToolCallMessage).Calls()[0]
					require.Equal(t, name, made.Name, "round %d", round)
					require.Contains(t, string(made.Input), accepted)
					require.Equal(t, accepted, sent.Tools[0].Name)
					for _, m := range sent.Messages {
						if m, ok := m.(state.ToolCallMessage); ok {
							require.Equal(t, accepted, m.Calls()[0].Name)
						}
					}
					require.NoError(t, state.Messages.Set(st, append(msgs, state.ToolResult(made, `"done"`))))
				}
			})
		})
	}
}
