package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
	"gopkg.in/dnaeon/go-vcr.v4/pkg/recorder"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// recorded returns a transport that replays the exchanges of a file, or records
// them: a test of an SDK needs a key once, and no network from then on. The file
// has no headers, and none of the secrets that st has when the test ends.
func recorded(t *testing.T, file string, mode recorder.Mode, st *state.State) http.RoundTripper {
	t.Helper()
	tape, err := recorder.New(file, recorder.WithMode(mode), recorder.WithSkipRequestLatency(true),
		recorder.WithMatcher(func(r *http.Request, i cassette.Request) bool {
			body, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			at, parseErr := url.Parse(i.URL)
			return err == nil && parseErr == nil && r.Method == i.Method && r.URL.Path == at.Path &&
				saidTo(t, r, st.Redact(string(body))) == saidTo(t, r, i.Body)
		}),
		recorder.WithHook(func(i *cassette.Interaction) error {
			i.Request.Headers = nil
			i.Response.Headers = http.Header{"Content-Type": i.Response.Headers["Content-Type"]}
			i.Request.Body, i.Response.Body = st.Redact(i.Request.Body), st.Redact(i.Response.Body)
			return nil
		}, recorder.BeforeSaveHook))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tape.Stop()) })
	return tape
}

// saidTo returns what the body of a request says to the model, whatever the ids
// of its calls. The provider must accept it.
func saidTo(t *testing.T, r *http.Request, body string) string {
	format := wire.FormatOf(r)
	if format == nil {
		return body
	}
	request, err := format.DecodeRequest([]byte(body))
	require.NoError(t, err)
	require.Empty(t, transcript.Check(request.Messages, request.Profile(format.Profile())))
	said := statetest.Transcript(request.Messages) + string(request.Settings)
	for _, tool := range request.Tools {
		said += "\n" + tool.Name + string(tool.Schema)
	}
	return said
}

// A recording answers the same conversation from any host, with other ids of
// calls, and tells neither the key nor a secret of the State.
func TestARecordingReplaysWithoutKeyAndSecrets(t *testing.T) {
	const card = "4242-4242-4242"
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"`+card+` is charged."},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	number := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(number))
	require.NoError(t, number.Set(st, card))
	file := filepath.Join(t.TempDir(), "charge")

	ask := func(t *testing.T, mode recorder.Mode, host, id, prompt string) (string, error) {
		request, err := http.NewRequest(http.MethodPost, host+"/v1/chat/completions", strings.NewReader(
			`{"model":"gpt-5-mini","messages":[{"role":"user","content":"`+prompt+card+`"},
			{"role":"assistant","tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"charge","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"`+id+`","content":"done"}]}`))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer sk-live-1")
		client := &http.Client{Transport: recorded(t, file, mode, st)}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	t.Run("record", func(t *testing.T) {
		body, err := ask(t, recorder.ModeRecordOnly, server.URL, "call_a", "Charge ")
		require.NoError(t, err)
		require.Contains(t, body, card)
	})
	stored, err := os.ReadFile(file + ".yaml")
	require.NoError(t, err)
	require.Contains(t, string(stored), "is charged.")
	require.NotContains(t, string(stored), "4242")
	require.NotContains(t, string(stored), "sk-live")
	t.Run("replay", func(t *testing.T) {
		body, err := ask(t, recorder.ModeReplayOnly, "https://other.example", "call_b", "Charge ")
		require.NoError(t, err)
		require.Contains(t, body, "is charged.")
	})
	t.Run("another prompt is not replayed", func(t *testing.T) {
		_, err := ask(t, recorder.ModeReplayOnly, server.URL, "call_a", "Refund ")
		require.ErrorIs(t, err, cassette.ErrInteractionNotFound)
	})
	require.Equal(t, 1, calls)
}
