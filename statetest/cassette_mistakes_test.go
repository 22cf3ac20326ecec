package statetest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest"
)

func init() {
	programs = append(programs,
		program{44, "cassette", "key echoed by an answer", playEchoedKey, []string{"is not written: it would tell the header X-Api-Key"}},
		program{45, "cassette", "changed prompt", playChangedPrompt, []string{"is not in testdata", "- $.messages[0].content", "+ $.messages[0].content"}},
		program{46, "cassette", "equal request once more", playEqualRequests, []string{"2 times, and this is one more"}},
		program{47, "cassette", "independent requests swapped and one left out", playSwapped, []string{"1 of 2 recordings"}},
		program{0, "cassette", "call without a result", playOpenCall, []string{"would be refused by OpenAI", "unanswered-call"}},
		program{0, "cassette", "request without an answer", recordFailure, []string{"has no answer to record: connection reset"}},
		program{0, "cassette", "no request", recordNothing, []string{"no request was made"}},
		program{0, "cassette", "secret of the state unmasked", recordSecret, []string{"- $.a: ", "[SECRET 1]"}},
	)
}

// server answers each request with its number and what it got.
type server struct{ requests int }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests++
	body, err := io.ReadAll(r.Body)
	text := fmt.Sprintf(`{"number": %d, "got": %s}`, s.requests, body)
	if strings.Contains(r.URL.Path, "echo") {
		text = fmt.Sprintf(`{"key": %q}`, r.Header.Get("X-Api-Key"))
	}
	if strings.Contains(r.URL.Path, "stream") {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
			Body: io.NopCloser(strings.NewReader(streamed))}, err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(text))}, err
}

// streamed has events that a file has as JSON, and others.
const streamed = "event: a\ndata: {\"b\":1}\n\ndata: {\"b\": 2}\r\n\r\n: ping\n\ndata: [DONE]\n\nrest"

func post(t *testing.T, rt http.RoundTripper, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://model.test"+path+"?key=query-key-4242", strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("X-Api-Key", "sk-header-4242")
	res, err := (&http.Client{Transport: rt}).Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(data)
}

// recordThenPlay runs record while files are updated, and play with the file.
func recordThenPlay(t *testing.T, record, play func(rt http.RoundTripper)) {
	t.Chdir(t.TempDir())
	defer func(set bool) { *update = set }(*update)
	*update = false
	t.Run("record", func(t *testing.T) {
		t.Setenv("STATETEST_UPDATE", "1")
		record(statetest.Cassette(t, "a.json", &statetest.CassetteOptions{Transport: &server{}}))
	})
	if play == nil {
		return
	}
	t.Run("play", func(t *testing.T) {
		t.Setenv("STATETEST_UPDATE", "")
		play(statetest.Cassette(t, "a.json", nil))
	})
}

const chat = "/v1/chat/completions"

func says(text string) string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, text)
}

func playEchoedKey(t *testing.T, mistake bool) {
	path := "/plain"
	if mistake {
		path = "/echo"
	}
	recordThenPlay(t, func(rt http.RoundTripper) { post(t, rt, path, `{"a":1}`) }, nil)
	_, err := os.Stat(filepath.Join("testdata", "a.json"))
	require.Equal(t, mistake, os.IsNotExist(err))
}

func playChangedPrompt(t *testing.T, mistake bool) {
	text := "The keyboard is broken."
	recordThenPlay(t, func(rt http.RoundTripper) { post(t, rt, chat, says(text)) }, func(rt http.RoundTripper) {
		if mistake {
			text = "The mouse is broken."
		}
		post(t, rt, chat, says(text))
	})
}

func playEqualRequests(t *testing.T, mistake bool) {
	twice := func(rt http.RoundTripper) {
		require.Contains(t, post(t, rt, chat, says("a")), `"number":`)
		require.Contains(t, strings.ReplaceAll(post(t, rt, chat, says("a")), " ", ""), `"number":2`)
	}
	recordThenPlay(t, twice, func(rt http.RoundTripper) {
		twice(rt)
		if mistake {
			post(t, rt, chat, says("a"))
		}
	})
}

