package wire_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/wire"
)

// BenchmarkGoal measures the speed goals of this package: what an event of a
// stream costs, with its share of recording the answer, and a request with a long
// conversation, beside one of which nothing is known from the request before.
func BenchmarkGoal(b *testing.B) {
	b.Run("wire-event", func(b *testing.B) {
		for n := 100; n <= 10_000; n *= 10 {
			b.Run(fmt.Sprint("subject/n=", n), func(b *testing.B) {
				a := apis[2]
				events := []string{sse(a.events[0]), sse(a.events[1])}
				for len(events) < n-3 {
					events = append(events, sse(a.events[3]))
				}
				for _, event := range a.events[5:] {
					events = append(events, sse(event))
				}
				base := roundTripper(func(req *http.Request) (*http.Response, error) {
					header := http.Header{"Content-Type": {"text/event-stream"}}
					return &http.Response{StatusCode: 200, Header: header, Body: &eventBody{events: events}, Request: req}, nil
				})
				client := &http.Client{Transport: &wire.Transport{Base: base}}
				for b.Loop() {
					st := state.New(nil)
					resp, err := tryPost(client, st, "http://host"+a.path, a.body(true))
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.Copy(io.Discard, resp.Body); err != nil {
						b.Fatal(err)
					}
					resp.Body.Close()
					if r, _ := st.History().Last(); len(r.Raw) < n*len("Hello, ") || len(r.Output) != 1 {
						b.Fatal("the answer is not recorded")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
			})
		}
	})
	b.Run("wire-request", func(b *testing.B) {
		for _, a := range apis {
			for n := 100; n <= 1000; n *= 10 {
				b.Run(fmt.Sprintf("subject/%s/n=%d", a.format, n), func(b *testing.B) { benchmarkRequest(b, a, n, func(*state.State) {}) })
				b.Run(fmt.Sprintf("baseline/%s/n=%d", a.format, n), func(b *testing.B) {
					benchmarkRequest(b, a, n, func(st *state.State) {
						state.Inside(internal.Key{}).Encoded(st).Store((*provider.Encoded)(nil))
					})
				})
			}
		}
	})
}

// benchmarkRequest measures requests with a conversation of n messages of which
// the last are new: what the user says next, after an answer. The earlier ones
// were in the request before, of which forget drops what is known.
func benchmarkRequest(b *testing.B, a api, n int, forget func(*state.State)) {
	const rounds = 5 // requests of one State: its conversation grows
	for b.Loop() {
		b.StopTimer()
		st := state.New(nil)
		if err := state.Messages.Set(st, longConversation(b, a, n-8)); err != nil {
			b.Fatal(err)
		}
		sent, answers := 0, 0
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			sent, answers = int(req.ContentLength), answers+1
			whole := strings.ReplaceAll(a.whole, "msg_1", fmt.Sprint("msg_new_", answers)) // no two items have one id
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(whole)), Request: req}, nil
		})
		client := &http.Client{Transport: &wire.Transport{Base: base}}
		ask := func() {
			forget(st)
			if err := state.Messages.Set(st, []state.Message{state.UserText("And then?")}); err != nil {
				b.Fatal(err)
			}
			resp, err := tryPost(client, st, "http://host"+a.path, a.body(false))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				b.Fatal(err)
			}
			resp.Body.Close()
		}
		ask()
		b.StartTimer()
		for range rounds {
			ask()
		}
		b.StopTimer()
		if got := len(state.Messages.GetOr(st, nil)); sent < 40*n || got != n+2*rounds-6 {
			b.Fatal("the conversation is not sent: ", sent, got)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rounds), "ns/request")
}

// longConversation returns n messages as an API has sent them, or takes them: what
// the user asks, a call of a tool, its result and an answer, again and again.
func longConversation(b testing.TB, a api, n int) []state.Message {
	turn := map[*provider.Format]string{
		provider.OpenAI: `{"role":"user","content":"What is the weather in town %[1]d, and what should I wear there?"},` +
			`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%[1]d","type":"function","function":{"name":"weather","arguments":"{\"town\":%[1]d}"}}]},` +
			`{"role":"tool","tool_call_id":"call_%[1]d","content":"It rains in town %[1]d, at 11 degrees, with some wind from the west."},` +
			`{"role":"assistant","content":"In town %[1]d it rains. A coat and good shoes are what you need today."}`,
		provider.OpenAIResponses: `{"type":"message","role":"user","content":[{"type":"input_text","text":"What is the weather in town %[1]d, and what should I wear there?"}]},` +
			`{"type":"function_call","id":"fc_%[1]d","call_id":"call_%[1]d","name":"weather","arguments":"{\"town\":%[1]d}","status":"completed"},` +
			`{"type":"function_call_output","call_id":"call_%[1]d","output":"It rains in town %[1]d, at 11 degrees, with some wind from the west."},` +
			`{"type":"message","id":"msg_%[1]d","role":"assistant","status":"completed","content":[{"type":"output_text","text":"In town %[1]d it rains. A coat and good shoes are what you need today.","annotations":[]}]}`,
		provider.Anthropic: `{"role":"user","content":"What is the weather in town %[1]d, and what should I wear there?"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%[1]d","name":"weather","input":{"town":%[1]d}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%[1]d","content":"It rains in town %[1]d, at 11 degrees, with some wind from the west."}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"In town %[1]d it rains. A coat and good shoes are what you need today."}]}`,
		provider.Gemini: `{"role":"user","parts":[{"text":"What is the weather in town %[1]d, and what should I wear there?"}]},` +
			`{"role":"model","parts":[{"functionCall":{"name":"weather","args":{"town":%[1]d}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"name":"weather","response":{"output":"It rains in town %[1]d, at 11 degrees, with some wind from the west."}}}]},` +
			`{"role":"model","parts":[{"text":"In town %[1]d it rains. A coat and good shoes are what you need today."}]}`,
	}[a.format]
	member := map[*provider.Format]string{provider.OpenAIResponses: "input", provider.Gemini: "contents"}[a.format]
	if member == "" {
		member = "messages"
	}
	var turns []string
	for i := range n / 4 {
		turns = append(turns, fmt.Sprintf(turn, i))
	}
	request, err := a.format.DecodeRequest([]byte(`{"` + member + `":[` + strings.Join(turns, ",") + `]}`))
	if err != nil {
		b.Fatal(err)
	}
	return request.Messages[:n]
}

// eventBody is a body of which each Read returns an event.
type eventBody struct {
	events []string
	next   strings.Reader
}

func (e *eventBody) Read(p []byte) (int, error) {
	if e.next.Len() == 0 {
		if len(e.events) == 0 {
			return 0, io.EOF
		}
		e.next.Reset(e.events[0])
		e.events = e.events[1:]
	}
	return e.next.Read(p)
}

func (e *eventBody) Close() error { return nil }
