package providertest

import (
	"encoding/base64"
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
)

// conversations is the number of random conversations.
const conversations = 200

// builtIn are the formats of package provider.
var builtIn = []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini}

// eachConversation calls test with random conversations and their writer.
func eachConversation(t *testing.T, test func(w *writer, msgs []state.Message)) {
	t.Helper()
	seed := effort.LogSeed(t)
	for i := range effort.Runs(conversations) {
		w := &writer{Rand: rand.New(rand.NewPCG(seed, uint64(i)))}
		test(w, w.conversation(t))
	}
}

// omissions tests that nothing is left out without a report.
func (s *suite) omissions(t *testing.T) {
	t.Run("messages of programs", func(t *testing.T) {
		eachConversation(t, func(_ *writer, msgs []state.Message) { s.requireReported(t, s.format, msgs) })
	})
	for _, e := range s.exchanges {
		if e.request == nil {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			request, err := s.format.DecodeRequest(withMembers(t, e.request, func(n int) any {
				return fmt.Sprintf("tok%dx", 10_000+n)
			}))
			if err != nil {
				t.Fatal(err)
			}
			for _, to := range builtIn {
				body := s.requireReported(t, to, request.Messages)
				back, err := to.DecodeRequest(body)
				if err != nil {
					t.Fatalf("%v: %v\n%s", to, err, body)
				}
				s.requireReported(t, s.format, back.Messages)
			}
		})
	}
}

// repairs tests that what Repair leaves of a conversation is what the profile of
// the format demands, after it was encoded, too, and that no turn of the user is
// lost.
func (s *suite) repairs(t *testing.T) {
	eachConversation(t, func(w *writer, msgs []state.Message) {
		for range w.IntN(3) { // it is cut and interrupted
			k := w.IntN(len(msgs))
			msgs = slices.Delete(msgs, k, min(len(msgs), k+1))
			if len(msgs) == 0 {
				msgs = append(msgs, state.UserText("Hi."))
			}
		}
		repaired, _ := transcript.Repair(msgs, s.format.Profile(), transcript.Policy{})
		requireValid(t, repaired, s.format)
		body, _, err := s.format.EncodeRequest(provider.Request{Messages: repaired})
		if err != nil {
			t.Fatal(err)
		}
		request := s.requireSame(t, body)
		requireValid(t, request.Messages, s.format)
		if want, have := userTurns(repaired), userTurns(request.Messages); want != have {
			t.Fatalf("%d turns of the user became %d in\n%s\nof\n%s", want, have, body, raws(repaired))
		}
	})
}

func requireValid(t *testing.T, msgs []state.Message, format *provider.Format) {
	t.Helper()
	// A conversation without messages is not sent.
	findings := slices.DeleteFunc(transcript.Check(msgs, format.Profile()), func(f transcript.Finding) bool {
		return f.Rule == "no-messages"
	})
	if len(findings) > 0 {
		t.Fatalf("Check finds %v in\n%s", findings, raws(msgs))
	}
}

// userTurns returns the number of texts of the user.
func userTurns(msgs []state.Message) (n int) {
	for _, m := range msgs {
		if m.Type() == "text" && m.Role() == "user" {
			n++
		}
	}
	return n
}

// requireReported requires that each token in the messages is in the body, or
// that an omission names it. It returns the body, which comes back equal.
func (s *suite) requireReported(t *testing.T, to *provider.Format, msgs []state.Message) []byte {
	t.Helper()
	body, omitted, err := to.EncodeRequest(provider.Request{Messages: msgs})
	if err != nil {
		t.Fatalf("%v: EncodeRequest: %v\n%s", to, err, raws(msgs))
	}
	(&suite{format: to}).requireSame(t, body)
	requireNamed(t, to.String(), msgs, body, omitted)
	return body
}

// requireNamed requires that each token in the messages is in what was written,
// or that an omission names it.
func requireNamed(t *testing.T, to string, msgs []state.Message, body []byte, omitted []provider.Omission) {
	t.Helper()
	written := decoded(string(body))
	for i, m := range msgs {
		value, _ := parse(t, []byte(m.Raw())).(object)
		delete(value, "tool") // as the call has it
		for _, leaf := range leavesOf(value, nil, nil) {
			named := func(o provider.Omission) bool { return o.Message == i && leaf.isNamed(o.What) }
			if !strings.Contains(written, leaf.text) && !slices.ContainsFunc(omitted, named) {
				t.Fatalf("%v: %s in %s is lost without a report\nof message %d:\n%s\nin:\n%s\nomitted: %v",
					to, leaf.text, strings.Join(leaf.names, "."), i, m.Raw(), body, omitted)
			}
		}
	}
}