func playSwapped(t *testing.T, mistake bool) {
	recordThenPlay(t, func(rt http.RoundTripper) {
		post(t, rt, chat, says("a"))
		post(t, rt, chat, says("b"))
	}, func(rt http.RoundTripper) {
		require.Contains(t, strings.ReplaceAll(post(t, rt, chat, says("b")), " ", ""), `"number":2`)
		if !mistake {
			post(t, rt, chat, says("a"))
		}
	})
}

func playOpenCall(t *testing.T, mistake bool) {
	result := `,{"role":"tool","tool_call_id":"call_1","content":"ok"}`
	if mistake {
		result = ""
	}
	body := `{"model":"m","messages":[{"role":"user","content":"The keyboard is broken."},{"role":"assistant","tool_calls":[` +
		`{"id":"call_1","type":"function","function":{"name":"refund","arguments":"{}"}}]}` + result +
		`,{"role":"user","content":"Please hurry."}]}`
	recordThenPlay(t, func(rt http.RoundTripper) { post(t, rt, chat, body) }, nil)
}

func recordFailure(t *testing.T, mistake bool) {
	t.Chdir(t.TempDir())
	t.Setenv("STATETEST_UPDATE", "1")
	rt := statetest.Cassette(t, "a.json", &statetest.CassetteOptions{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
		if mistake {
			return nil, errors.New("connection reset")
		}
		return (&server{}).RoundTrip(r)
	})})
	res, err := rt.RoundTrip(httptest.NewRequest(http.MethodPost, "https://model.test/a", strings.NewReader(`{}`)))
	require.Equal(t, mistake, err != nil)
	if !mistake {
		require.NoError(t, res.Body.Close())
	}
}

func recordNothing(t *testing.T, mistake bool) {
	recordThenPlay(t, func(rt http.RoundTripper) {
		if !mistake {
			post(t, rt, "/a", `{}`)
		}
	}, nil)
}

func recordSecret(t *testing.T, mistake bool) {
	st := state.New(state.MustSchema(cassetteCard))
	require.NoError(t, cassetteCard.Set(st, "4242-4242-4242"))
	opts := &statetest.CassetteOptions{State: st, Transport: &server{}}
	t.Chdir(t.TempDir())
	body := `{"a":"pay with 4242-4242-4242"}`
	t.Run("record", func(t *testing.T) {
		t.Setenv("STATETEST_UPDATE", "1")
		post(t, statetest.Cassette(t, "a.json", opts), "/a", body)
	})
	require.NotContains(t, cassetteText(t), "4242-4242")
	if mistake {
		body = `{"a":"send 4242-4242-4242"}`
	}
	t.Run("play", func(t *testing.T) {
		defer func(set bool) { *update = set }(*update)
		*update = false
		t.Setenv("STATETEST_UPDATE", "")
		post(t, statetest.Cassette(t, "a.json", opts), "/a", body)
	})
}

func TestCassetteReplaysStreamsByteForByte(t *testing.T) {
	play := func(rt http.RoundTripper) { require.Equal(t, streamed, post(t, rt, "/stream", `{"a":1}`)) }
	recordThenPlay(t, play, play)
	data, err := os.ReadFile("testdata/a.json")
	require.NoError(t, err)
	require.Contains(t, string(data), `"event": "a"`)
	require.NotContains(t, string(data), "4242")
}

func TestCassetteRenamesCallsAndLeavesOutMetadata(t *testing.T) {
	body := func(id, user string) string {
		return fmt.Sprintf(`{"model":"m","user":%q,"metadata":{"trace":%q},"messages":[{"role":"user","content":"a"},`+
			`{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]},`+
			`{"role":"tool","tool_call_id":%q,"content":"b"}]}`, user, user, id, id)
	}
	recordThenPlay(t, func(rt http.RoundTripper) { post(t, rt, chat, body("call_x", "ann")) },
		func(rt http.RoundTripper) { require.Contains(t, post(t, rt, chat, body("call_y", "bob")), "call_x") })
}
