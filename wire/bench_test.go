package wire_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/wire"
)

// BenchmarkGoal measures the speed goals of this package: what an event of a
// stream costs, with its share of recording the answer.
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
