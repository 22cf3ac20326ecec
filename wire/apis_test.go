package wire_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// api is an API of a provider as a test server offers it.
type api struct {
	format       *provider.Format
	profile      transcript.Profile
	path, stream string   // of requests for a whole and for a streamed answer
	request      string   // with instructions and no conversation; %s is where "stream" goes
	whole        string   // a response that says "Hello, Ann!"
	events       []string // the same, streamed
	hasEnd       bool     // the last event says that it is the last one
}

var apis = []api{
	{
		format: provider.OpenAI, profile: transcript.OpenAI,
		path: "/v1/chat/completions", stream: "/v1/chat/completions",
		request: `{"model": "m",%s "messages":[ {"role":"system","content":"Be kind."} ], "temperature":1.0, "seed":9007199254740993}`,
		whole:   `{"id":"r1","created":1700000000,"choices":[{"index":0,"message":{"role":"assistant","content":"Hello, Ann!"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}`,
		events: []string{
			`data: {"id":"r1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello, "}}]}`,
			`data: {"id":"r1","choices":[{"index":0,"delta":{"content":"Ann!"}}]}`,
			`data: {"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`data: {"id":"r1","choices":[],"usage":{"prompt_tokens":9}}`,
			`data: [DONE]`,
		},
		hasEnd: true,
	},
	{
		format: provider.OpenAIResponses, profile: transcript.OpenAIResponses,
		path: "/v1/responses", stream: "/v1/responses",
		request: `{"model": "m",%s "instructions":"Be kind.", "top_p":1.0}`,
		whole:   `{"id":"r1","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello, Ann!","annotations":[]}]}]}`,
		events: []string{
			"event: response.created\ndata: " + `{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}`,
			"event: response.output_item.added\ndata: " + `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}`,
			"event: response.output_text.delta\ndata: " + `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello, Ann!"}`,
			"event: response.output_item.done\ndata: " + `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello, Ann!","annotations":[]}]}}`,
			"event: response.completed\ndata: " + `{"type":"response.completed","response":{"id":"r1","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello, Ann!","annotations":[]}]}]}}`,
		},
		hasEnd: true,
	},
	{
		format: provider.Anthropic, profile: transcript.Anthropic,
		path: "/v1/messages", stream: "/v1/messages",
		request: `{"model": "m",%s "system":"Be kind.", "max_tokens":64, "messages":[], "temperature":1.0}`,
		whole:   `{"id":"r1","type":"message","role":"assistant","content":[{"type":"text","text":"Hello, Ann!"}],"stop_reason":"end_turn","usage":{"input_tokens":9}}`,
		events: []string{
			"event: message_start\ndata: " + `{"type":"message_start","message":{"id":"r1","type":"message","role":"assistant","content":[],"stop_reason":null}}`,
			"event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			"event: ping\ndata: " + `{"type":"ping"}`,
			"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello, "}}`,
			"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Ann!"}}`,
			"event: content_block_stop\ndata: " + `{"type":"content_block_stop","index":0}`,
			"event: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}`,
			"event: message_stop\ndata: " + `{"type":"message_stop"}`,
		},
		hasEnd: true,
	},
	{
		format: provider.Gemini, profile: transcript.Gemini,
		path: "/v1beta/models/m:generateContent", stream: "/v1beta/models/m:streamGenerateContent?alt=sse",
		request: `{"systemInstruction":{"parts":[{"text":"Be kind."}]},%s "contents":[], "generationConfig":{"temperature":1.0}}`,
		whole:   `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello, Ann!"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9},"responseId":"r1"}`,
		events: []string{
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hello, "}]}}],"responseId":"r1"}`,
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Ann!"}]},"finishReason":"STOP"}],"responseId":"r1"}`,
			`data: {"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9},"responseId":"r1"}`,
		},
	},
}

// body returns the body of a request of the API.
func (a api) body(streamed bool) string {
	member := ""
	if streamed && a.format != provider.Gemini {
		member = ` "stream":true,`
	}
	return fmt.Sprintf(a.request, member)
}

func (a api) pathOf(streamed bool) string {
	if streamed {
		return a.stream
	}
	return a.path
}

// sse returns the body of a stream with events.
func sse(events ...string) string { return strings.Join(events, "\n\n") + "\n\n" }

// answer answers a request as the API does.
func (a api) answer(w http.ResponseWriter, streamed bool) {
	if !streamed {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, a.whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, event := range a.events {
		io.WriteString(w, sse(event))
		w.(http.Flusher).Flush()
	}
}

// eachAPI runs a test for each API, with a whole and with a streamed answer.
func eachAPI(t *testing.T, test func(t *testing.T, a api, streamed bool)) {
	for _, a := range apis {
		t.Run(a.format.String()+"/whole", func(t *testing.T) { test(t, a, false) })
		t.Run(a.format.String()+"/streamed", func(t *testing.T) { test(t, a, true) })
	}
}

// serve starts a server that is closed at the end of the test.
func serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// newClient returns a client with a Transport.
func newClient(t testing.TB, transport *wire.Transport) *http.Client {
	if transport.Base == nil {
		base := http.DefaultTransport.(*http.Transport).Clone()
		t.Cleanup(base.CloseIdleConnections)
		transport.Base = base
	}
	return &http.Client{Transport: transport}
}

// post sends a request with the state in its context.
func post(t testing.TB, client *http.Client, st *state.State, url, body string) *http.Response {
	t.Helper()
	resp, err := tryPost(client, st, url, body)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func tryPost(client *http.Client, st *state.State, url, body string) (*http.Response, error) {
	ctx := state.NewContext(context.Background(), st)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

// readAll returns what a body contains, and the error of its reader.
func readAll(resp *http.Response) (string, error) {
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// newState returns a state with a conversation.
func newState(t testing.TB, msgs ...state.Message) *state.State {
	t.Helper()
	st := state.New(nil)
	if len(msgs) > 0 {
		require.NoError(t, state.Messages.Set(st, msgs))
	}
	return st
}

// texts returns role and text of messages, one a line.
func texts(msgs []state.Message) string {
	var lines []string
	for _, m := range msgs {
		lines = append(lines, m.String())
	}
	return strings.Join(lines, "\n")
}
