package traces

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

const (
	hiMessage  = `{"role":"user","content":"hi"}`
	hiRequest  = `{"model":"m","messages":[` + hiMessage + `]}`
	chunkStart = `{"id":"r","choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]}`
	chunkEnd   = `{"id":"r","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`
	chunkText  = "data: " + chunkStart + "\n\ndata: " + chunkEnd + "\n\ndata: [DONE]\n\n"
)

// quoted returns a text as JSON.
func quoted(text string) string { return string(jsontext.AppendQuote(nil, text)) }

// A recording of which nothing was read is never good: each row is an exchange
// whose stream holds nothing that could be read.
func TestNothingIsGoodThatWasNotRead(t *testing.T) {
	for _, test := range []struct{ name, stream, problem, other string }{
		{"a text without events", `"hello"`, "$.exchanges[0].stream: want server-sent events, got another text", ""},
		{"a number", `7`, "$.exchanges[0].stream: want array or string, got number", ""},
		{"events of nothing", `[{"a":1},{"b":2}]`, "$.exchanges[0].stream: none of its 2 events is one of OpenAI chat", ""},
		{"nothing", `[]`, "", "a stream without events"},
	} {
		t.Run(test.name, func(t *testing.T) {
			played := PlayFile([]byte(recording(`{"api":"openai_chat","status":200,"request":`+hiRequest+`,"stream":`+test.stream+`}`)), Options{Verify: true})
			total := played.Total()
			require.Zero(t, total.Streams.Good)
			if test.problem != "" {
				require.ErrorContains(t, played.Err, test.problem)
				return
			}
			require.NoError(t, played.Err)
			require.Equal(t, []string{test.other}, played.Others)
		})
	}
}

// Each row is one exchange in a form that the envelope allows.
func TestEnvelope(t *testing.T) {
	response := `{"choices":[{"message":{"role":"assistant","content":"a"}}]}`
	for _, test := range []struct {
		name, exchange string
		streams        int
	}{
		{"bodies", `"api":"openai_chat","status":200,"request":` + hiRequest + `,"response":` + response, 0},
		{"bodies as strings", `"api":"openai_chat","status":200,"request":` + quoted(hiRequest) + `,"response":` + quoted(response), 0},
		{"no status", `"api":"openai_chat","request":` + hiRequest + `,"response":` + response, 0},
		{"a url", `"url":"https://api.openai.com/v1/chat/completions","status":200,"request":` + hiRequest + `,"response":` + response, 0},
		{"only bodies", `"request":` + hiRequest + `,"response":` + response, 0},
		{"events", `"api":"openai_chat","request":` + hiRequest + `,"stream":[{"event":"e","data":` + chunkStart + `},{"data":` + quoted(chunkEnd) + `},{"data":"[DONE]"}]`, 1},
		{"bare events", `"api":"openai_chat","request":` + hiRequest + `,"stream":[` + chunkStart + `,` + chunkEnd + `,"[DONE]"]`, 1},
		{"the text of a stream", `"api":"openai_chat","request":` + hiRequest + `,"stream":` + quoted(chunkText), 1},
		{"its last blank line stripped", `"api":"openai_chat","request":` + hiRequest + `,"stream":` + quoted(strings.TrimSpace(chunkText)), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			played := PlayFile([]byte(recording(`{`+test.exchange+`}`)), Options{Verify: true})
			require.NoError(t, played.Err)
			require.Empty(t, played.Others)
			total := played.Total()
			require.Equal(t, Tally{1, 1}, total.Requests)
			require.Equal(t, Tally{1 - test.streams, 1 - test.streams}, total.Responses)
			require.Equal(t, Tally{test.streams, test.streams}, total.Streams)
			require.Equal(t, 2, total.Messages)
			require.Zero(t, total.NotWhole)
			require.Positive(t, total.Trims, "the provider accepted the request")
		})
	}
}

