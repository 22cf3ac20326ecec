package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// target is a provider to carry a conversation to.
type target struct {
	api     string // in the traces
	format  *provider.Format
	mark    string
	profile transcript.Profile
}

var targets = []target{
	{"openai_chat", provider.OpenAI, origin.OpenAI, transcript.OpenAI},
	{"openai_responses", provider.OpenAIResponses, origin.OpenAIResponses, transcript.OpenAIResponses},
	{"anthropic_messages", provider.Anthropic, origin.Anthropic, transcript.Anthropic},
	{"gemini_generateContent", provider.Gemini, origin.Gemini, transcript.Gemini},
}

// carry repairs a conversation and sends it, and what a Trim leaves of it, to a
// provider.
func carry(msgs []state.Message, to target, policy transcript.Policy) error {
	repaired, _ := transcript.Repair(msgs, to.profile, policy)
	if err := sent(repaired, to); err != nil {
		return fmt.Errorf("to %v, policy %v: %w\nrepaired:\n%s", to.format, policy, err, histories.Render(repaired))
	}
	for _, trim := range []transcript.Trim{transcript.KeepLast(1), transcript.KeepLast(len(msgs) / 2), transcript.KeepLast(len(msgs) / 4)} {
		kept := trim(repaired)
		if err := sent(kept, to); err != nil {
			return fmt.Errorf("to %v, policy %v, trimmed: %w\nkept:\n%s", to.format, policy, err, histories.Render(kept))
		}
	}
	return nil
}

// sent returns an error if Check refuses what is sent, if something in it
// is lost without a report, or if reading it does not give the same again.
func sent(msgs []state.Message, to target) error {
	body, omitted, err := to.format.EncodeRequest(provider.Request{Messages: msgs})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w\n%s", fmt.Errorf(format, args...), body)
	}
	request, err := to.format.DecodeRequest(body)
	if err != nil {
		return fail("decode: %w", err)
	}
	if findings := besidesNoMessages(transcript.Check(request.Messages, to.profile)); len(findings) > 0 {
		return fail("Check refuses what is accepted: %v\n%s", findings, histories.Render(request.Messages))
	}
	again, more, err := to.format.EncodeRequest(request)
	if err != nil || len(more) > 0 || !state.JSON(again).Equal(state.JSON(body)) {
		return fail("encoded again it differs: %v %v\n%s", err, more, again)
	}
	if err := alike(msgs, request.Messages, omitted); err != nil {
		return fail("%w", err)
	}
	return nil
}

// alike returns an error if something of what was sent did not arrive and no
// omission reports it.
func alike(sent, arrived []state.Message, omitted []provider.Omission) error {
	var said strings.Builder
	for _, m := range arrived {
		if m, ok := m.(state.TextMessage); ok {
			said.WriteString(m.Text() + "\n")
		}
	}
	results := resultsIn(arrived)
	for i, m := range sent {
		reported := slices.ContainsFunc(omitted, func(o provider.Omission) bool { return o.Message == i })
		switch m := m.(type) {
		case state.ToolResultMessage:
			if len(results) == 0 || results[0].Call().ID != m.Call().ID || !reported && !says(results[0].Content(), m.Content()) {
				return fmt.Errorf("result %d is another", i)
			}
			results = results[1:]
		case state.TextMessage:
			for _, text := range strings.Split(m.Text(), "\n") {
				if !reported && !strings.Contains(said.String(), text) {
					return fmt.Errorf("what message %d says is missing", i)
				}
			}
		case state.UnknownMessage:
			if format, _ := origin.ItemType(m); format == "" && !reported {
				return fmt.Errorf("message %d is left out without a report", i)
			}
		}
	}
	if !slices.EqualFunc(callsIn(sent), callsIn(arrived), func(a, b state.ToolCall) bool {
		named := a.Name == b.Name || b.Name == "tool_search_call" // its type is its name
		return a.ID == b.ID && named && (a.Input.Equal(b.Input) || !strings.HasPrefix(string(a.Input), "{"))
	}) {
		return errors.New("the calls are others")
	}
	if len(results) > 0 {
		return errors.New("there are more results")
	}
	return nil
}

func callsIn(msgs []state.Message) (calls []state.ToolCall) {
	for _, m := range msgs {
		if m, ok := m.(state.ToolCallMessage); ok {
			calls = append(calls, m.Calls()...)
		}
	}
	return calls
}

func resultsIn(msgs []state.Message) (results []state.ToolResultMessage) {
	for _, m := range msgs {
		if m, ok := m.(state.ToolResultMessage); ok {
			results = append(results, m)
		}
	}
	return results
}

