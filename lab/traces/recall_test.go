package traces_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// refusal is what a provider refuses, with the words of its error, from its
// documentation or from the issues that the rules of package transcript name.
type refusal struct {
	words   string
	entries string
	rule    string // of the finding, "" if Check does not find it
}

func noPrefill(p transcript.Profile) transcript.Profile {
	p.NoPrefill = true
	return p
}

func thoughtSignatures(p transcript.Profile) transcript.Profile {
	p.ThoughtSignatures = true
	return p
}

// refusals are about the conversation of a request. Those about settings,
// schemas, sizes, and what an image or a file contains are not here: Check does
// not look at them.
var refusals = []struct {
	format   *provider.Format
	profile  transcript.Profile
	template string // with ENTRIES
	rows     []refusal
}{
	{provider.OpenAI, transcript.OpenAI, `{"messages":[ENTRIES]}`, []refusal{
		{"An assistant message with 'tool_calls' must be followed by tool messages", `USER,CALL`, "unanswered-call"},
		{"The following tool_call_ids did not have response messages", `USER,CALL,USER,RESULT`, "not-adjacent"},
		{"messages with role 'tool' must be a response to a preceeding message with 'tool_calls'", `USER,RESULT`, "orphan-result"},
		{"Duplicate value for 'tool_call_id'", `USER,{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},RESULT,RESULT`, "duplicate-id"},
		{"Invalid value for 'content': expected a string, got null", `{"role":"user","content":null}`, "content"},
		{"Invalid 'messages[0].content': empty array. Expected an array with minimum length 1", `{"role":"user","content":[]}`, "content"},
		{"Missing required parameter: 'messages[0].content[0].type'", `{"role":"user","content":[{"text":"Hi"}]}`, "content"},
		{"Invalid 'messages[1].tool_calls[0].id': string too long", `USER,{"role":"assistant","tool_calls":[{"id":"0123456789012345678901234567890123456789012345678901234567890123456789","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"0123456789012345678901234567890123456789012345678901234567890123456789","content":"r"}`, "id"},
		{"Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern", `USER,{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f f","arguments":"{}"}}]},RESULT`, "name"},
		{"Invalid value: 'model'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'", `USER,{"role":"model","content":"Hi"}`, "role"},
		{"Invalid value: 'input_text'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'", `{"role":"user","content":[{"type":"input_text","text":"Hi"}]}`, "content"},
		{"Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead", `USER,{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{}}}]},RESULT`, "arguments"},
	}},
	{provider.OpenAIResponses, transcript.OpenAIResponses, `{"input":[ENTRIES]}`, []refusal{
		{"No tool output found for function call", `USER,CALL`, "unanswered-call"},
		{"No tool call found for function call output with call_id", `USER,RESULT`, "orphan-result"},
		{"Item 'rs_1' of type 'reasoning' was provided without its required following item", `USER,REASONING,USER`, "reasoning"},
		{"Duplicate item found with id rs_1", `USER,REASONING,CALL,RESULT,REASONING,{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c2","output":"r"}`, "duplicate-item"},
		{"Invalid type for 'input[0].content': expected one of an array of objects or string, but got null", `{"role":"user","content":null}`, "content"},
		{"Missing required parameter: 'input[2].output'", `USER,CALL,{"type":"function_call_output","call_id":"c1"}`, "content"},
		{"Invalid 'input[1].call_id': empty string", `USER,{"type":"function_call","call_id":"","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"","output":"r"}`, "id"},
		{"Invalid 'input[1].name': string does not match pattern", `USER,{"type":"function_call","call_id":"c1","name":"a.b","arguments":"{}"},RESULT`, "name"},
		{"Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', and 'input_file'", `{"role":"user","content":[{"type":"output_text","text":"Hi"}]}`, "content"},
		{"Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'", `USER,{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"},RESULT`, ""},
	}},
	{provider.Anthropic, transcript.Anthropic, `{"messages":[ENTRIES]}`, []refusal{
		{"tool_use ids were found without tool_result blocks immediately after", `USER,CALL`, "unanswered-call"},
		{"tool_use ids were found without tool_result blocks immediately after", `USER,CALL,USER,RESULT`, "not-adjacent"},
		{"unexpected tool_use_id found in tool_result blocks", `USER,RESULT`, "orphan-result"},
		{"tool_use ids must be unique", `USER,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}},{"type":"tool_use","id":"c1","name":"f","input":{}}]},RESULT`, "duplicate-id"},
		{"String should match pattern '^[a-zA-Z0-9_-]+$'", `USER,{"role":"assistant","content":[{"type":"tool_use","id":"c.1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c.1"}]}`, "id"},
		{"text content blocks must be non-empty", `{"role":"user","content":[{"type":"text","text":""}]}`, "empty"},
		{"text content blocks must contain non-whitespace text", `{"role":"user","content":[{"type":"text","text":" "}]}`, "empty"},
		{"all messages must have non-empty content except for the optional final assistant message", `USER,{"role":"assistant","content":[]},USER`, "empty"},
		{"role 'system' is not supported on this model", `{"role":"system","content":"Hi"},USER`, "system"},
		{"web_search tool use with id s1 was found without a corresponding web_search_tool_result block", `USER,{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]},USER`, "server-tool"},
		{"Each advisor_tool_result block must have a corresponding server_tool_use block before it", `USER,{"role":"assistant","content":[{"type":"advisor_tool_result","tool_use_id":"s1","content":[]}]},USER`, "server-tool"},
		{"'image' blocks are not permitted within assistant turns", `USER,{"role":"assistant","content":[{"type":"image","source":{"type":"url","url":"https://e.org/a.png"}}]},USER`, "content"},
		{"A maximum of 4 blocks with cache_control may be provided", `{"role":"user","content":[CACHED,CACHED,CACHED,CACHED,CACHED]}`, "cache-control"},
	}},
	{provider.Anthropic, transcript.Anthropic, `{"thinking":{"type":"enabled"},"messages":[ENTRIES]}`, []refusal{
		{"Expected thinking or redacted_thinking, but found tool_use", `USER,CALL,RESULT`, "thinking"},
		{"Expected thinking or redacted_thinking, but found text", `USER,{"role":"assistant","content":"Hi"}`, "thinking"},
	}},
	{provider.Anthropic, noPrefill(transcript.Anthropic), `{"messages":[ENTRIES]}`, []refusal{
		{"This model does not support assistant message prefill. The conversation must end with a user message", `USER,{"role":"assistant","content":"Hi"}`, "prefill"},
	}},
	{provider.Gemini, transcript.Gemini, `{"contents":[ENTRIES]}`, []refusal{
		{"Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn", `USER,CALL`, "unanswered-call"},
		{"Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn", `USER,CALL,RESULT,RESULT`, "orphan-result"},
		{"Please ensure that function call turn comes immediately after a user turn or after a function response turn", `CALL,RESULT`, "call-turn"},
		{"first content should be with role 'user'", `{"role":"model","parts":[{"text":"Hi"}]},USER`, "first"},
		{"contents.parts must not be empty", `{"role":"user","parts":[]}`, "content"},
		{"Invalid function name", `USER,{"role":"model","parts":[{"functionCall":{"name":"1 f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"1 f","response":{}}}]}`, "name"},
		{"Please use a valid role: user, model", `USER,{"role":"system","parts":[{"text":"Hi"}]}`, "system"},
	}},
	{provider.Gemini, thoughtSignatures(transcript.Gemini), `{"contents":[ENTRIES]}`, []refusal{
		{"Function call is missing a thought_signature in functionCall parts", `USER,CALL,RESULT`, "signature"},
	}},
}