// Each row is a request or a conversation that nothing but its shape names.
func TestRequestsAndConversations(t *testing.T) {
	for data, kind := range map[string]string{
		hiRequest: "OpenAI chat request",
		`{"model":"claude-x","max_tokens":9,"messages":[` + hiMessage + `]}`:               "Anthropic request",
		`{"model":"claude-x","max_tokens":9,"messages":[{"role":"system","content":"s"}]}`: "OpenAI chat request",
		`{"model":"m","system":"s","messages":[` + hiMessage + `]}`:                        "Anthropic request",
		`{"messages":[` + hiMessage + `],"tools":[{"name":"f","input_schema":{}}]}`:        "Anthropic request",
		`{"model":"m","input":[` + hiMessage + `]}`:                                        "OpenAI Responses request",
		`{"model":"m","input":"hi","instructions":"s"}`:                                    "OpenAI Responses request",
		`{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`:                           "Gemini request",
		`[` + hiMessage + `]`: "OpenAI chat messages",
		`[` + hiMessage + `,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f"}]}]`: "Anthropic messages",
		`[` + hiMessage + `,{"type":"function_call_output","call_id":"1","output":"x"}]`:               "OpenAI Responses messages",
		`[{"role":"user","parts":[{"text":"hi"}]}]`:                                                    "Gemini messages",
		hiMessage + "\n\n" + `{"role":"assistant","content":"a"}` + "\n":                               "OpenAI chat messages",
		hiRequest + "\n" + hiRequest:                                                                   "OpenAI chat request",
		chunkStart + "\n" + chunkEnd + "\n\"[DONE]\"\n":                                                "OpenAI chat stream",
		chunkText: "OpenAI chat stream",
		"\ufeff" + strings.ReplaceAll(chunkText, "\n", "\r\n"):                           "OpenAI chat stream",
		`[` + chatBody + `,` + chatBody + `]`:                                            "OpenAI chat response",
		`{"request":` + hiRequest + `,"response":` + chatBody + `}`:                      "OpenAI chat exchange",
		`[{"url":"/v1/responses","request":{"model":"m","input":"hi"},"response":null}]`: "OpenAI Responses exchange",
	} {
		played := PlayFile([]byte(data), Options{Verify: true})
		require.NoError(t, played.Err, data)
		require.Empty(t, played.Others, data)
		require.Len(t, played.Kinds, 1, data)
		require.Contains(t, played.Kinds, kind, data)
	}
}

// A conversation of which the file does not say that a provider took it has
// findings, but none of them is false.
func TestFindingsInConversations(t *testing.T) {
	played := PlayFile([]byte(`[`+hiMessage+`,{"role":"tool","tool_call_id":"1","content":"x"}]`), Options{Verify: true})
	require.NoError(t, played.Err)
	total := played.Total()
	require.Zero(t, total.False)
	require.Equal(t, []Note{{Kind: NoteFinding, Path: "$", Text: `message 1: orphan-result: call "1" of ""`}}, total.Notes)
}

// Each row is an answer that is not a model's, and what becomes of the request.
func TestRefusals(t *testing.T) {
	const orphan = `{"model":"m","messages":[` + hiMessage + `,{"role":"tool","tool_call_id":"1","content":"x"}]}`
	const broken = `{"model":"m","messages":["hi"]}`
	for _, test := range []struct {
		name, request, answer string
		refused               Tally
		unanswered            int
		note                  string
	}{
		{"foreseen", orphan, `"status":400,"response":{"error":{"type":"invalid_request_error","message":"no call"}}`, Tally{1, 1}, 0, "invalid_request_error no call (found: orphan-result)"},
		{"not foreseen", hiRequest, `"status":400,"response":{"error":{"type":"invalid_request_error","message":"no"}}`, Tally{1, 0}, 0, "invalid_request_error no"},
		{"not decodable either", broken, `"status":422,"response":{"detail":"no"}`, Tally{1, 1}, 0, `{"detail":"no"} (found: not decodable)`},
		{"not JSON", hiRequest, `"status":400,"response":"<html>\n no"`, Tally{1, 0}, 0, "<html> no"},
		{"an error without a status", orphan, `"response":{"error":{"type":"invalid_request_error","message":"no"}}`, Tally{1, 1}, 0, "invalid_request_error no (found: orphan-result)"},
		{"too often", orphan, `"status":429,"response":{"error":{"type":"rate_limit","message":"slow"}}`, Tally{}, 1, "rate_limit slow"},
		{"an error in a stream", hiRequest, `"status":200,"stream":[{"error":{"type":"server_error","message":"m"}}]`, Tally{}, 1, "server_error m"},
		{"no key", hiRequest, `"status":401,"response":{"error":{"type":"auth","message":"key"}}`, Tally{}, 1, "auth key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			played := PlayFile([]byte(recording(`{"api":"openai_chat","vendor":"v","request":`+test.request+`,`+test.answer+`}`)), Options{Verify: true})
			require.NoError(t, played.Err)
			total := played.Total()
			require.Equal(t, test.refused, total.Refused)
			require.Equal(t, test.refused, total.Vendors["v"].Refused)
			require.Equal(t, test.unanswered, total.Unanswered)
			require.Zero(t, total.Responses.All+total.Streams.All, "there is no answer of a model")
			require.Equal(t, test.note, total.Notes[0].Text)
			require.Equal(t, "v, m", total.Notes[0].Who)
		})
	}
}