// says reports whether a content is a text, or an object that holds the text for a
// provider that takes only objects. Any other content may have become anything.
func says(content, text state.JSON) bool {
	if !strings.HasPrefix(string(text), `"`) || content.Equal(text) {
		return true
	}
	var held map[string]json.RawMessage
	err := json.Unmarshal([]byte(content), &held)
	return err == nil && (text.Equal(state.JSON(held["output"])) || text.Equal(state.JSON(held["error"])))
}

// carryCase is a way from one provider to another.
type carryCase struct {
	from, to target
	policy   transcript.Policy
}

func (c carryCase) String() string {
	return fmt.Sprintf("%v to %v, policy %v", c.from.format, c.to.format, c.policy)
}

var carryCases = func() (cases []carryCase) {
	for _, from := range targets {
		for _, to := range targets {
			for _, policy := range []transcript.Policy{transcript.Policy{}, {AnswerCalls: true, KeepResults: true}} {
				cases = append(cases, carryCase{from, to, policy})
			}
		}
	}
	return cases
}()

func carried(c carryCase, msgs []state.Message) error { return carry(msgs, c.to, c.policy) }

// carryEverywhere carries a conversation to all providers.
func carryEverywhere(msgs []state.Message) error {
	var errs []error
	for _, c := range carryCases[:2*len(targets)] {
		errs = append(errs, carried(c, msgs))
	}
	return errors.Join(errs...)
}

// maybeBroken makes a history that the provider accepts, or accepted before it was
// broken.
func maybeBroken(rng *rand.Rand, c carryCase) []state.Message {
	msgs := histories.Valid(rng, c.from.mark)
	if rng.IntN(2) == 0 {
		return histories.Mutate(rng, msgs)
	}
	return msgs
}

// A history that Check accepts is one that the provider accepts.
func TestHistoriesChecked(t *testing.T) {
	histories.Law[carryCase]{
		Cases: carryCases, History: maybeBroken, Parts: true,
		Obeys: func(c carryCase, msgs []state.Message) error {
			if len(transcript.Check(msgs, c.to.profile)) > 0 {
				return nil
			}
			return sent(msgs, c.to)
		},
	}.Hold(t)
}

// A history made for one provider, and perhaps broken, is carried to another.
func TestHistoriesCarried(t *testing.T) {
	histories.Law[carryCase]{Cases: carryCases, History: maybeBroken, Parts: true, Obeys: carried}.Hold(t)
}

// A history read from one provider, and perhaps broken, is carried to another.
func TestHistoriesReadAndCarried(t *testing.T) {
	histories.Law[carryCase]{
		Cases: carryCases, Parts: true, Obeys: carried,
		History: func(rng *rand.Rand, c carryCase) []state.Message {
			body, _, err := c.from.format.EncodeRequest(provider.Request{Messages: histories.Valid(rng, c.from.mark)})
			if err != nil {
				return []state.Message{nil} // TestHistoriesChecked reports it
			}
			request, err := c.from.format.DecodeRequest(body)
			if err == nil && rng.IntN(2) == 0 {
				return histories.Mutate(rng, request.Messages)
			}
			return request.Messages
		},
	}.Hold(t)
}

// A recorded conversation is accepted by its provider, and is carried to all, with
// and without the answer to it.
func TestTracesCarried(t *testing.T) {
	for _, from := range targets {
		recorded := exchanges(t, from.api)
		if from.format == provider.OpenAI {
			recorded = append(recorded, runs(t)...)
		}
		accepted := 0
		for _, e := range recorded {
			if e.request == nil {
				continue
			}
			name := fmt.Sprintf("%s#%d", e.file, e.index)
			request, err := from.format.DecodeRequest(e.request)
			require.NoError(t, err, name)
			if e.status < 300 {
				accepted++
				profile := from.profile
				if request.Continued() {
					profile.Continued = true
				}
				require.Empty(t, transcript.Check(request.Messages, profile), name)
			}
			require.NoError(t, carryEverywhere(request.Messages), name)
			if response, err := from.format.DecodeResponse(e.response); err == nil {
				require.NoError(t, carryEverywhere(slices.Concat(request.Messages, response.Output)), name)
			}
		}
		t.Logf("%v: %d requests, %d of them accepted", from.format, len(recorded), accepted)
	}
}

// runs returns the recorded conversations that are not exchanges.
func runs(t *testing.T) (found []exchange) {
	for _, f := range recordings(t, "tau_airline") {
		var run struct{ Traj json.RawMessage }
		require.NoError(t, json.Unmarshal(f.data, &run))
		found = append(found, exchange{file: f.name, request: slices.Concat([]byte(`{"messages":`), run.Traj, []byte("}"))})
	}
	return found
}

