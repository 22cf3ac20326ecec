package wire_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// provided is a provider that gives these answers, in turn, and keeps the bodies
// of the requests.
type provided struct {
	answers []func(*http.Request) (*http.Response, error)
	bodies  []string
}

func (p *provided) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	p.bodies = append(p.bodies, string(body))
	if len(p.answers) == 0 {
		return nil, errors.New("asked too often")
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer(req)
}

// status answers with a status and a body, and with headers in pairs.
func status(code int, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
}

func saysText(text string) func(*http.Request) (*http.Response, error) {
	return status(200, `{"choices":[{"message":{"role":"assistant","content":"`+text+`"},"finish_reason":"stop"}]}`)
}

// asks returns the Ask of an agent whose program sends a body to a path.
func asks(p *provided, path, body string) func(context.Context, *loop.Turn) error {
	return asksOf(p, path, body)
}

func asksOf(base http.RoundTripper, path, body string) func(context.Context, *loop.Turn) error {
	return asksOfTransport(&wire.Transport{Base: base}, path, body)
}

func asksOfTransport(transport *wire.Transport, path, body string) func(context.Context, *loop.Turn) error {
	client := &http.Client{Transport: transport}
	return func(ctx context.Context, _ *loop.Turn) error {
		return callModel(ctx, client, "http://model"+path, body)
	}
}

// callModel sends a request to its end, as an agent does by an SDK.
func callModel(ctx context.Context, client *http.Client, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status) // as an SDK does, which knows more of it
	}
	return nil
}

const chatPath = "/v1/chat/completions"

var note = tool.Must(tool.New("shop/note", "Notes a text.", func(_ context.Context, in struct {
	Text string `json:"text"`
}) (string, error) {
	return in.Text, nil
}))

// Within a turn, a request offers the tools of the agent in its format.
func TestToolsOfATurn(t *testing.T) {
	for path, want := range map[string]string{
		chatPath:                           `"tools":[{"type":"function","function":{"name":"shop_note_`,
		"/v1/responses":                    `"tools":[{"type":"function","name":"shop_note_`,
		"/v1/messages":                     `"tools":[{"name":"shop_note_`,
		"/v1beta/models/m:generateContent": `"tools":[{"functionDeclarations":[{"name":"shop_note_`,
	} {
		t.Run(path, func(t *testing.T) {
			p := &provided{}
			st := state.New(nil)
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
			loop := loop.Loop{Agents: map[string]loop.Agent{"": {Ask: asks(p, path, `{"model":"m"}`), Tools: []*tool.Tool{note}}}}
			ctx, cancel := context.WithCancel(t.Context())
			p.answers = append(p.answers, func(*http.Request) (*http.Response, error) { cancel(); return nil, errors.New("no") })
			_, err := loop.Run(ctx, st)
			require.Error(t, err)
			require.Len(t, p.bodies, 1)
			require.Contains(t, p.bodies[0], want)
			require.Contains(t, p.bodies[0], "Notes a text.")
			require.NotContains(t, p.bodies[0], "shop/note")
		})
	}
}

// The program's own tools come first, and those of the turn do not repeat them.
func TestToolsOfTheRequest(t *testing.T) {
	p := &provided{answers: []func(*http.Request) (*http.Response, error){saysText("hi")}}
	own := `{"model":"m","tools":[{"type":"function","function":{"name":"shop/note","description":"Mine.","parameters":{}}}]}`
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
	loop := loop.Loop{Agents: map[string]loop.Agent{"": {Ask: asks(p, chatPath, own), Tools: []*tool.Tool{note}}}}
	_, err := loop.Run(t.Context(), st)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(p.bodies[0], "shop_note"))
	require.Contains(t, p.bodies[0], "Mine.")
}