// What a carry changes and leaves out is counted by kind.
func TestCarriages(t *testing.T) {
	const request = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"1","name":"f","input":{}}]}]}`
	played := PlayFile([]byte(recording(`{"api":"anthropic_messages","status":200,"request":`+request+`,"response":`+anthropicBody+`}`)), Options{Verify: true})
	total := played.Total()
	to := total.Carriages[Way{"Anthropic", "OpenAI chat"}]
	require.Equal(t, 2, to.All, "with and without the answer")
	require.Equal(t, 2, to.Changed)
	require.Positive(t, to.Changes["unanswered-call"])
	require.Equal(t, 1, to.Cut)
	require.Equal(t, 1, to.Omissions["part of type thinking"])
	require.Zero(t, to.Lost)
	total.Add(played.Total())
	require.Equal(t, 4, total.Carriages[Way{"Anthropic", "OpenAI chat"}].All)
}

// A user's message of which nothing is left is counted.
func TestLostMessagesAreCounted(t *testing.T) {
	file, err := Read([]byte(recording(`{"api":"anthropic_messages","request":{"messages":[{"role":"user","content":[{"type":"unheard_of"}]}]}}`)))
	require.NoError(t, err)
	m := file.Runs[0].exchanges[0].asked.Messages[0]
	require.False(t, lost(m, anthropic))
	body, omitted, err := openAIChat.format.EncodeRequest(provider.Request{Messages: []state.Message{m}})
	require.NoError(t, err)
	require.NotEmpty(t, omitted)
	require.Equal(t, string(body) == `{"messages":[]}`, lost(m, openAIChat))
	require.False(t, lost(state.UserText("hi"), openAIChat))
}

// The text of a stream must give what its events give.
func TestStreamTextIsChecked(t *testing.T) {
	for problem, spoil := range map[string]func(x *exchange){
		"$.exchanges[0].stream: the text of the stream gives another result than its events": func(x *exchange) {
			x.streamText = bytes.Replace(x.streamText, []byte(`"b"`), []byte(`"c"`), 1)
		},
		"$.exchanges[0].stream: the raw text of the result is not the answer": func(x *exchange) { x.stream = x.stream[1:] },
	} {
		file, err := Read([]byte(recording(`{"api":"openai_chat","request":` + hiRequest + `,"stream":` + quoted(chunkText) + `}`)))
		require.NoError(t, err)
		x := file.Runs[0].exchanges[0]
		require.Empty(t, x.check(&Stats{}, true))
		spoil(x)
		require.ErrorContains(t, errors.Join(x.check(&Stats{}, true)...), problem)
	}
}

func TestBrokenFilesSayWhere(t *testing.T) {
	for _, test := range []struct{ name, data, problem string }{
		{"JSONL", hiRequest + "\n" + hiRequest + "\n{\"model\":\n", "line 3: not JSON"},
		{"an exchange", `{"exchanges":[7]}`, "$.exchanges[0]: want object, got number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read([]byte(test.data))
			require.ErrorContains(t, err, test.problem)
		})
	}
}

func TestSplitEvents(t *testing.T) {
	for text, want := range map[string]string{
		"data: a\n\ndata:b\n\n":          "a|b",
		"data: a\r\ndata: b\r\n\r\n":     "a\nb",
		"event: e\ndata: a\rid: 1\r\r":   "a",
		": comment\n\nretry: 1\n\ndata:": "",
		"data: a":                        "a",
		`[{"a":1},{"b":2}]`:              `{"a":1}|{"b":2}`,
	} {
		require.Equal(t, want, string(bytes.Join(splitEvents([]byte(text)), []byte("|"))), text)
	}
	require.False(t, isEventStream([]byte("id: 5\nname: x\n")), "it is another text")
	require.False(t, isEventStream([]byte(": only a comment\n")))
}