// carriedParts are what the table of the guide has a row for.
var carriedParts = []struct{ name, part string }{
	{"text", `{"type":"text","text":"x"}`},
	{"image as data", `{"type":"image","mimeType":"image/png","data":"aGk="}`},
	{"image by URL", `{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}`},
	{"sound as data (WAV, MP3)", `{"type":"audio","mimeType":"audio/wav","data":"aGk="}`},
	{"sound as data (others)", `{"type":"audio","mimeType":"audio/ogg","data":"aGk="}`},
	{"PDF as data", `{"type":"resource","resource":{"mimeType":"application/pdf","blob":"aGk="}}`},
	{"PDF by URL", `{"type":"document","source":{"type":"url","url":"https://e.org/a.pdf"}}`},
	{"text file as data", `{"type":"file","file":{"file_data":"data:text/csv;base64,aGk="}}`},
	{"other file as data", `{"type":"file","file":{"file_data":"data:application/zip;base64,aGk="}}`},
	{"text resource of MCP", `{"type":"resource","resource":{"mimeType":"text/plain","text":"x"}}`},
	{"link to a resource of MCP", `{"type":"resource_link","uri":"file:///a","name":"a"}`},
}

// carries reports in which messages a format has a place for a part.
func carries(t *testing.T, f *provider.Format, part string) string {
	t.Helper()
	var places []string
	for _, place := range []struct{ name, message string }{
		{"user", `{"type":"text","role":"user","content":[` + part + `]}`},
		{"assistant", `{"type":"text","role":"assistant","content":[` + part + `]}`},
		{"result", `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":[` + part + `]}`},
	} {
		body, omitted, err := f.EncodeRequest(provider.Request{Messages: []state.Message{message(t, place.message)}})
		require.NoError(t, err)
		if len(omitted) == 0 {
			places = append(places, place.name)
		} else {
			require.Contains(t, string(body), " left out]")
		}
	}
	switch len(places) {
	case 0:
		return "–"
	case 3:
		return "everywhere"
	}
	return strings.Join(places, ", ")
}

// The table of the guide says what each format can carry.
func TestTableOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide/conversations.md")
	require.NoError(t, err)
	table := "| part | OpenAI | OpenAIResponses | Anthropic | Gemini |\n|---|---|---|---|---|\n"
	for _, row := range carriedParts {
		table += "| " + row.name + " |"
		for _, to := range targets {
			table += fmt.Sprintf(" %s |", carries(t, to.format, row.part))
		}
		table += "\n"
	}
	require.Contains(t, string(guide), table, "the table is\n%s", table)
}

// The content of MCP is what a tool returns.
func TestContentOfMCP(t *testing.T) {
	result := func(parts string) []state.Message {
		return []state.Message{message(t, `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":[`+parts+`]}`)}
	}
	for _, row := range []struct {
		parts, anthropic string
		omitted          []string
	}{
		{`{"type":"text","text":"a","annotations":{"priority":1}},{"type":"image","mimeType":"image/jpeg","data":"aGk="}`,
			`[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"aGk="}}]`, []string{"member annotations of part 0"}},
		{`{"type":"audio","mimeType":"audio/wav","data":"aGk="}`, `"[audio left out]"`, []string{"part of type audio"}},
		{`{"type":"resource","resource":{"uri":"file:///d/a.pdf","mimeType":"application/pdf","blob":"aGk="}}`,
			`[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aGk="},"title":"a.pdf"}]`, nil},
		{`{"type":"resource","resource":{"uri":"file:///a.bin","mimeType":"application/zip","blob":"aGk="}}`, `"[file left out]"`, []string{"part of type resource"}},
		{`{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"hi"}}`, `[{"type":"text","text":"hi"}]`, []string{"member resource.uri of part 0"}},
		{`{"type":"resource_link","uri":"file:///a.txt","name":"a","mimeType":"text/plain"}`, `[{"type":"text","text":"a: file:///a.txt"}]`, []string{"member mimeType of part 0"}},
		{`{"type":"image","mimeType":"image/png"}`, `"[{\"type\":\"image\",\"mimeType\":\"image/png\"}]"`, nil}, // not a picture
	} {
		body, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: result(row.parts)})
		require.NoError(t, err)
		jsonEqual(t, []byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":`+row.anthropic+`}]}]}`), body)
		var what []string
		for _, o := range omitted {
			what = append(what, o.What)
		}
		require.Equal(t, row.omitted, what, row.parts)
	}
}
