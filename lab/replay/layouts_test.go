package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentstate/state/lab/traces"
	"github.com/stretchr/testify/require"
)

const layouts = "testdata/layouts"

// Each row is a folder of recordings in the layout of a project: how it records
// what went over the wire, in small. The numbers are those of the requests, the
// responses and the streams that come back equal.
func TestLayoutsOfProjects(t *testing.T) {
	type bodies struct{ requests, responses, streams int }
	rows := []struct {
		folder, layout string
		bodies         bodies
		vendor, model  string // of an exchange
		others         []string
	}{
		{"activeagent", "VCR for Ruby, base64_string", bodies{1, 0, 0}, "OpenAI", "gpt-4o", nil},
		{"adk-go", "httprr, two calls", bodies{2, 1, 1}, "Google AI", "gemini-2.5-flash", nil},
		{"betamax", "betamax, gzip in base64", bodies{1, 1, 0}, "OpenAI", "gpt-4o-mini", nil},
		{"browser", "HAR", bodies{1, 1, 0}, "Mistral", "mistral-small-latest", nil},
		{"chatlas", "vcrpy, a stream without its last blank line", bodies{1, 0, 1}, "Google AI", "gemini-2.5-flash", nil},
		{"crewai", "vcrpy, an escaped body", bodies{1, 1, 0}, "OpenAI", "gpt-4o-mini", nil},
		{"dd-trace-py", "vcrpy with names that are Python objects; JSON of one exchange", bodies{2, 2, 0}, "Azure", "gpt-4.1-mini",
			[]string{"an HTTP exchange with api.datadoghq.com"}},
		{"ellmer", "VCR for R", bodies{1, 1, 0}, "OpenAI", "gpt-5-mini", nil},
		{"fantasy", "go-vcr", bodies{1, 0, 1}, "Anthropic", "claude-haiku-4-5", nil},
		{"finetuning", "JSONL of requests", bodies{2, 0, 0}, "", "", nil},
		{"inspect_ai", "a log of Inspect", bodies{1, 1, 0}, "OpenAI", "gpt-4o", nil},
		{"langchain", "lists of requests and responses, compressed", bodies{2, 1, 0}, "OpenAI", "gpt-4o-mini", nil},
		{"langchain4j", "WireMock in JSON", bodies{1, 1, 0}, "", "gpt-4o-mini",
			[]string{"an exchange of OpenAI chat with a body in another file"}},
		{"langchaingo", "httprr, a stream in chunks", bodies{1, 0, 1}, "OpenAI", "gpt-4o", nil},
		{"langsmith-sdk", "vcrpy, binary gzip", bodies{1, 1, 0}, "OpenAI", "gpt-3.5-turbo", nil},
		{"litellm", "vcrpy, a block", bodies{1, 1, 0}, "Anthropic", "claude-haiku-4-5", nil},
		{"llama_index", "vcrpy, a server of one's own", bodies{1, 0, 1}, "localhost:8000", "Qwen/Qwen3-4B", nil},
		{"llm", "vcrpy, a stream as a block", bodies{1, 0, 1}, "OpenAI", "gpt-4o-mini", nil},
		{"logfire", "vcrpy, both bodies binary", bodies{1, 1, 0}, "OpenAI", "gpt-5-mini", nil},
		{"magentic", "vcrpy for httpx", bodies{1, 1, 0}, "OpenAI", "gpt-4o", nil},
		{"mastra", "recordings, a stream in pieces", bodies{2, 1, 1}, "OpenAI", "gpt-5-mini", nil},
		{"openai-batch", "the input and the output of a batch", bodies{2, 2, 0}, "", "gpt-4o-mini", nil},
		{"openinference", "nock; an HTTP response", bodies{1, 2, 0}, "Bedrock", "anthropic.claude-3-5-sonnet-20240620-v1:0",
			[]string{"a Bedrock Converse exchange"}},
		{"openllmetry-js", "HAR of Polly.JS, gzip in pieces", bodies{1, 1, 0}, "OpenAI", "gpt-5-mini", []string{"embeddings"}},
		{"opentelemetry-java-instrumentation", "WireMock in YAML documents", bodies{2, 1, 1}, "", "gpt-4o-mini", nil},
		{"opentelemetry-python-contrib", "vcrpy, a refusal", bodies{1, 0, 0}, "Vertex AI", "gemini-2.5-flash", nil},
		{"prism", "a response; server-sent events", bodies{0, 1, 1}, "", "", nil},
		{"pydantic-ai", "vcrpy with parsed bodies", bodies{2, 2, 0}, "Groq", "llama-3.3-70b-versatile", nil},
		{"raix", "VCR for Ruby", bodies{1, 1, 0}, "OpenRouter", "meta-llama/llama-3.3-8b-instruct:free", nil},
		{"ruby-openai", "VCR for Ruby, a stream", bodies{1, 0, 1}, "OpenAI", "gpt-4o", nil},
		{"ruby_llm", "VCR for Ruby, binary", bodies{1, 0, 1}, "Anthropic", "claude-haiku-4-5", nil},
		{"semantic-kernel", "server-sent events in .txt", bodies{0, 0, 1}, "", "", []string{"an Ollama chat exchange"}},
		{"vercel-ai", "a response; JSONL of events", bodies{0, 1, 1}, "", "", nil},
	}
	var tested []string
	for _, row := range rows {
		tested = append(tested, row.folder)
		t.Run(row.folder, func(t *testing.T) {
			r := report{verify: true}
			r.replay([]string{filepath.Join(layouts, row.folder)}, io.Discard)
			require.Empty(t, r.failures)
			require.True(t, r.ok())
			total := r.total()
			for _, tally := range []traces.Tally{total.Requests, total.Responses, total.Streams} {
				require.Equal(t, tally.All, tally.Good)
			}
			require.Equal(t, row.bodies, bodies{total.Requests.Good, total.Responses.Good, total.Streams.Good})
			require.Zero(t, total.NotWhole)
			if row.model == "" {
				require.Empty(t, total.Vendors)
			} else {
				require.Contains(t, slices.Collect(maps.Keys(total.Vendors)), row.vendor)
				require.Contains(t, total.Vendors[row.vendor].Models, row.model)
			}
			var others []string
			for _, other := range r.others {
				others = append(others, other.text)
			}
			require.Equal(t, row.others, others)
		})
	}
	found, err := os.ReadDir(layouts)
	require.NoError(t, err)
	for _, entry := range found {
		require.Contains(t, tested, entry.Name())
	}
}

// What a provider refused is counted apart from its answers, and the report
// says whether Check finds something in the request.
func TestRefusalsOfProjects(t *testing.T) {
	r := report{verify: true}
	r.replay([]string{layouts}, io.Discard)
	total := r.total()
	require.Equal(t, traces.Tally{All: 2, Good: 2}, total.Refused)
	require.Equal(t, 1, total.Unanswered)
	found := map[string]bool{}
	for _, note := range total.Notes {
		if note.Kind == traces.NoteRefused {
			found[note.Who+": "+note.Text] = note.Good
		}
	}
	require.Equal(t, map[string]bool{
		"OpenAI, gpt-4o: invalid_request_error Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (found: orphan-result)": true,
		"Vertex AI, gemini-2.5-flash: INVALID_ARGUMENT Please use a valid role: user, model. (found: role)":                                                                       true,
	}, found)
}
