package sdks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/wire"
)

// genai goes on with an answer by itself: it sends the request again with a token,
// when Gemini says CONTINUATION and when a stream breaks off behind a checkpoint. The
// State would have two answers of half a text each, or the second half alone. So wire
// refuses the second request, unless the program has the conversation.
func TestGenaiContinuesAnswers(t *testing.T) {
	const (
		ends       = `{"candidates":[{"content":{"role":"model","parts":[{"text":"one "}]},"finishReason":"CONTINUATION","continuationToken":"dG9rZW4="}]}`
		checkpoint = `{"candidates":[{"content":{"role":"model","parts":[{"text":"one "}]},"continuationToken":"dG9rZW4="}]}`
		rest       = `{"candidates":[{"content":{"role":"model","parts":[{"text":"two"}]},"finishReason":"STOP"}]}`
		all        = `{"candidates":[{"content":{"role":"model","parts":[{"text":"one two"}]},"finishReason":"STOP"}]}`
	)
	for _, row := range []struct {
		name       string
		first      string // answer of the server
		automatic  bool
		recordOnly bool
		said       []string // what the State has of the answer
		shown      string   // to the program
		asked      int
		want       string // in the error
		stop       state.Stop
	}{
		{"CONTINUATION", ends, true, false, []string{"one "}, "one ", 1, "AutomaticContinuation", ""},
		{"a stream that breaks off", checkpoint, true, false, []string{"one two"}, "one one two", 2, "", ""}, // Loop asks again
		{"CONTINUATION, and the SDK does not go on", ends, false, false, []string{"one "}, "one ", 1, "", state.StopLength},
		{"the program has the conversation", ends, true, true, nil, "one two", 2, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked++
				answer := row.first
				switch {
				case strings.Contains(string(body), "continuationToken"):
					answer = rest
				case asked > 1:
					answer = all
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\n", answer)
			}))
			defer server.Close()
			client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
				APIKey: apiKey, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
				HTTPClient: &http.Client{Transport: &wire.Transport{RecordOnly: row.recordOnly}},
			})
			require.NoError(t, err)
			st := state.New(nil)
			require.NoError(t, st.UserSays("Count!"))
			shown, contents := "", []*genai.Content(nil)
			if row.recordOnly {
				contents = genai.Text("Count!")
			}
			ask := func(ctx context.Context) error {
				config := &genai.GenerateContentConfig{AutomaticContinuation: &row.automatic}
				for chunk, err := range client.Models.GenerateContentStream(ctx, "m", contents, config) {
					if err != nil {
						return err
					}
					shown += chunk.Text()
				}
				return nil
			}
			if row.recordOnly {
				require.NoError(t, ask(state.NewContext(t.Context(), st)))
			} else {
				l := &loop.Loop{Agents: map[string]loop.Agent{"": {Ask: func(ctx context.Context, _ *loop.Turn) error { return ask(ctx) }}}}
				_, err = l.Run(t.Context(), st)
				var stop *loop.StopError
				switch {
				case row.want != "":
					require.ErrorContains(t, err, row.want)
				case row.stop != "":
					require.ErrorAs(t, err, &stop)
					require.Equal(t, row.stop, stop.Stop)
				default:
					require.NoError(t, err)
				}
			}
			var said []string
			for _, m := range state.Messages.GetOr(st, nil)[1:] {
				said = append(said, m.Text())
			}
			require.Equal(t, row.said, said)
			require.Equal(t, row.shown, shown)
			require.Equal(t, row.asked, asked)
		})
	}
}