// refusedWords stand for entries.
var refusedWords = map[*provider.Format]*strings.Replacer{
	provider.OpenAI: strings.NewReplacer("USER", `{"role":"user","content":"Hi"}`,
		"CALL", `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		"RESULT", `{"role":"tool","tool_call_id":"c1","content":"r"}`),
	provider.OpenAIResponses: strings.NewReplacer("USER", `{"role":"user","content":"Hi"}`,
		"CALL", `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`, "RESULT", `{"type":"function_call_output","call_id":"c1","output":"r"}`,
		"REASONING", `{"type":"reasoning","id":"rs_1","summary":[]}`),
	provider.Anthropic: strings.NewReplacer("USER", `{"role":"user","content":"Hi"}`, "CACHED", `{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}`,
		"CALL", `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]}`, "RESULT", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}`),
	provider.Gemini: strings.NewReplacer("USER", `{"role":"user","parts":[{"text":"Hi"}]}`,
		"CALL", `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`, "RESULT", `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}`),
}

// aboutContent are the words of refusals that are not about the conversation.
var aboutContent = []string{"Error while downloading", "Tool call validation failed", "Cannot fetch content", "file type you uploaded"}

// Check finds what providers refuse, as far as the table says, and nothing in
// what they accept. Repair mends each refusal that Check finds.
func TestRecall(t *testing.T) {
	foreseen, refused := 0, 0
	for _, table := range refusals {
		for _, row := range table.rows {
			entries := refusedWords[table.format].Replace(row.entries)
			request, err := table.format.DecodeRequest([]byte(strings.Replace(table.template, "ENTRIES", entries, 1)))
			require.NoError(t, err, row.words)
			profile := request.Profile(table.profile)
			rules := map[string]bool{}
			for _, finding := range transcript.Check(request.Messages, profile) {
				rules[finding.Rule] = true
			}
			refused++
			if row.rule == "" {
				require.Empty(t, rules, "%v: %s is found now: name the rule in the table", table.format, row.words)
				t.Logf("not found: %v: %s", table.format, row.words)
				continue
			}
			require.True(t, rules[row.rule], "%v: %s, found %v", table.format, row.words, rules)
			foreseen++
			repaired, changes := transcript.Repair(request.Messages, profile, transcript.Policy{})
			require.NotEmpty(t, changes, row.words)
			require.Empty(t, transcript.Check(repaired, profile), row.words)
			request.Messages = repaired
			body, _, err := table.format.EncodeRequest(request)
			require.NoError(t, err, row.words)
			sent, err := table.format.DecodeRequest(body)
			require.NoError(t, err, row.words)
			require.Empty(t, transcript.Check(sent.Messages, profile), "%s: %s", row.words, body)
		}
	}
	t.Logf("errors that providers document: %d of %d are found", foreseen, refused)
	require.GreaterOrEqual(t, foreseen*100, refused*80)
}

