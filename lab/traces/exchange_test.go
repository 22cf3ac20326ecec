package traces

import (
	"strings"
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

const (
	chatBody      = `{"id":"r","object":"chat.completion","created":1700000000,"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`
	responseBody  = `{"id":"r","object":"response","status":"completed","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`
	anthropicBody = `{"id":"r","type":"message","role":"assistant","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`
	geminiBody    = `{"responseId":"r","candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"STOP"}]}`
)

// chatExchange is an exchange with a provider that answers with a message.
func chatExchange(message string, messages ...string) string {
	return `{"api":"openai_chat","status":200,"request":{"model":"m","messages":[` + strings.Join(messages, ",") +
		`]},"response":{"choices":[{"message":` + message + `}]}}`
}

func recording(exchanges ...string) string {
	return `{"exchanges":[` + strings.Join(exchanges, ",") + `]}`
}

// Each row is a body or a stream that nothing but its shape names.
func TestBodiesAndStreams(t *testing.T) {
	for data, kind := range map[string]string{
		chatBody:      "OpenAI chat response",
		responseBody:  "OpenAI Responses response",
		anthropicBody: "Anthropic response",
		geminiBody:    "Gemini response",
		`{"promptFeedback":{"blockReason":"SAFETY"}}`:                           "Gemini response",
		`{"error":{"message":"m","type":"invalid_request_error"}}`:              "OpenAI chat response",
		`{"error":{"code":400,"status":"INVALID_ARGUMENT"}}`:                    "Gemini response",
		`{"type":"error","error":{"type":"overloaded_error"}}`:                  "Anthropic response",
		`[` + geminiBody + `]`:                                                  "Gemini stream",
		`["not JSON",{"type":"response.created","response":{"id":"r"}}]`:        "OpenAI Responses stream",
		`["{\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}"]`:       "OpenAI Responses stream",
		`[{"type":"ping"},{"type":"message_stop"}]`:                             "Anthropic stream",
		`[{"id":"r","choices":[{"index":0,"delta":{"content":"a"}}]},"[DONE]"]`: "OpenAI chat stream",
	} {
		played := PlayFile([]byte(" "+data+"\n"), Options{Verify: true})
		require.NoError(t, played.Err, data)
		require.Empty(t, played.Others, data)
		require.Len(t, played.Kinds, 1, data)
		require.Contains(t, played.Kinds, kind, data)
	}
}

// The state contains the output of a model, but not a body with which a
// provider refused. Such a body does not count as a response that came back equal.
func TestAnswersArePlayed(t *testing.T) {
	for data, want := range map[string]struct{ messages, good int }{
		chatBody: {1, 1}, responseBody: {1, 1}, anthropicBody: {1, 1}, geminiBody: {1, 1}, `[` + geminiBody + `]`: {1, 1},
		`{"error":{"type":"e"}}`: {0, 0},
		recording(`{"api":"openai_chat","status":400,"request":{"messages":[{"role":"user","content":"u"}]},"response":{"error":{"type":"e"}}}`):                          {1, 0},
		recording(`{"api":"openai_chat","status":502,"request":null,"response":"<html>"}`):                                                                                {0, 0},
		recording(`{"api":"gemini_generateContent","status":200,"request":{"contents":[{"role":"user","parts":[{"text":"u"}]}]},"stream":[{"data":` + geminiBody + `}]}`): {2, 1},
	} {
		played := PlayFile([]byte(data), Options{Verify: true})
		require.NoError(t, played.Err, data)
		stats := played.Total()
		require.Equal(t, want.messages, stats.Messages, data)
		require.Equal(t, want.good, stats.Responses.Good+stats.Streams.Good, data)
		require.Equal(t, want.good, stats.Responses.All+stats.Streams.All, data)
	}
}

// A recording of a stream may be broken off, and lines in it may be no JSON. That
// an event is no event of the provider's is an error.
func TestStreamsThatAreNotWhole(t *testing.T) {
	const start, delta = `{"id":"r","choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}`, `{"id":"r","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`
	for _, test := range []struct {
		name, events string
		broken       string
		failed       int
	}{
		{"whole", start + `,` + delta + `,"[DONE]"`, "", 0},
		{"broken off", start, "it broke off", 0},
		{"a line that is not JSON", start + `,"{\"id\":",` + delta + `,"[DONE]"`, "event 1 is not JSON", 0},
		{"a failure", start + `,{"error":{"code":502,"message":"m"}}`, "it reports 502 m", 0},
		{"something else", start + `,[1],` + delta, "", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			played := PlayFile([]byte(`[`+test.events+`]`), Options{})
			stats := played.Kinds["OpenAI chat stream"]
			broken := []string{}
			for _, note := range stats.Notes {
				require.Equal(t, NoteStream, note.Kind)
				broken = append(broken, note.Text)
			}
			require.Equal(t, test.broken, strings.Join(broken, "; "))
			require.Equal(t, len(broken), stats.NotWhole)
			require.Equal(t, test.failed, stats.Failures)
			require.Equal(t, 1, stats.Messages)
			if test.failed > 0 {
				require.ErrorContains(t, played.Err, "$[1]: event 1: provider: OpenAI")
			}
		})
	}
}

