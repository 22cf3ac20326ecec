package provider_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// message decodes a message.
func message(t *testing.T, text string) state.Message {
	t.Helper()
	m, err := state.DecodeMessage([]byte(text))
	require.NoError(t, err)
	return m
}

// messagesOf decodes an array of messages.
func messagesOf(t *testing.T, text string) []state.Message {
	t.Helper()
	msgs, err := state.DecodeMessages([]byte(text))
	require.NoError(t, err)
	return msgs
}

// rawMessages returns the messages as text.
func rawMessages(msgs []state.Message) []string {
	raws := make([]string, len(msgs))
	for i, m := range msgs {
		raws[i] = string(m.Raw())
	}
	return raws
}

// roundTrip requires that a request decodes and is encoded as it was.
func roundTrip(t *testing.T, f *provider.Format, body []byte) provider.Request {
	t.Helper()
	request, err := f.DecodeRequest(body)
	require.NoError(t, err)
	requireDecodable(t, request.Messages)
	encoded, omitted, err := f.EncodeRequest(request)
	require.NoError(t, err)
	require.Empty(t, omitted)
	jsonEqual(t, body, encoded)
	return request
}

// requireEncoded requires that messages are encoded as a body, which is decoded
// and encoded the same, and that what is not in it is reported.
func requireEncoded(t *testing.T, f *provider.Format, msgs []state.Message, body string, omitted []string) {
	t.Helper()
	encoded, left, err := f.EncodeRequest(provider.Request{Messages: msgs})
	require.NoError(t, err)
	jsonEqual(t, []byte(body), encoded)
	var told []string
	for _, o := range left {
		told = append(told, o.String())
	}
	require.Equal(t, omitted, told)
	roundTrip(t, f, encoded)
}

// notAlone are members of parts that stand for calls and results, and of parts
// that no format has.
var notAlone = regexp.MustCompile(`"(new|tool_use_id|id|functionCall|functionResponse)":`)

// A part in the words of a format, in a message that a program made, is sent as
// it is.
func TestOwnWordsPassUnchanged(t *testing.T) {
	for _, target := range targets {
		t.Run(target.format.String(), func(t *testing.T) {
			text, err := os.ReadFile("testdata/bodies/" + target.api + ".json")
			require.NoError(t, err)
			type entry struct {
				Role           string
				Content, Parts state.JSON
			}
			var said struct {
				Exchanges []struct {
					Request struct{ Messages, Input, Contents []entry }
				}
			}
			require.NoError(t, state.JSON(text).Decode(&said))
			request, passed := said.Exchanges[0].Request, 0
			for _, e := range slices.Concat(request.Messages, request.Input, request.Contents) {
				var parts []state.JSON
				if e.Role != "" { // without one it is an item
					_ = (e.Content + e.Parts).Decode(&parts) // of a text, none
				}
				if e.Role = strings.Replace(e.Role, "model", "assistant", 1); e.Role != "assistant" {
					e.Role = "user"
				}
				for _, part := range parts {
					if notAlone.MatchString(string(part)) {
						continue
					}
					passed++
					part = part[:len(part)-1] + `,"x":{"y":1.0}}`
					own := message(t, `{"type":"text","role":"`+e.Role+`","content":[`+string(part)+`]}`)
					body, omitted, err := target.format.EncodeRequest(provider.Request{Messages: []state.Message{own}})
					require.NoError(t, err)
					require.Empty(t, omitted, part)
					require.Contains(t, string(body), string(part))
				}
			}
			require.Greater(t, passed, 5)
		})
	}
}

// anything are the pieces of random bodies. An entry is an object with one of
// heads, and one of contents, in which PARTS are any of parts.
var anything = []struct {
	format                                *provider.Format
	member                                string
	systems, heads, more, contents, parts []string
}{
	{provider.Anthropic, "messages",
		[]string{``, `"system":"a",`, `"system":[],`, `"system":[{"type":"text","text":"a"},{"type":"new"}],`},
		[]string{`"role":"user",`, `"role":"assistant",`, `"role":"system",`, `"role":"developer",`, `"role":"?",`},
		[]string{``, ``, `"x":1,`},
		[]string{`"content":[PARTS]`, `"content":[PARTS]`, `"content":""`, `"content":"a"`, `"content":null`, `"content":[{}]`},
		[]string{`{"type":"text","text":"a"}`, `{"type":"text","text":""}`, `{"type":"thinking","thinking":"a","signature":"b"}`, `{"type":"image","source":{}}`,
			`{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"type":"tool_use","id":"a","name":"f","input":[1.0],"x":null}`, `{"type":"tool_use"}`,
			`{"type":"tool_result","tool_use_id":"a","content":"1"}`, `{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}],"is_error":true}`,
			`{"type":"tool_result","content":{}}`}},
	{provider.Gemini, "contents",
		[]string{``, `"systemInstruction":null,`, `"systemInstruction":"s",`, `"system_instruction":"",`, `"systemInstruction":{"parts":[{"text":"a"},{}]},`,
			`"systemInstruction":{"x":1,"parts":[{"text":""}]},"system_instruction":{"role":"model","parts":[{"type":"x"}]},`},
		[]string{`"role":"user",`, `"role":"model",`, ``, `"role":null,`, `"role":"function",`, `"role":"system",`, `"role":"assistant",`, `"role":"",`, `"role":"tool_result",`},
		[]string{``, `"x":1,`, `"in":"contents","joined":true,`},
		[]string{`"parts":[PARTS]`},
		[]string{`{"text":""}`, `{"text":"a"}`, `{"text":"b","thought":true}`, `{"text":"","thoughtSignature":"x"}`, `{}`, `{"type":"text"}`,
			`{"functionCall":{"name":"f","args":{}}}`, `{"function_call":{"id":"1","name":"g"},"thought_signature":"x"}`, `{"functionCall":{}}`, `{"functionCall":null}`,
			`{"functionResponse":{"name":"f","response":{}}}`, `{"function_response":{"id":"1","response":"x"}}`, `{"functionResponse":{},"function_response":{"name":"z"}}`,
			`{"functionCall":{"name":"z","args":[1]},"functionResponse":{"name":"f"},"text":"q"}`}},
}

// Parts in any order, in any entries, are encoded as they were.
func TestAnyRequest(t *testing.T) {
	one := func(r *rand.Rand, of []string) string { return of[r.IntN(len(of))] }
	some := func(r *rand.Rand, most int, text func() string) string {
		list := make([]string, r.IntN(most+1))
		for i := range list {
			list[i] = text()
		}
		return strings.Join(list, ",")
	}
	seed := effort.LogSeed(t)
	for _, of := range anything {
		for i := range effort.Runs(700) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			entries := some(r, 5, func() string {
				parts := some(r, 4, func() string { return one(r, of.parts) })
				return `{` + one(r, of.heads) + one(r, of.more) + strings.Replace(one(r, of.contents), "PARTS", parts, 1) + `}`
			})
			roundTrip(t, of.format, []byte(`{`+one(r, of.systems)+`"`+of.member+`":[`+entries+`]}`))
		}
	}
}
