package wire_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/wire"
)

// endless is a body that has a beginning and then the same bytes without end.
// It counts what is read of it.
type endless struct {
	begin, again string
	read         int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		from := e.begin
		if e.read < len(e.begin) {
			from = from[e.read:]
		} else {
			from = e.again[(e.read-len(e.begin))%len(e.again):]
		}
		copied := copy(p[n:], from)
		n, e.read = n+copied, e.read+copied
	}
	return n, nil
}

func (e *endless) Close() error { return nil }

// answering returns a client that answers with a body.
func answering(transport wire.Transport, header http.Header, body io.ReadCloser) *http.Client {
	transport.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body}, nil
	})
	return &http.Client{Transport: &transport}
}

func TestAnAnswerWithoutEndIsAnError(t *testing.T) {
	const limit = 1 << 20
	for name, c := range map[string]struct{ begin, again string }{
		"space":            {"", " "},
		"a web page":       {"<html>", "<p>Hello</p>\n"},
		"a text":           {`{"a":"`, "x"},
		"a line":           {"data: ", "x"},
		"pings":            {"", "event: ping\ndata: {\"type\": \"ping\"}\n\n"},
		"an event":         {"", "data: x\n"},
		"a name of a line": {"x", "x"},
	} {
		eachAPI(t, func(t *testing.T, a api, streamed bool) {
			body := &endless{begin: c.begin, again: c.again}
			st := newState(t)
			resp := post(t, answering(wire.Transport{RecordOnly: true, MaxBytes: limit}, http.Header{}, body), st, "http://a.example"+a.pathOf(streamed), a.body(streamed))
			_, err := readAll(resp)
			require.ErrorIs(t, err, state.ErrLimitExceeded, name)
			require.ErrorContains(t, err, "wire: answer not recorded: ")
			_, again := resp.Body.Read(make([]byte, 1))
			require.ErrorIs(t, again, state.ErrLimitExceeded)
			require.NoError(t, resp.Body.Close())
			require.Zero(t, st.History().Len())
			require.Less(t, body.read, 2*limit)
			require.Equal(t, !streamed, resp.Header.Get("X-Should-Retry") == "false") // SDKs repeat no stream
		})
	}
}

// Comments, which servers send to keep a connection open, are passed on and not
// kept.
func TestCommentsAreNotKept(t *testing.T) {
	for _, a := range apis {
		comments := strings.Repeat(": keep-alive\n\r\n:\r", 1<<16) + strings.Repeat(":", 1<<20) + "\n"
		sent := comments + strings.ReplaceAll(a.raw(true), "\n\n", "\n:\n\n")
		st := newState(t)
		transport := wire.Transport{RecordOnly: true, MaxBytes: 1 << 19}
		got, err := readAll(post(t, answering(transport, http.Header{}, io.NopCloser(strings.NewReader(sent))), st, "http://a.example"+a.pathOf(true), a.body(true)))
		require.NoError(t, err)
		require.Equal(t, sent, got)
		r, _ := st.History().Last()
		requireAnswer(t, st, a, r.Raw)
		require.NotContains(t, r.Raw, "keep-alive")
		require.Equal(t, strings.TrimSpace(a.raw(true)), strings.TrimSpace(r.Raw))
	}
}

