package traces_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// TestCostOfRecordings plays recorded conversations of agents again, each request
// with what a model would be shown of it, and says what is paid for if cached
// tokens cost a tenth. The page on windows in the guide has the figures.
func TestCostOfRecordings(t *testing.T) {
	if os.Getenv("STATE_TRACES") == "" {
		t.Skip("the recordings are long ones of agents: set STATE_TRACES")
	}
	last := &state.Field[[]state.Message]{Name: state.Messages.Name, Handler: transcript.KeepLast(20).Handler()}
	for folder, max := range map[string]int{"tau_airline": 6000, "swe_agent": 8000} {
		t.Run(folder, func(t *testing.T) {
			conversations := readConversations(t, folder)
			cost := func(name string, transport wire.Transport, fields ...state.Part) paid {
				var all paid
				for _, c := range conversations {
					all.add(c.play(t, transport, fields...))
				}
				t.Logf("%-28s %4d requests, %8d tokens, %8d paid for, %5.1f %% cached, largest %6d", name,
					all.requests, all.tokens, all.billed(), 100*float64(all.cached)/float64(all.tokens), all.largest)
				return all
			}
			trimmed := cost("described in front, last 20", wire.Transport{Prompt: describeRequests}, last)
			cost("described in front, all", wire.Transport{Prompt: describeRequests})
			cost("described behind, last 20", wire.Transport{Context: describeRequests}, last)
			all := cost("described behind, all", wire.Transport{Context: describeRequests})
			windowed := cost("described behind, window", wire.Transport{Context: describeRequests, Window: &transcript.Window{Target: max}})
			require.Less(t, windowed.billed(), trimmed.billed())
			require.Less(t, windowed.billed(), all.billed()*11/10)
			require.LessOrEqual(t, windowed.largest, max*5/4)
		})
	}
}

var requestsField = &state.Field[int]{Name: "requests", Description: "How often the model was asked.", Handler: state.Sum[int]()}

func describeRequests(_ context.Context, st *state.State) string { return st.Describe() }

// conversation is a recorded one: the JSON of its messages, and what each has made
// of the conversation.
type conversation struct {
	raw  []json.RawMessage
	said [][]state.Message
}

// readConversations returns the conversations of the recordings in a folder, which
// are lists of messages of OpenAI's API.
func readConversations(t *testing.T, folder string) (all []conversation) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("STATE_TRACES"), folder, "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var recording struct{ Traj, History []map[string]json.RawMessage }
		require.NoError(t, json.Unmarshal(data, &recording))
		var c conversation
		before := 0
		for _, message := range append(recording.Traj, recording.History...) {
			for name, value := range message {
				if !strings.Contains(" role content tool_calls tool_call_id name ", " "+name+" ") || string(value) == "null" && name != "content" {
					delete(message, name)
				}
			}
			raw, err := json.Marshal(message)
			require.NoError(t, err)
			c.raw = append(c.raw, raw)
			body, err := json.Marshal(map[string]any{"messages": c.raw})
			require.NoError(t, err)
			request, err := provider.OpenAI.DecodeRequest(body)
			require.NoError(t, err, file)
			c.said = append(c.said, request.Messages[before:])
			before = len(request.Messages)
		}
		all = append(all, c)
	}
	require.NotEmpty(t, all)
	return all
}

// play asks for each answer in the conversation, and gets the recorded one.
func (c conversation) play(t *testing.T, transport wire.Transport, fields ...state.Part) paid {
	server := &recordedModel{}
	transport.Base = server
	client, st := &http.Client{Transport: &transport}, state.New(state.MustSchema(append(fields, requestsField)...))
	system := 0 // the program sends the system prompt
	for c.said[system][0].Role() == "system" {
		system++
	}
	body, err := json.Marshal(map[string]any{"model": "m", "messages": c.raw[:system]})
	require.NoError(t, err)
	for i, raw := range c.raw {
		if i < system {
			continue
		}
		if c.said[i][0].Role() != "assistant" {
			require.NoError(t, state.Messages.Set(st, c.said[i]))
			continue
		}
		server.answer = raw
		require.NoError(t, requestsField.Set(st, 1))
		req, err := http.NewRequestWithContext(state.NewContext(t.Context(), st), http.MethodPost, "http://model/v1/chat/completions", bytes.NewReader(body))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	return server.paid
}

// paid is what requests have cost, with four bytes to a token.
type paid struct{ requests, tokens, cached, largest int }

func (p *paid) add(q paid) {
	p.requests, p.tokens, p.cached, p.largest = p.requests+q.requests, p.tokens+q.tokens, p.cached+q.cached, max(p.largest, q.largest)
}

func (p paid) billed() int { return p.tokens - p.cached + p.cached/10 }

// recordedModel gives the recorded answer to any request, and reads the beginning
// that a request has in common with the one before from its cache.
type recordedModel struct {
	paid
	answer json.RawMessage
	before []byte
}

func (m *recordedModel) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	common := 0
	for common < min(len(body), len(m.before)) && body[common] == m.before[common] {
		common++
	}
	m.before = body
	m.add(paid{1, len(body) / 4, common / 4, len(body) / 4})
	answer := fmt.Sprintf(`{"id":"r","choices":[{"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`,
		m.answer, len(body)/4, len(m.answer)/4)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(bytes.NewBufferString(answer)),
	}, nil
}