// writer writes random conversations. Each text is a token that is nowhere else.
type writer struct {
	*rand.Rand
	tokens int
}

var tokenPattern = regexp.MustCompile(`tok\d+x`)

func (w *writer) token() string {
	w.tokens++
	return fmt.Sprintf("tok%dx", w.tokens)
}

// fill replaces each @ by a token, and each DATA by base64 of one.
func (w *writer) fill(text string) string {
	for strings.Contains(text, "@") {
		text = strings.Replace(text, "@", w.token(), 1)
	}
	for strings.Contains(text, "DATA") {
		text = strings.Replace(text, "DATA", base64.StdEncoding.EncodeToString([]byte(w.token())), 1)
	}
	return text
}

func (w *writer) oneOf(texts ...string) string { return texts[w.IntN(len(texts))] }

// The parts of messages in the words of all formats, and of none.
var (
	userParts = []string{
		`{"type":"text","text":"@"}`, `{"type":"text","text":"@","cache_control":{"type":"@"}}`,
		`{"type":"image","mimeType":"image/png","data":"DATA"}`,
		`{"type":"image_url","image_url":{"url":"https://e.org/@.png","detail":"@"}}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"DATA"},"cache_control":{"type":"@"}}`,
		`{"type":"audio","mimeType":"audio/wav","data":"DATA"}`,
		`{"type":"input_audio","input_audio":{"data":"DATA","format":"mp3"}}`,
		`{"type":"resource","resource":{"uri":"file:///@.pdf","mimeType":"application/pdf","blob":"DATA"}}`,
		`{"type":"file","file":{"filename":"@.pdf","file_data":"data:application/pdf;base64,DATA"}}`,
		`{"type":"input_image","file_id":"@"}`,
		`{"type":"resource_link","uri":"file:///@","name":"@","description":"@"}`,
		`{"inlineData":{"mimeType":"video/mp4","data":"DATA"}}`,
		`{"type":"never_heard_of","never":"@"}`,
	}
	assistantParts = []string{
		`{"type":"text","text":"@","citations":[{"type":"@"}]}`, `{"type":"output_text","text":"@"}`,
		`{"type":"refusal","refusal":"@"}`,
		`{"type":"thinking","thinking":"@","signature":"@"}`, `{"thought":true,"text":"@"}`,
		`{"type":"never_heard_of","never":"@"}`,
	}
	resultContents = []string{
		`"@"`, `{"a":"@","b":1.0}`, `["@",null]`, `7`, `null`, `""`, `[]`,
		`[{"type":"text","text":"@"},{"type":"image","mimeType":"image/png","data":"DATA"}]`,
		`[{"type":"text","text":"@"},{"type":"resource","resource":{"uri":"file:///a","text":"@"}}]`,
		`[{"id":"@","score":1}]`,
	}
)

// conversation returns messages as a program may make them.
func (w *writer) conversation(t *testing.T) (msgs []state.Message) {
	t.Helper()
	add := func(text string) {
		m, err := state.DecodeMessage([]byte(w.fill(text)))
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		msgs = append(msgs, m)
	}
	extra := func(names ...string) string {
		if w.IntN(2) == 0 {
			return ""
		}
		return `,"` + w.oneOf(names...) + `":` + w.oneOf(`"@"`, `{"type":"@"}`, "null")
	}
	content := func(parts []string) string {
		if w.IntN(3) == 0 {
			return `"@"`
		}
		some := []string{w.oneOf(parts...)}
		for w.IntN(2) == 0 {
			some = append(some, w.oneOf(parts...))
		}
		return "[" + strings.Join(some, ",") + "]"
	}
	for range w.IntN(3) {
		add(`{"type":"text","role":"` + w.oneOf("system", "developer") + `","content":` + content(userParts[:2]) + extra("name") + `}`)
	}
	for range 1 + w.IntN(3) {
		add(`{"type":"text","role":"user","content":` + content(userParts) + extra("name", "note") + `}`)
		if w.IntN(2) == 0 {
			id, more := "call_"+w.token(), "call_"+w.token()
			if w.IntN(2) == 0 {
				add(`{"type":"text","role":"assistant","content":` + content(assistantParts) + `}`)
			}
			add(`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"` + id + `","name":"f","input":` +
				w.oneOf(`{"a":"@"}`, `{}`, `null`, `"@"`, `["@"]`) + extra("cache_control", "note") + `},{"type":"tool","id":"` + more + `","name":"g"}]` + extra("note") + `}`)
			add(`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"` + id + `","name":"f"},"content":` + w.oneOf(resultContents...) + extra("cache_control") + `}`)
			add(`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"` + more + `","name":"g"},"content":` + w.oneOf(resultContents...) + `,"is_error":true}`)
		}
		add(`{"type":"text","role":"assistant","content":` + content(assistantParts) + extra("reasoning_content",
			"name") + `}`)
		if w.IntN(4) == 0 {
			add(`{"type":"` + w.oneOf("memo", "openai_responses.reasoning",
				"format:never heard of.entry") + `","role":"assistant","item":{"text":"@"}}`)
		}
	}
	return msgs
}