// The same of the recordings: what was refused because of the conversation, and
// what was accepted.
func TestRecallOfRecordings(t *testing.T) {
	foreseen, refused, other, wrong, accepted := 0, 0, 0, 0, 0
	for _, e := range exchanges(t) {
		findings := transcript.Check(e.msgs, e.profile)
		switch {
		case e.status >= 200 && e.status < 300:
			accepted++
			if len(findings) > 0 {
				wrong++
				t.Errorf("%s, exchange %d: %v", e.file, e.index, findings)
			}
		case e.status != 400 || isAboutContent(e.response):
			other++
		default:
			refused++
			if len(findings) > 0 {
				foreseen++
				continue
			}
			t.Logf("not found: %s, exchange %d: %s", e.file, e.index, wordsOf(e.response))
		}
	}
	t.Logf("recall: %d of %d requests that were refused because of their conversation are found; %d were refused for other reasons", foreseen, refused, other)
	t.Logf("precision: %d of %d requests that were accepted have no finding", accepted-wrong, accepted)
	require.Equal(t, refused, foreseen)
}

func isAboutContent(response string) bool {
	for _, words := range aboutContent {
		if strings.Contains(response, words) {
			return true
		}
	}
	return false
}

// wordsOf returns the words of an error.
func wordsOf(response string) string {
	var body struct{ Error struct{ Message string } }
	_ = json.Unmarshal([]byte(response), &body) // any other body has no words
	return body.Error.Message
}
