package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// meter is a provider that counts: what a request has, and how much of it begins
// like the request before, which it reads from its cache.
type meter struct {
	limit    int // of the tokens of a request
	requests int
	over     int // requests over the limit
	refused  int // requests with findings
	tokens   int // of all requests; four bytes are one
	cached   int // of these, what the request before has said
	shared   int // bytes in common with the request before, of
	possible int // those of the shorter of the two
	largest  int
	before   string
}

// billed returns the tokens that are paid for, if those that are cached cost a
// tenth.
func (m *meter) billed() int { return m.tokens - m.cached + m.cached/10 }

// RoundTrip answers every tenth question with a call.
func (m *meter) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	request, err := provider.OpenAI.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	if len(transcript.Check(request.Messages, transcript.OpenAI)) > 0 {
		m.refused++
	}
	now := string(body)
	size := len(now) / 4
	common := commonPrefix(m.before, now)
	m.requests, m.tokens, m.largest = m.requests+1, m.tokens+size, max(m.largest, size)
	m.cached += common / 4
	if size > m.limit {
		m.over++
	}
	if m.before != "" {
		m.shared += common
		m.possible += min(len(contextText.ReplaceAllString(m.before, "")), len(contextText.ReplaceAllString(now, "")))
	}
	m.before = now
	answer := `"content":"` + strings.Repeat("It is so. ", 20) + `"`
	last := request.Messages[len(request.Messages)-1]
	if last.Role() == "user" && m.requests%11 == 10 && !strings.Contains(string(request.Messages[len(request.Messages)-2].Raw()), "tool_call") {
		answer = fmt.Sprintf(`"content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"note","arguments":"{}"}}]`, m.requests)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(bytes.NewBufferString(fmt.Sprintf(
			`{"id":"r%d","choices":[{"message":{"role":"assistant",%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`,
			m.requests, answer, size, len(answer)/4))),
	}, nil
}

// chatBody is what the SDK of a chat sends: instructions and a tool.
const chatBody = `{"model":"m","messages":[{"role":"system","content":"You answer questions about the house."}],"tools":[{"type":"function","function":{"name":"note","description":"Note what the user wants.","parameters":{"type":"object"}}}]}`

var turnsField = &state.Field[int]{Name: "turns", Description: "How often the user has asked.", Handler: state.Sum[int]()}

// chat lets a user ask so many questions, and makes the calls of the model.
func chat(transport *wire.Transport, st *state.State, turns int) error {
	client, ctx := &http.Client{Transport: transport}, state.NewContext(context.Background(), st)
	for i := range turns {
		if err := turnsField.Set(st, 1); err != nil {
			return err
		}
		question := fmt.Sprintf("Question %d: %s?", i, strings.Repeat("and why is it so ", 10))
		if err := state.Messages.Set(st, []state.Message{state.UserText(question)}); err != nil {
			return err
		}
		for {
			if err := send(ctx, client, "http://model", chatBody); err != nil {
				return err
			}
			calls := transcript.Pending(state.Messages.GetOr(st, nil))
			if len(calls) == 0 {
				break
			}
			for _, c := range calls {
				if err := st.History().Answer(state.ToolResult(c, `"noted"`)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func describe(_ context.Context, st *state.State) string { return st.Describe() }

// TestCostOfLongChats compares ways to show a model a long conversation. The figures
// of 1 000 turns, with STATE_EFFORT=10, are in lab/reports/conversations.md.
func TestCostOfLongChats(t *testing.T) {
	turns := effort.Runs(100)
	messages := &state.Field[[]state.Message]{Name: state.Messages.Name, Handler: transcript.KeepLast(60).Handler()}
	cost := func(name string, transport *wire.Transport, fields ...state.Part) int {
		m := &meter{limit: 1 << 30}
		transport.Base = m
		require.NoError(t, chat(transport, state.New(state.MustSchema(append(fields, turnsField)...)), turns))
		require.Zero(t, m.refused)
		t.Logf("%-28s %9d tokens, %9d billed, shared %5.1f %%, largest %6d", name, m.tokens, m.billed(), 100*float64(m.shared)/float64(m.possible), m.largest)
		return m.billed()
	}
	window := func() *transcript.Window { return &transcript.Window{Target: 4000} }
	described := cost("described in front, last 60", &wire.Transport{Prompt: describe}, messages)
	cost("described in front, window", &wire.Transport{Prompt: describe, Window: window()})
	cost("described behind, last 60", &wire.Transport{Context: describe}, messages)
	windowed := cost("described behind, window", &wire.Transport{Context: describe, Window: window()})
	all := cost("described behind, all", &wire.Transport{Context: describe})
	require.Less(t, 3*windowed, described)
	if turns >= 1000 {
		require.Less(t, 2*windowed, all)
	}
}