// leaf is a token in a message, with the names of the members that it is in and
// the types of the objects.
type leaf struct {
	text  string
	names []string
	types []string
}

// leavesOf returns the tokens in a value.
func leavesOf(value any, names, types []string) (leaves []leaf) {
	switch value := value.(type) {
	case string:
		for _, token := range tokenPattern.FindAllString(decoded(value), -1) {
			leaves = append(leaves, leaf{token, names, types})
		}
	case array:
		for _, element := range value {
			types := types
			if part, ok := element.(object); ok && part["type"] == nil {
				types = append(slices.Clip(types), sortedNames(part)...) // one of them says what the part is
			}
			leaves = append(leaves, leavesOf(element, names, types)...)
		}
	case object:
		if typ, ok := value["type"].(string); ok {
			types = append(slices.Clip(types), typ)
		}
		for _, name := range sortedNames(value) {
			leaves = append(leaves, leavesOf(value[name], append(slices.Clip(names), name), types)...)
		}
	}
	return leaves
}

// isNamed reports whether an omission names a member that the token is in, its
// part, or its message.
func (l leaf) isNamed(what string) bool {
	if member, ok := strings.CutPrefix(what, "member "); ok {
		member, _, _ = strings.Cut(member, " ")
		path := strings.Split(member, ".")
		return slices.Contains(l.names, path[len(path)-1])
	}
	if typ, ok := strings.CutPrefix(what, "part of type "); ok {
		return slices.Contains(l.types, typ)
	}
	return strings.HasPrefix(what, "message of ")
}

var base64Pattern = regexp.MustCompile(`[A-Za-z0-9+/]{8,}=*`)

// decoded returns a text and what the base64 in it stands for.
func decoded(text string) string {
	all := text
	for _, data := range base64Pattern.FindAllString(text, -1) {
		if plain, err := base64.StdEncoding.DecodeString(data); err == nil {
			all += " " + string(plain)
		}
	}
	return all
}

// changes tests that a message that a program has changed is encoded as it is
// now.
func (s *suite) changes(t *testing.T) {
	s.each(t, "request", hasRequest, func(t *testing.T, e exchange) {
		request, err := s.format.DecodeRequest(salted(t, e.request))
		if err != nil {
			t.Fatal(err)
		}
		requireChanged(t, request.Messages, func(changed []state.Message) string {
			request.Messages = changed
			body, _, err := s.format.EncodeRequest(request)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		})
	})
}

// requireChanged changes what messages say, and requires that they are encoded as
// they are then.
func requireChanged(t *testing.T, msgs []state.Message, encode func([]state.Message) string) {
	t.Helper()
	w := &writer{}
	var tokens []string
	say := func() string {
		tokens = append(tokens, w.token())
		return tokens[len(tokens)-1]
	}
	edited := make([]state.Message, len(msgs))
	for i, m := range msgs {
		value := parse(t, []byte(m.Raw())).(object)
		switch m.(type) {
		case state.TextMessage, state.ToolResultMessage:
			value["content"] = changed(value["content"], say)
			if call, ok := value["tool"].(object); ok {
				call["id"] = say()
			}
		case state.ToolCallMessage:
			for _, call := range value["tools"].(array) {
				call := call.(object)
				call["id"], call["input"] = say(), object{"a": say()} // not every call has a name
			}
		}
		var err error
		if edited[i], err = state.DecodeMessage(write(t, value)); err != nil {
			t.Fatal(err)
		}
	}
	body := encode(edited)
	for _, token := range tokens {
		if !strings.Contains(body, token) {
			t.Fatalf("the change to %s is not in\n%s\nof\n%s", token, body, raws(edited))
		}
	}
}

// changed returns content with other texts.
func changed(content any, say func() string) any {
	switch content := content.(type) {
	case string:
		return say()
	case array:
		for _, element := range content {
			if part, ok := element.(object); ok {
				if _, isText := part["text"].(string); isText && part["type"] == "text" {
					part["text"] = say()
				}
			}
		}
	}
	return content
}
