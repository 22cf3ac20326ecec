package sdks

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/wire"
)

var update = flag.Bool("update", false, "write the table of lab/reports/sdks.md")

const report = "../reports/sdks.md"

// modules are those of the SDKs, by the first word of their names.
var modules = map[string]string{
	"openai-go": "github.com/openai/openai-go/v3", "anthropic-sdk-go": "github.com/anthropics/anthropic-sdk-go", "genai": "google.golang.org/genai",
	"go-openai": "github.com/sashabaranov/go-openai", "langchaingo": "github.com/tmc/langchaingo",
}

// unknownEvents are events of a type that no SDK knows, and unknownParts such parts of
// an answer, by API.
var (
	unknownEvents = map[string]string{
		"chat": `{"object":"chat.future","future":1}`, "responses": `{"type":"response.future","future":1}`,
		"anthropic": `{"type":"future","future":1}`, "gemini": `{"future":1}`,
	}
	unknownParts = map[string]string{
		"chat":      `{"id":"resp_1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"future":{"n":1}},"finish_reason":null}]}`,
		"responses": `{"type":"response.output_item.done","output_index":9,"item":{"type":"future","id":"f_1"}}`,
		"anthropic": `{"type":"content_block_start","index":9,"content_block":{"type":"future","n":1}}`,
		"gemini":    `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"future":{"n":1}}]}}],"responseId":"resp_1"}`,
	}
)

// troubles are what a server does, and how it answers the n-th request by that.
var troubles = []struct {
	name     string
	streamed bool
	answer   func(w http.ResponseWriter, api string, n int64, a answer)
}{
	{"status 503, once", false, func(w http.ResponseWriter, api string, n int64, a answer) {
		if n == 1 {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, render[api].whole(a))
	}},
	{"the body of a whole answer breaks off, once", false, func(w http.ResponseWriter, api string, n int64, a answer) {
		whole := render[api].whole(a)
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		if n == 1 {
			whole = whole[:len(whole)/2]
		}
		io.WriteString(w, whole)
	}},
	{"a stream ends too early, in an orderly way", true, func(w http.ResponseWriter, api string, _ int64, a answer) {
		io.WriteString(w, strings.Join(render[api].events(a)[:1], ""))
	}},
	{"a stream breaks off", true, func(w http.ResponseWriter, api string, _ int64, a answer) {
		io.WriteString(w, strings.Join(render[api].events(a)[:1], ""))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}},
	{"an event of an unknown type", true, func(w http.ResponseWriter, api string, _ int64, a answer) {
		events := render[api].events(a)
		io.WriteString(w, events[0]+data("%s", unknownEvents[api])+strings.Join(events[1:], ""))
	}},
	{"an unknown part of an answer", true, func(w http.ResponseWriter, api string, _ int64, a answer) {
		events := render[api].events(a)
		io.WriteString(w, events[0]+data("%s", unknownParts[api])+strings.Join(events[1:], ""))
	}},
	{"an unknown event whose data is no JSON", true, func(w http.ResponseWriter, api string, _ int64, a answer) {
		events := render[api].events(a)
		io.WriteString(w, events[0]+"event: keepalive\n"+data("now")+strings.Join(events[1:], ""))
	}},
	{"`\"error\":null` in each event", true, func(w http.ResponseWriter, api string, _ int64, a answer) {
		for _, event := range render[api].events(a) { // SDKs close the body at the first one
			io.WriteString(w, strings.Replace(event, "data: {", `data: {"error":null,`, 1))
			w.(http.Flusher).Flush()
		}
	}},
}

// The table of the report says what the SDKs do, of the versions of go.mod. Each answer
// that an SDK gets through wire is recorded once. So is one that is whole and that the
// SDK cannot read.
func TestTheTableOfTheReport(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	head := []string{"| what the server does |", "|---|"}
	for _, s := range sdks {
		name, rest, _ := strings.Cut(s.name, " ")
		version := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(modules[name]) + ` v(\S+)`).FindSubmatch(mod)
		require.NotNil(t, version, name)
		head[0] += " " + strings.TrimSpace(fmt.Sprintf("%s %s %s", name, version[1], rest)) + " |"
		head[1] += "---|"
	}
	table := head
	for _, trouble := range troubles {
		row := "| " + trouble.name + " |"
		for _, s := range sdks {
			ask := func(client *http.Client, said string, st *state.State) (cell string, failed bool) {
				var n atomic.Int64
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[trouble.streamed])
					trouble.answer(w, s.api, n.Add(1), answer{id: fmt.Sprint("resp_", n.Load()), text: "Found it.", results: 1})
				}))
				defer server.Close()
				whole, streamed := s.open(t, server.URL, client)
				model := whole
				if trouble.streamed {
					model = streamed
				}
				ctx := t.Context()
				if st != nil {
					ctx = state.NewContext(ctx, st)
				}
				err := model(ctx, said, never)
				cell = map[bool]string{true: "an answer", false: "an error"}[err == nil]
				if n.Load() > 1 {
					cell += fmt.Sprintf(", %d POSTs", n.Load())
				}
				return cell, err != nil
			}
			alone, _ := ask(&http.Client{Transport: unpooled(t)}, "Where is #1?", nil)
			st := state.New(nil)
			require.NoError(t, st.UserSays("Where is #1?"))
			through, failed := ask(&http.Client{Transport: &wire.Transport{Base: unpooled(t)}}, "", st)
			texts := slices.DeleteFunc(state.Messages.GetOr(st, nil), func(m state.Message) bool { return m.Role() != "assistant" || m.Text() == "" })
			require.Len(t, texts, st.History().Len(), "%s: %s", s.name, trouble.name)
			if !failed || len(texts) > 0 {
				require.Len(t, texts, 1, "%s: %s", s.name, trouble.name)
			}
			if through != alone {
				alone += "; **" + through + "**"
			}
			row += " " + alone + " |"
		}
		table = append(table, row)
	}
	written, err := os.ReadFile(report)
	require.NoError(t, err)
	old := regexp.MustCompile(`(?m)^\| what the server does \|(.*\n)(\|.*\n)+`)
	if *update {
		written = old.ReplaceAllLiteral(written, []byte(strings.Join(table, "\n")+"\n"))
		require.NoError(t, os.WriteFile(report, written, 0o644))
	}
	require.Equal(t, strings.Join(table, "\n")+"\n", string(old.Find(written)), "run go test -run TestTheTableOfTheReport -update, and read what has changed")
}