// What is held of a long line of a stream of OpenAI is not copied with each read.
func TestALongLineIsHeldOnce(t *testing.T) {
	line := `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 1<<19) + "\"}}]}\n\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body := io.NopCloser(iotest.HalfReader(strings.NewReader(line)))
	a := apis[0]
	require.Equal(t, provider.OpenAI, a.format)
	resp := post(t, answering(wire.Transport{RecordOnly: true}, http.Header{}, body), newState(t), "http://a.example"+a.pathOf(true), a.body(true))
	got := make([]byte, 0, len(line))
	for piece := make([]byte, 512); len(got) < len(line); {
		n, err := resp.Body.Read(piece)
		if got = append(got, piece[:n]...); err != nil {
			break
		}
	}
	require.NoError(t, resp.Body.Close())
	runtime.ReadMemStats(&after)
	require.Equal(t, line, string(got))
	require.Less(t, int(after.TotalAlloc-before.TotalAlloc), 64*len(line))
}

// The limit counts what a compressed body contains.
func TestACompressedAnswerIsLimitedUnpacked(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		var packed strings.Builder
		zip := gzip.NewWriter(&packed)
		_, err := io.CopyN(zip, &endless{again: "data: x\n"}, 8<<20)
		require.NoError(t, err)
		require.NoError(t, zip.Close())
		require.Less(t, packed.Len(), 1<<20)
		st := newState(t)
		client := answering(wire.Transport{RecordOnly: true, MaxBytes: 1 << 20}, http.Header{"Content-Encoding": {"gzip"}}, io.NopCloser(strings.NewReader(packed.String())))
		ctx := state.NewContext(context.Background(), st)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a.example"+a.pathOf(streamed), strings.NewReader(a.body(streamed)))
		require.NoError(t, err)
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := client.Do(req)
		require.NoError(t, err)
		_, err = readAll(resp)
		require.ErrorIs(t, err, state.ErrLimitExceeded)
		require.Zero(t, st.History().Len())
	})
}

func TestTheLimitIsThatOfTheTransport(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		raw := a.raw(streamed)
		for limit, recorded := range map[int]bool{len(raw) - 3: false, len(raw): true, 0: true, -1: true} {
			st := newState(t)
			client := answering(wire.Transport{RecordOnly: true, MaxBytes: limit}, http.Header{}, io.NopCloser(strings.NewReader(raw)))
			_, err := readAll(post(t, client, st, "http://a.example"+a.pathOf(streamed), a.body(streamed)))
			if recorded {
				require.NoError(t, err)
				requireAnswer(t, st, a, mustLast(st).Raw)
			} else {
				require.ErrorIs(t, err, state.ErrLimitExceeded)
				require.Zero(t, st.History().Len())
			}
		}
	})
}

func mustLast(st *state.State) state.InferenceResult {
	r, _ := st.History().Last()
	return r
}

// withCalls returns an answer of n calls.
func (a api) withCalls(t testing.TB, n int, streamed bool) string {
	t.Helper()
	calls := make([]state.ToolCall, n)
	for i := range calls {
		calls[i] = state.ToolCall{ID: fmt.Sprint("call_", i), Name: "f", Input: "{}"}
	}
	body, _, err := statetest.Response(a.format, "m", state.InferenceResult{ID: "r1", Output: []state.Message{state.ToolCalls(calls...)}})
	require.NoError(t, err)
	if !streamed {
		return string(body)
	}
	switch a.format {
	case provider.OpenAIResponses:
		return sse("event: response.completed\ndata: " + `{"type":"response.completed","response":` + string(body) + `}`)
	case provider.Gemini:
		return sse("data: " + string(body))
	case provider.OpenAI:
		var deltas []string
		for i := range n {
			deltas = append(deltas, fmt.Sprintf(`{"index":%[1]d,"id":"call_%[1]d","type":"function","function":{"name":"f","arguments":"{}"}}`, i))
		}
		return sse(`data: {"id":"r1","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[`+strings.Join(deltas, ",")+`]}}]}`,
			`data: {"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `data: [DONE]`)
	}
	events := a.events[:1:1]
	for i := range n {
		events = append(events,
			fmt.Sprintf(`data: {"type":"content_block_start","index":%[1]d,"content_block":{"type":"tool_use","id":"call_%[1]d","name":"f","input":{}}}`, i),
			fmt.Sprintf(`data: {"type":"content_block_stop","index":%d}`, i))
	}
	return sse(append(events, a.events[len(a.events)-2:]...)...)
}

func TestAnAnswerOfMoreThan256CallsIsNotRecorded(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		for n, recorded := range map[int]bool{256: true, 257: false} {
			st := newState(t)
			body := a.withCalls(t, n, streamed)
			client := answering(wire.Transport{RecordOnly: true}, http.Header{}, io.NopCloser(strings.NewReader(body)))
			got, err := readAll(post(t, client, st, "http://a.example"+a.pathOf(streamed), a.body(streamed)))
			if recorded {
				require.NoError(t, err)
				require.Equal(t, body, got)
				require.Len(t, st.History().Pending(), n)
				continue
			}
			require.ErrorIs(t, err, state.ErrLimitExceeded)
			require.ErrorContains(t, err, "wire: answer not recorded: ")
			require.ErrorContains(t, err, "limit Calls: 257 is more than 256")
			require.Zero(t, st.Version())
		}
	})
}