func TestErrorsOfExchangesSayWhere(t *testing.T) {
	const user = `{"role":"user","content":"u"}`
	played := PlayFile([]byte(recording(
		chatExchange(`{"role":"assistant","content":"a"}`, user),
		chatExchange(`{"role":"assistant","content":"a"}`, user, `7`),
		`{"api":"openai_chat","status":200,"request":{"messages":[`+user+`]},"response":{"choices":[7]}}`,
		`7`)), Options{Verify: true})
	for _, where := range []string{
		"$.exchanges[1].request: provider: OpenAI: $.messages[1]",
		"$.exchanges[2].response: provider: OpenAI: $.choices[0]",
		"$.exchanges[3]: want object, got number",
	} {
		require.ErrorContains(t, played.Err, where)
	}
	stats := played.Kinds["OpenAI chat exchange"]
	require.Equal(t, Tally{3, 2}, stats.Requests)
	require.Equal(t, Tally{3, 2}, stats.Responses)
	require.Equal(t, 2, stats.Failures)
}

// Behind a name there may be another server. What it answers is named.
func TestAnswersOfAnotherKind(t *testing.T) {
	played := PlayFile([]byte(recording(`{"api":"openai_chat","status":200,"request":{"messages":[{"role":"user","content":"u"}]},"response":{"pathname":"/"}}`)), Options{Verify: true})
	require.NoError(t, played.Err)
	require.Equal(t, []string{"an answer that is not a response of OpenAI chat"}, played.Others)
	stats := played.Total()
	require.Equal(t, 1, stats.Unanswered)
	require.Equal(t, NoteUnanswered, stats.Notes[0].Kind)
	stats.Carriages, stats.Vendors, stats.Notes = nil, nil, nil
	require.Equal(t, Stats{Runs: 1, Entries: 1, Messages: 1, Carried: 3, Unanswered: 1, Requests: Tally{1, 1}, Agents: map[string]int{}}, stats)
}

// A check that never fails is useless: each row breaks something that it must
// find.
func TestChecksOfExchangesFindWhatIsWrong(t *testing.T) {
	orphan := `{"role":"tool","tool_call_id":"9","content":"a"}`
	user := `{"role":"user","content":"u","n":1.0}`
	for _, test := range []struct {
		problem string
		spoil   func(x *exchange)
	}{
		{`$.exchanges[0].request: encoded again: it differs at $.messages[0].n`, func(x *exchange) { x.request = []byte(strings.Replace(string(x.request), "1.0", "1.00", 1)) }},
		{`$.exchanges[0].request: encoded again: it differs at $.temperature`, func(x *exchange) { x.asked.Settings = `{"model":"m","temperature":1}` }},
		{`$.exchanges[0].request: encoded again: it differs at $.messages[1]`, func(x *exchange) { x.asked.Messages = append(x.asked.Messages, x.result.Output...) }},
		{`$.exchanges[0].response: the raw text of the result is not the answer`, func(x *exchange) { x.result.Raw += " " }},
		{`$.exchanges[0].response: encoded for a request: it differs at $[0].content`, func(x *exchange) {
			x.result.Output[0], _ = decodeOne(`{"role":"assistant","content":"b"}`)
		}},
		{`$.exchanges[0].response: encoded for a request: it differs at $[0]`, func(x *exchange) { x.result.Output = nil }},
		{`$.exchanges[0].request: as it was sent: a false finding (m): message 1: orphan-result`, func(x *exchange) {
			x.request = []byte(`{"model":"m","messages":[` + user + `,` + orphan + `]}`)
			x.asked, _ = provider.OpenAI.DecodeRequest(x.request)
		}},
	} {
		t.Run(test.problem, func(t *testing.T) {
			file, err := Read([]byte(recording(chatExchange(`{"role":"assistant","content":"a"}`, user))))
			require.NoError(t, err)
			x := file.Runs[0].exchanges[0]
			test.spoil(x)
			var stats Stats
			var found []string
			for _, err := range x.check(&stats, true) {
				found = append(found, err.Error())
			}
			require.Contains(t, strings.Join(found, "\n"), test.problem)
			if strings.Contains(test.problem, "false") {
				require.Equal(t, 1, stats.False, "as it was, and not again trimmed to its own length")
			}
		})
	}
}

func TestTrimmedLengths(t *testing.T) {
	require.Equal(t, []int{0}, trimLengths(0))
	require.Equal(t, []int{0, 1, 2, 3}, trimLengths(3))
	require.Len(t, trimLengths(trimmedLengths), trimmedLengths+1)
	long := trimLengths(trimmedLengths + 3)
	require.Equal(t, []int{trimmedLengths, trimmedLengths + 1, trimmedLengths + 2, trimmedLengths + 3}, long[trimmedLengths:])
	long = trimLengths(100_000)
	require.Len(t, long, 2*trimmedLengths+1)
	require.Equal(t, 100_000, long[len(long)-1])
}
