package provider_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

type (
	jsonObject = map[string]any
	jsonArray  = []any
)

// phrases are what can be said in a format. An @ is a text that is nowhere
// else, ID the id of a call, DATA base64 that is nowhere else.
var phrases = map[*provider.Format]struct {
	member                    string // with the entries
	begin                     []string
	user, assistant, calls    []string // entries, or several of them
	userParts, assistantParts []string // for PARTS
}{
	provider.OpenAI: {"messages",
		[]string{`{"role":"system","content":"@"}`, `{"role":"developer","name":"@","content":[{"type":"text","text":"@","cache_control":{"type":"@"}}]}`},
		[]string{`{"role":"user","content":"@"}`, `{"role":"user","name":"@","content":[PARTS]}`},
		[]string{`{"role":"assistant","content":"@","reasoning_content":"@"}`, `{"role":"assistant","content":[PARTS],"reasoning_details":[{"type":"reasoning.text","text":"@"}]}`,
			`{"role":"assistant","content":null,"refusal":"@","annotations":[{"type":"@"}]}`},
		[]string{`{"role":"assistant","content":null,"reasoning":"@","tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"{\"a\":\"@\"}"}}]},{"role":"tool","tool_call_id":"ID","content":"@"}`,
			`{"role":"assistant","content":"@","tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"null"},"extra_content":{"s":"@"}},{"id":"IDb","type":"function","function":{"name":"g","arguments":"{}","strict":"@"}}]},` +
				`{"role":"tool","tool_call_id":"IDb","content":[{"type":"text","text":"@"}]},{"role":"tool","tool_call_id":"ID","name":"f","content":"[{\"type\":\"text\",\"score\":\"@\"}]"}`,
			`{"role":"assistant","content":"","tool_calls":[{"id":"ID","type":"custom","custom":{"name":"f","input":"@"}}]},{"role":"tool","tool_call_id":"ID","content":"@"}`},
		[]string{`{"type":"text","text":"@"}`, `{"type":"text","text":"@","cache_control":{"type":"@"}}`, `{"type":"image_url","image_url":{"url":"https://e.org/@.png","detail":"@"}}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,DATA"}}`,
			`{"type":"input_audio","input_audio":{"data":"DATA","format":"wav"}}`, `{"type":"file","file":{"filename":"@.pdf","file_data":"data:application/pdf;base64,DATA"}}`, `{"type":"file","file":{"file_id":"@"}}`,
			`{"type":"document_url","document_url":"https://e.org/@.pdf"}`, `{"type":"new","new":"@"}`},
		[]string{`{"type":"text","text":"@"}`, `{"type":"refusal","refusal":"@"}`, `{"type":"new","new":"@"}`},
	},
	provider.OpenAIResponses: {"input",
		[]string{`{"role":"system","content":"@"}`, `{"type":"message","role":"developer","content":[{"type":"input_text","text":"@"}]}`},
		[]string{`{"role":"user","content":"@"}`, `{"type":"message","role":"user","content":[PARTS],"phase":"@"}`},
		[]string{`{"type":"reasoning","summary":[{"type":"summary_text","text":"@"}],"encrypted_content":"@"},{"type":"message","role":"assistant","content":[PARTS]}`, `{"role":"assistant","content":"@"}`,
			`{"type":"web_search_call","status":"completed","action":{"query":"@"}},{"role":"assistant","content":"@"}`},
		[]string{`{"type":"function_call","call_id":"ID","name":"f","arguments":"{\"a\":\"@\"}","namespace":"@"},{"type":"function_call_output","call_id":"ID","output":"@"}`,
			`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"@"}]},{"type":"function_call","call_id":"ID","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"IDb","name":"g","input":"@"},` +
				`{"type":"custom_tool_call_output","call_id":"IDb","output":"@"},{"type":"function_call_output","call_id":"ID","output":[{"type":"input_text","text":"@"},{"type":"input_image","image_url":"data:image/png;base64,DATA","detail":"@"}]}`},
		[]string{`{"type":"input_text","text":"@"}`, `{"type":"input_image","image_url":"https://e.org/@.png","detail":"@"}`, `{"type":"input_image","file_id":"@"}`, `{"type":"input_file","file_url":"https://e.org/@.pdf"}`,
			`{"type":"input_file","filename":"@.pdf","file_data":"data:application/pdf;base64,DATA"}`, `{"type":"new","new":"@"}`},
		[]string{`{"type":"output_text","text":"@","annotations":[{"type":"url_citation","url":"@"}]}`, `{"type":"refusal","refusal":"@"}`, `{"type":"new","new":"@"}`},
	},
	provider.Anthropic: {"messages",
		nil,
		[]string{`{"role":"user","content":"@"}`, `{"role":"user","content":[PARTS]}`},
		[]string{`{"role":"assistant","content":"@"}`, `{"role":"assistant","content":[PARTS]}`},
		[]string{`{"role":"assistant","content":[PARTS,{"type":"tool_use","id":"ID","name":"f","input":{"a":"@"},"cache_control":{"type":"@"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"@","cache_control":{"type":"@"}},PARTS]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"f","input":{}},{"type":"tool_use","id":"IDb","name":"g","input":{"a":"@"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","is_error":true,"content":[{"type":"text","text":"@"},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"DATA"},"cache_control":{"type":"@"}}]},{"type":"tool_result","tool_use_id":"IDb","content":[{"type":"search_result","source":"@"},{"type":"text","text":"@","citations":{"x":"@"}}]}]}`},
		[]string{`{"type":"text","text":"@","cache_control":{"type":"@"}}`, `{"type":"image","source":{"type":"url","url":"https://e.org/@.png"}}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"DATA"},"cache_control":{"type":"@"}}`,
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"@"},"title":"@","context":"@","citations":{"enabled":true}}`, `{"type":"document","source":{"type":"file","file_id":"@"},"title":"@"}`, `{"type":"search_result","source":"@","title":"@","content":[{"type":"text","text":"@"}]}`},
		[]string{`{"type":"text","text":"@","citations":[{"type":"@","cited_text":"@"}]}`, `{"type":"thinking","thinking":"@","signature":"@"}`, `{"type":"redacted_thinking","data":"@"}`, `{"type":"text","text":"@"}`,
			`{"type":"server_tool_use","id":"ID","name":"web_search","input":{"query":"@"}},{"type":"web_search_tool_result","tool_use_id":"ID","content":[{"type":"web_search_result","url":"@"}]}`},
	},
	provider.Gemini: {"contents",
		nil,
		[]string{`{"role":"user","parts":[PARTS]}`, `{"role":"user","parts":[{"text":"@"}]}`, `{"parts":[{"text":"@"}]}`},
		[]string{`{"role":"model","parts":[PARTS]}`, `{"role":"model","parts":[{"text":"@"}]}`},
		[]string{`{"role":"model","parts":[PARTS,{"functionCall":{"name":"f","args":{"a":"@"}},"thoughtSignature":"@"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":"@"}}}]}`,
			`{"role":"model","parts":[{"functionCall":{"id":"ID","name":"f"}},{"functionCall":{"id":"IDb","name":"g","args":{}}}]},{"role":"function","parts":[{"functionResponse":{"id":"ID","name":"f","response":{"output":"@"},"parts":[{"inlineData":{"mimeType":"image/png","data":"DATA"}}]}},` +
				`{"functionResponse":{"id":"IDb","name":"g","response":{},"scheduling":"@"}}]}`},
		[]string{`{"text":"@","thoughtSignature":"@"}`, `{"inlineData":{"mimeType":"image/png","data":"DATA","displayName":"@"}}`, `{"inline_data":{"mime_type":"audio/wav","data":"DATA"}}`, `{"fileData":{"mimeType":"application/pdf","fileUri":"https://e.org/@.pdf"},"videoMetadata":{"fps":"@"}}`, `{"new":"@"}`},
		[]string{`{"text":"@","thoughtSignature":"@"}`, `{"thought":true,"text":"@"}`, `{"executableCode":{"language":"PYTHON","code":"@"}}`, `{"codeExecutionResult":{"outcome":1,"output":"@"}}`, `{"inlineData":{"mimeType":"image/png","data":"DATA"}}`},
	},
}

// bodyWriter writes random bodies.
type bodyWriter struct {
	*rand.Rand
	tokens int
}

func (w *bodyWriter) token() string {
	w.tokens++
	return fmt.Sprintf("tok%dx", w.tokens)
}

func anyOf[T any](w *bodyWriter, from []T) T { return from[w.IntN(len(from))] }

// fill replaces what stands for something else in a phrase.
func (w *bodyWriter) fill(phrase string, parts []string) string {
	for strings.Contains(phrase, "PARTS") {
		some := []string{anyOf(w, parts)}
		for w.IntN(2) == 0 {
			some = append(some, anyOf(w, parts))
		}
		phrase = strings.Replace(phrase, "PARTS", w.fill(strings.Join(some, ","), nil), 1)
	}
	if strings.Contains(phrase, "ID") {
		phrase = strings.ReplaceAll(phrase, `"ID`, `"call_`+strings.TrimSuffix(w.token(), "x"))
	}
	for strings.Contains(phrase, "@") {
		phrase = strings.Replace(phrase, "@", w.token(), 1)
	}
	for strings.Contains(phrase, "DATA") {
		phrase = strings.Replace(phrase, "DATA", base64.StdEncoding.EncodeToString([]byte(w.token())), 1)
	}
	return phrase
}

// body returns a request of a format.
func (w *bodyWriter) body(f *provider.Format) []byte {
	p := phrases[f]
	var entries []string
	if p.begin != nil && w.IntN(2) == 0 {
		entries = append(entries, w.fill(anyOf(w, p.begin), nil))
	}
	for range 1 + w.IntN(3) {
		entries = append(entries, w.fill(anyOf(w, p.user), p.userParts))
		for w.IntN(2) == 0 {
			// The parts before the calls are the assistant's, and those behind
			// the results the user's.
			said, answered, _ := strings.Cut(anyOf(w, p.calls), `},{"role":"user"`)
			if answered != "" {
				said += `},{"role":"user"` + strings.Replace(answered, "PARTS", anyOf(w, p.userParts), 1)
			}
			entries = append(entries, w.fill(said, p.assistantParts))
		}
		if w.IntN(4) > 0 {
			entries = append(entries, w.fill(anyOf(w, p.assistant), p.assistantParts))
		}
	}
	text := `{"model":"m","` + p.member + `":[` + strings.Join(entries, ",") + `]`
	switch said := w.fill(`"@"`, nil); {
	case f == provider.OpenAIResponses && w.IntN(3) == 0:
		text += `,"instructions":` + said
	case f == provider.Anthropic && w.IntN(3) == 0:
		text += `,"system":[{"type":"text","text":` + said + `,"cache_control":{"type":"ephemeral"}}]`
	case f == provider.Gemini && w.IntN(3) == 0:
		text += `,"systemInstruction":{"parts":[{"text":` + said + `}]}`
	}
	return w.salted(text + "}")
}

// mayBeNull are members that say nothing if they are null.
var mayBeNull = []string{"cache_control", "citations", "detail", "title", "context", "annotations", "refusal", "reasoning_content", "reasoning_details", "thoughtSignature", "phase", "namespace", "name"}

var spellings = []string{"1.0", "1e2", "-0", "9007199254740993", "0.1000000000000000055511151231257827"}

// salted returns a body with unknown members, nulls and numbers in it.
func (w *bodyWriter) salted(text string) []byte {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var body jsonObject
	if err := d.Decode(&body); err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	w.salt(body, false)
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return data
}

func (w *bodyWriter) salt(value any, isCall bool) {
	switch value := value.(type) {
	case jsonArray:
		for _, element := range value {
			w.salt(element, false)
		}
	case jsonObject:
		names := make([]string, 0, len(value))
		for name := range value {
			names = append(names, name)
		}
		slices.Sort(names)
		isCall = isCall || value["type"] == "function_call" || value["type"] == "custom_tool_call" || value["type"] == "tool_use"
		for _, name := range names {
			inner := value[name]
			if slices.Contains(mayBeNull, name) && !isCall && w.IntN(8) == 0 {
				value[name] = nil
				continue
			}
			w.salt(inner, name == "function" || name == "custom" || strings.HasPrefix(name, "function"))
		}
		if w.IntN(8) == 0 {
			value["x"+w.token()] = anyOf(w, []func() any{
				func() any { return nil },
				func() any { return w.token() },
				func() any { return json.Number(anyOf(w, spellings)) },
				func() any { return jsonObject{"y" + w.token(): w.token()} },
				func() any { return jsonArray{w.token(), nil, true} },
			})()
		}
	}
}

// leaf is a text in a message, with the names of the members that it is in and
// the types of the objects.
type leaf struct {
	text  string
	names []string
	types []string
}

var tokenPattern = regexp.MustCompile(`tok\d+x`)

// leavesOf returns the tokens in a JSON value.
func leavesOf(value any, names, types []string) (leaves []leaf) {
	switch value := value.(type) {
	case string:
		decoded, _ := base64.StdEncoding.DecodeString(value)
		for _, token := range tokenPattern.FindAllString(value+" "+string(decoded), -1) {
			leaves = append(leaves, leaf{token, names, types})
		}
	case jsonArray:
		for _, element := range value {
			types := types
			if part, ok := element.(jsonObject); ok && part["type"] == nil {
				for name := range part { // one of them says what the part is
					types = append(slices.Clip(types), name)
				}
			}
			leaves = append(leaves, leavesOf(element, names, types)...)
		}
	case jsonObject:
		if typ, ok := value["type"].(string); ok {
			types = append(slices.Clip(types), typ)
		}
		for name, inner := range value {
			leaves = append(leaves, leavesOf(inner, append(slices.Clip(names), name), types)...)
		}
	}
	return leaves
}

// allTexts returns a body, and what its base64 stands for.
func allTexts(t *testing.T, body []byte) string {
	t.Helper()
	texts := string(body)
	for _, data := range regexp.MustCompile(`[A-Za-z0-9+/]{4,}=*`).FindAllString(texts, -1) {
		if decoded, err := base64.StdEncoding.DecodeString(data); err == nil {
			texts += " " + string(decoded)
		}
	}
	return texts
}

// requireReported requires that each text in the messages is in the body, or
// that an omission names a member that the text is in, or its part.
func requireReported(t *testing.T, msgs []state.Message, body []byte, omitted []provider.Omission) {
	t.Helper()
	texts := allTexts(t, body)
	for i, m := range msgs {
		var value jsonObject
		require.NoError(t, json.Unmarshal([]byte(m.Raw()), &value))
		delete(value, "tool") // as the call has it
		for _, leaf := range leavesOf(value, nil, nil) {
			if strings.Contains(texts, leaf.text) {
				continue
			}
			require.True(t, slices.ContainsFunc(omitted, func(o provider.Omission) bool { return o.Message == i && leaf.isNamed(o.What) }),
				"%s of %v is lost without a report\nof message %d %s\nin %s\nomitted: %v", leaf.text, leaf.names, i, m.Raw(), body, omitted)
		}
	}
}

func (l leaf) isNamed(what string) bool {
	member, _, _ := strings.Cut(strings.TrimPrefix(what, "member "), " ")
	path := strings.Split(member, ".")
	last := path[len(path)-1]
	if strings.HasPrefix(what, "member ") {
		return slices.Contains(l.names, last)
	}
	for _, prefix := range []string{"part of type ", "message of type "} {
		if typ, ok := strings.CutPrefix(what, prefix); ok {
			return slices.Contains(l.types, typ)
		}
	}
	return false
}

// lawRuns is the number of random bodies and conversations: 10 000 with
// STATE_EFFORT=40.
const lawRuns = 250

// Random bodies come back equal. In every other format, what is in them is in
// the body or in an omission. After Repair, what is read from that body passes
// Check, and so does what a Trim leaves of it.
func TestLawOfBodies(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range effort.Runs(lawRuns) {
		w := &bodyWriter{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		from := targets[i%len(targets)]
		body := w.body(from.format)
		request, err := from.format.DecodeRequest(body)
		require.NoError(t, err, "body %d: %s", i, body)
		requireDecodable(t, request.Messages)
		again, omitted, err := from.format.EncodeRequest(request)
		require.NoError(t, err)
		require.Empty(t, omitted)
		require.True(t, state.JSON(body).Equal(state.JSON(again)), "body %d: %s\nbecame %s", i, body, again)
		for _, to := range targets {
			policy := []transcript.Policy{transcript.PolicyDrop, {AnswerCalls: true, KeepResults: true}}[w.IntN(2)]
			requireComposed(t, request.Messages, to, policy)
			if to.format == from.format {
				continue
			}
			encoded, omitted, err := to.format.EncodeRequest(provider.Request{Messages: request.Messages})
			require.NoError(t, err)
			requireReported(t, request.Messages, encoded, omitted)
		}
	}
}

// requireComposed requires that a provider accepts what Repair and
// EncodeRequest make of messages, and what a Trim leaves of it.
func requireComposed(t *testing.T, msgs []state.Message, to target, policy transcript.Policy) {
	t.Helper()
	repaired, _ := transcript.Repair(msgs, to.profile, policy)
	requireAccepted(t, repaired, to)
	for _, trim := range []transcript.Trim{transcript.KeepLast(1), transcript.KeepLast(len(msgs) / 2), transcript.KeepTokens(100, nil)} {
		requireAccepted(t, trim(repaired), to)
	}
}

func requireAccepted(t *testing.T, msgs []state.Message, to target) {
	t.Helper()
	require.Empty(t, transcript.Check(msgs, to.profile), "%v: %v", to.format, rawMessages(msgs))
	body, _, err := to.format.EncodeRequest(provider.Request{Messages: msgs})
	require.NoError(t, err)
	request, err := to.format.DecodeRequest(body)
	require.NoError(t, err)
	require.Empty(t, transcript.Check(request.Messages, to.profile), "%v: %s\n%v", to.format, body, rawMessages(msgs))
	again, omitted, err := to.format.EncodeRequest(request)
	require.NoError(t, err)
	require.Empty(t, omitted)
	require.True(t, state.JSON(body).Equal(state.JSON(again)), "%s\n%s", body, again)
	require.Equal(t, turnsOfUser(msgs), turnsOfUser(request.Messages), "%v: %s\n%v", to.format, body, rawMessages(msgs))
}

// turnsOfUser returns the number of texts of the user.
func turnsOfUser(msgs []state.Message) (n int) {
	for _, m := range msgs {
		if m.Type() == "text" && m.Role() == "user" {
			n++
		}
	}
	return n
}

// handmade returns a conversation that a program made, in the words of any
// format, with members that it gave to messages and calls.
func (w *bodyWriter) handmade() (msgs []state.Message) {
	extra := func(names ...string) string {
		if w.IntN(2) == 0 {
			return ""
		}
		return `,"` + anyOf(w, names) + `":` + anyOf(w, []string{`"` + w.token() + `"`, `{"type":"` + w.token() + `"}`, `[{"text":"` + w.token() + `"}]`, "null"})
	}
	add := func(text string) {
		m, err := state.DecodeMessage(w.salted(text))
		if err != nil {
			panic(fmt.Sprintf("%v: %s", err, text))
		}
		msgs = append(msgs, m)
	}
	mcp := []string{`{"type":"image","mimeType":"image/png","data":"DATA"}`, `{"type":"audio","mimeType":"audio/wav","data":"DATA","annotations":{"audience":["@"]}}`, `{"type":"resource","resource":{"uri":"file:///@.txt","mimeType":"text/plain","text":"@"}}`,
		`{"type":"resource","resource":{"uri":"file:///@.pdf","mimeType":"application/pdf","blob":"DATA"}}`, `{"type":"resource_link","uri":"file:///@","name":"@","description":"@"}`, `{"type":"text","text":"@"}`}
	content := func(parts []string) string {
		if w.IntN(3) == 0 {
			return w.fill(`"@"`, nil)
		}
		return "[" + w.fill("PARTS", parts) + "]"
	}
	any := phrases[anyOf(w, targets).format]
	if w.IntN(3) == 0 {
		add(`{"type":"text","role":"system","content":` + content([]string{`{"type":"text","text":"@","cache_control":{"type":"@"}}`}) + extra("name") + `}`)
	}
	for range 1 + w.IntN(3) {
		add(`{"type":"text","role":"user","content":` + content(append(slices.Clip(any.userParts), mcp...)) + extra("name", "cache_control", "note") + `}`)
		if w.IntN(2) == 0 {
			id := "call_" + w.token()
			add(`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"` + id + `","name":"f","input":{"a":"` + w.token() + `"}` + extra("cache_control", "thoughtSignature") + `}]` + extra("reasoning_content") + `}`)
			add(`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"` + id + `","name":"f"},"content":` + content(mcp) + extra("cache_control") + `}`)
		}
		add(`{"type":"text","role":"assistant","content":` + content(any.assistantParts) + extra("reasoning_content", "reasoning_details", "name", "stop_reason") + `}`)
	}
	return msgs
}

// What a program puts into a message is in the body of every format, or in an
// omission that names it.
func TestLawOfHandmadeMessages(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range effort.Runs(lawRuns) {
		w := &bodyWriter{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		msgs := w.handmade()
		for _, to := range targets {
			body, omitted, err := to.format.EncodeRequest(provider.Request{Messages: msgs})
			require.NoError(t, err)
			requireReported(t, withoutStopReasons(t, msgs), body, omitted)
			requireComposed(t, msgs, to, transcript.PolicyDrop)
		}
	}
}

// withoutStopReasons returns messages without stop_reason, which is about the
// answer and not sent.
func withoutStopReasons(t *testing.T, msgs []state.Message) []state.Message {
	t.Helper()
	var without []state.Message
	for _, m := range msgs {
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(m.Raw()), &members))
		delete(members, "stop_reason")
		data, err := json.Marshal(members)
		require.NoError(t, err)
		without = append(without, message(t, string(data)))
	}
	return without
}

// A part in the words of a format, in a message that a program made, is sent as
// it is.
func TestOwnWordsPassUnchanged(t *testing.T) {
	w := &bodyWriter{Rand: rand.New(rand.NewPCG(1, 1))}
	for _, to := range targets {
		p := phrases[to.format]
		for role, parts := range map[string][]string{"user": p.userParts, "assistant": p.assistantParts} {
			for _, part := range parts {
				if strings.Contains(part, `"new"`) || strings.Contains(part, "},{") {
					continue
				}
				part = w.fill(part[:len(part)-1]+`,"x":{"y":1.0}}`, nil)
				body, omitted, err := to.format.EncodeRequest(provider.Request{Messages: []state.Message{
					message(t, `{"type":"text","role":"`+role+`","content":[`+part+`]}`),
				}})
				require.NoError(t, err)
				require.Empty(t, omitted, "%v: %s", to.format, part)
				require.True(t, bytes.Contains(body, []byte(part)), "%v: %s is not in %s", to.format, part, body)
			}
		}
	}
}