// A loop asks again when the service may answer later, after the time that it
// names.
func TestLoopAsksAgainThroughWire(t *testing.T) {
	broken := func(body string) func(*http.Request) (*http.Response, error) {
		return status(200, body, "Content-Type", "text/event-stream")
	}
	cut := `data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n"
	for name, tc := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		after  time.Duration // negative: the error is final
	}{
		"rate limit":      {status(429, "{}", "Retry-After", "7"), 7 * time.Second},
		"overloaded":      {status(529, "{}"), time.Second},
		"unavailable":     {status(503, "{}", "Retry-After", "soon"), time.Second},
		"until":           {status(503, "{}", "Retry-After", "Sat, 01 Jan 2000 00:00:30 GMT"), 30 * time.Second},
		"milliseconds":    {status(429, "{}", "Retry-After-Ms", "1500", "Retry-After", "7"), 1500 * time.Millisecond},
		"a part of one":   {status(429, "{}", "Retry-After", "2.5"), 2500 * time.Millisecond},
		"no number":       {status(429, "{}", "Retry-After-Ms", "NaN", "Retry-After", "Inf"), time.Second},
		"never":           {status(429, "{}", "Retry-After-Ms", "1e300"), time.Second},
		"before":          {status(429, "{}", "Retry-After", "-3"), time.Second},
		"no connection":   {func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }, time.Second},
		"a stream is cut": {broken(cut), time.Second},
		"bad request":     {status(400, "{}"), -1},
		"not authorized":  {status(401, "{}", "Retry-After", "7"), -1},
		"not an answer":   {status(200, "[]"), -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &provided{answers: []func(*http.Request) (*http.Response, error){tc.answer, saysText("hi")}}
				st := state.New(nil)
				require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
				loop := loop.Loop{Agents: map[string]loop.Agent{"": {Ask: asks(p, chatPath, `{"model":"m"}`)}}}
				began := time.Now()
				reply, err := loop.Run(t.Context(), st)
				if tc.after < 0 {
					require.Error(t, err)
					require.Len(t, p.bodies, 1)
					return
				}
				require.NoError(t, err)
				require.Equal(t, "hi", reply)
				require.Equal(t, tc.after, time.Since(began))
				require.Equal(t, p.bodies[0], p.bodies[1])
				require.Equal(t, 1, st.History().Len())
			})
		})
	}
}

// In a run, nothing is to be configured: calls that wait are said to wait, an
// approved call is at the end, and those who watch see what is streamed.
func TestRunThroughWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streamed := strings.Join([]string{
			`data: {"choices":[{"delta":{"content":"It is "}}]}`, `data: {"choices":[{"delta":{"content":"s3c"}}]}`,
			`data: {"choices":[{"delta":{"content":"ret-value."},"finish_reason":"stop"}]}`, "data: [DONE]", "",
		}, "\n\n")
		calls := `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"refund","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
		p := &provided{answers: []func(*http.Request) (*http.Response, error){
			status(200, calls), saysText("wait"), status(200, streamed, "Content-Type", "text/event-stream"),
		}}
		card := &state.Field[string]{Name: "card", Secret: true}
		refund := tool.Must(tool.New("refund", "", func(context.Context, struct{}) (string, error) { return "refunded", nil },
			tool.NeedsApproval(func(context.Context, struct{}) (string, bool) { return "always", true })))
		m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: state.MustSchema(card), Run: workspace.Loop(&loop.Loop{
			Agents: map[string]loop.Agent{"": {Ask: asks(p, chatPath, `{"model":"m"}`), Tools: []*tool.Tool{refund}}},
		})})
		require.NoError(t, err)
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return card.Set(w.State(), "s3cret-value") }))
		var deltas string
		go func() {
			for e := range m.Watch(t.Context(), "ann").AsHost() {
				deltas += e.Delta
			}
		}()
		synctest.Wait()
		for _, said := range []string{"refund", "hello?"} {
			_, err := m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText(said)})
			require.NoError(t, err)
		}
		v, err := m.View(t.Context(), "ann")
		require.NoError(t, err)
		_, err = m.Handle(t.Context(), "ann", workspace.Message{Decisions: []tool.Decision{tool.Approve(v.Suspended()[0].Key)}})
		require.NoError(t, err)
		synctest.Wait()
		require.Contains(t, p.bodies[1], `"content":"Waiting for approval."`)
		require.Regexp(t, `hello\?.*"wait".*"c1".*"content":"refunded"\}\]`, p.bodies[2])
		require.NotContains(t, p.bodies[2], "card", "fields are shown if the program says so")
		require.Equal(t, "It is [SECRET].", deltas)
		require.NoError(t, m.Close())
	})
}

// A turn of another State is not that of the request.
func TestTurnOfAnotherState(t *testing.T) {
	p := &provided{answers: []func(*http.Request) (*http.Response, error){saysText("a title"), saysText("a fork"), saysText("hi")}}
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
	ask := asks(p, chatPath, `{"model":"m"}`)
	loop := loop.Loop{Agents: map[string]loop.Agent{"": {Tools: []*tool.Tool{note}, Ask: func(ctx context.Context, turn *loop.Turn) error {
		require.NoError(t, ask(wire.OutsideConversation(ctx), turn))
		require.NoError(t, ask(state.NewContext(ctx, st.Fork()), turn))
		return ask(ctx, turn)
	}}}}
	reply, err := loop.Run(t.Context(), st)
	require.NoError(t, err)
	require.Equal(t, "hi", reply)
	require.Len(t, state.Messages.GetOr(st, nil), 2)
	require.NotContains(t, p.bodies[0], "shop_note")
	require.NotContains(t, p.bodies[1], "shop_note")
	require.Contains(t, p.bodies[2], "shop_note")
}

// A program that reads no further than the last event, or the end of the JSON, does
// not see that the answer is not recorded. The Loop hears of it.
func TestTheLoopHearsOfAnAnswerThatIsNotRecorded(t *testing.T) {
	const text = "A text that is too long for the State."
	const stream = `data: {"choices":[{"delta":{"content":"` + text + `"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"whole":    saysText(text),
		"streamed": status(200, stream, "Content-Type", "text/event-stream"),
	} {
		p := &provided{answers: []func(*http.Request) (*http.Response, error){answer}}
		client := &http.Client{Transport: &wire.Transport{Base: p}}
		l := &loop.Loop{Agents: map[string]loop.Agent{"": {Ask: func(ctx context.Context, _ *loop.Turn) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model"+chatPath, strings.NewReader(`{"model":"m"}`))
			if err != nil {
				return err
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			body, _ := io.ReadAll(resp.Body)
			require.Contains(t, string(body), text)
			return resp.Body.Close()
		}}}}
		st := state.New(state.MustSchema(state.Limits{ValueBytes: 100}))
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Hi!")}))
		_, err := l.Run(t.Context(), st)
		require.ErrorIs(t, err, state.ErrLimitExceeded, name)
		require.ErrorContains(t, err, "wire: answer not recorded: ", name)
		require.Len(t, p.bodies, 1, "it has been paid for")
	}
}
