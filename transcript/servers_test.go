package transcript_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// What only an earlier server gave is left out where the next one refuses it, and
// what a server demands is there. All else is sent as it came.
func TestServers(t *testing.T) {
	const asked, user = `{"role":"user","content":"Hi"}`, `{"role":"user","content":"And?"}`
	const result = `{"role":"tool","tool_call_id":"call_1","content":"Sunny"}`
	const given = `{"role":"assistant","content":"Hello","refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":[],"reasoning_content":"hm","channel":"final"}`
	const call = `{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning":"hm"}`
	for _, row := range []struct {
		name, host, model string
		sent, want        []string
	}{
		{"another server", "llm.example.com", "m", []string{asked, given, user, call, result, user}, nil},
		{"OpenAI", "api.openai.com", "gpt-5.1", []string{asked, given, user, call, result, user}, nil},
		{"Groq", "api.groq.com", "openai/gpt-oss-120b", []string{asked, given, user, call, result}, []string{asked, `{"role":"assistant","content":"Hello"}`, user,
			`{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, result}},
		{"Cerebras", "api.cerebras.ai", "gpt-oss-120b", []string{asked, given, user, call, result}, []string{asked, `{"role":"assistant","content":"Hello"}`, user,
			`{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning":"hm"}`, result}},
		{"Mistral", "api.mistral.ai", "mistral-large-latest", []string{asked, given, user, call, result, user}, []string{asked, `{"role":"assistant","content":"Hello"}`, user,
			`{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"call10000","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"call10000","content":"Sunny"}`, `{"role":"assistant","content":"Noted."}`, user}},
		{"a prefix for Mistral", "api.mistral.ai", "mistral-large-latest", []string{asked, `{"role":"assistant","content":"Hel","prefix":true}`}, nil},
		{"a model of Mistral elsewhere", "openrouter.ai", "mistralai/devstral-small", []string{asked, call, result, user}, []string{asked, call, result, `{"role":"assistant","content":"Noted."}`, user}},
		{"DeepSeek", "api.deepseek.com", "deepseek-v4-pro", []string{asked, given, user, call, result}, []string{asked, given, user,
			`{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning":"hm","reasoning_content":" "}`, result}},
		{"DeepSeek's own", "api.deepseek.com", "deepseek-v4-pro", []string{asked, given, user, `{"role":"assistant","content":null,"reasoning_content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, result}, nil},
		{"Moonshot", "api.moonshot.ai", "kimi-k2.6", []string{asked, `{"role":"assistant","content":"","reasoning_content":"hm"}`, user}, []string{asked, user}},
		{"an id again, for Gemini at OpenRouter", "openrouter.ai", "google/gemini-2.5-pro", []string{asked, call, result, call, result}, []string{asked, call, result,
			strings.ReplaceAll(call, "call_1", "call_1_2"), strings.ReplaceAll(result, "call_1", "call_1_2")}},
		{"an id again, for others", "openrouter.ai", "openai/gpt-5.1", []string{asked, call, result, call, result}, nil},
		{"a model without system messages", "api.openai.com", "o1-mini-2024-09-12", []string{`{"role":"system","content":"Be brief."}`, asked}, []string{`{"role":"user","content":"Be brief."}`, asked}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.want == nil {
				row.want = row.sent
			}
			request, err := provider.OpenAI.DecodeRequest([]byte(`{"messages":[` + strings.Join(row.sent, ",") + `]}`))
			require.NoError(t, err)
			profile := transcript.OpenAI.At(row.host, row.model)
			request.Messages, _ = transcript.Repair(request.Messages, profile, transcript.Policy{})
			require.Empty(t, transcript.Check(request.Messages, profile))
			body, _, err := provider.OpenAI.EncodeRequest(request)
			require.NoError(t, err)
			require.JSONEq(t, `{"messages":[`+strings.Join(row.want, ",")+`]}`, string(body))
		})
	}
	require.Equal(t, transcript.OpenAI.At("api.groq.com", "a"), transcript.OpenAI.At("api.groq.com", "a"), "profiles are compared")
	own, err := transcript.NewProfile(transcript.OpenAI.Rules())
	require.NoError(t, err)
	require.Equal(t, own.Rules(), own.At("api.groq.com", "a").Rules(), "a program's own rules stay")
}

// Vertex AI refuses the empty texts that the Gemini API takes back, but for those
// with a signature.
func TestEmptyTextsOfGemini(t *testing.T) {
	const body = `{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"text":""}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]},{"role":"model","parts":[{"text":"","thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"text":"And?"}]}]}`
	for host, want := range map[string]string{
		"generativelanguage.googleapis.com": body, "us-central1-aiplatform.googleapis.com": strings.Replace(body, `,{"text":""}`, "", 1),
	} {
		request, err := provider.Gemini.DecodeRequest([]byte(body))
		require.NoError(t, err)
		request.Messages, _ = transcript.Repair(request.Messages, transcript.Gemini.At(host, "gemini-3-pro"), transcript.Policy{})
		sent, _, err := provider.Gemini.EncodeRequest(request)
		require.NoError(t, err)
		require.JSONEq(t, want, string(sent), host)
	}
}

// A model of Anthropic gets no thinking of another model, by whatever names the two
// are called, and no turn that ends with thinking.
func TestThinkingOfModels(t *testing.T) {
	answer := func(model string) []state.Message {
		r, err := provider.Anthropic.DecodeResponse([]byte(`{"type":"message","role":"assistant","model":"` + model + `","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"Hello"}]}`))
		require.NoError(t, err)
		return append(append([]state.Message{state.UserText("Hi")}, r.Output...), state.UserText("And?"))
	}
	for _, row := range []struct{ made, asked, want string }{
		{"claude-opus-4-8", "claude-opus-4-8", ""},
		{"claude-sonnet-4-5-20250929", "claude-sonnet-4-5", ""},
		{"claude-sonnet-4-20250514", "claude-sonnet-4-0", ""},
		{"claude-3-7-sonnet-20250219", "claude-3-7-sonnet-latest", ""},
		{"claude-sonnet-4-5-20250929", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", ""},
		{"claude-sonnet-4-5", "anthropic/claude-sonnet-4.5:beta", ""},
		{"claude-sonnet-4-5", "claude-sonnet-4-5@20250929", ""},
		{"claude-opus-4-8", "", ""},
		{"claude-opus-4-8", "my-deployment", ""},
		{"claude-opus-4-8", "claude-opus-5", "1:thinking-model"},
		{"claude-opus-4-1", "claude-opus-4", "1:thinking-model"},
		{"kimi-k3", "claude-opus-5", "1:thinking-model"},
	} {
		profile := transcript.Anthropic.At("api.anthropic.com", row.asked)
		repaired, changes := transcript.Repair(answer(row.made), profile, transcript.Policy{})
		require.Equal(t, row.want, ruled(changes), row)
		body, _, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: repaired})
		require.NoError(t, err)
		require.NotContains(t, string(body), "model")
		require.Equal(t, row.want == "", strings.Contains(string(body), "signature"), row)
		require.Empty(t, transcript.Check(repaired, profile))
	}
	const signed = `{"type":"thinking","thinking":"hm","signature":"c2ln"}`
	for content, want := range map[string]string{
		`[` + signed + `,{"type":"text","text":"Hello"}]`:                                                         `[` + signed + `,{"type":"text","text":"Hello"}]`,
		`[{"type":"text","text":"Hello"},` + signed + `]`:                                                         `[{"type":"text","text":"Hello"}]`,
		`[` + signed + `,{"type":"text","text":""}]`:                                                              "",
		`[` + signed + `,{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}]`: "",
		`[` + signed + `]`: "", `[{"type":"redacted_thinking","data":"c2ln"}]`: "",
	} {
		request, err := provider.Anthropic.DecodeRequest([]byte(`{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":` + content + `},{"role":"user","content":"And?"}]}`))
		require.NoError(t, err)
		for _, end := range []int{2, 3} {
			repaired, _ := transcript.Repair(request.Messages[:min(end, len(request.Messages))], transcript.Anthropic, transcript.Policy{AnswerCalls: true})
			require.Empty(t, transcript.Check(repaired, transcript.Anthropic))
			body, _, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: repaired})
			require.NoError(t, err)
			if want == "" && end == 3 {
				require.NotContains(t, string(body), `"assistant"`)
			} else if want != "" {
				require.Contains(t, string(body), `"content":`+want)
			}
		}
	}
}

// What was said of a conversation must not all be left out.
func TestNoMessages(t *testing.T) {
	prompt := state.Text("system", "Be brief.")
	for _, profile := range everyProfile[:4] {
		require.Equal(t, "-1:no-messages", refused(transcript.Check(nil, profile)))
		require.Empty(t, transcript.Check(nil, continued(profile)))
		repaired, changes := transcript.Repair([]state.Message{prompt, state.ToolResult(state.ToolCall{ID: "a", Name: "f"}, `"x"`)}, profile, transcript.Policy{})
		require.Empty(t, transcript.Check(repaired, profile))
		require.NotEmpty(t, changes)
	}
	for profile, want := range map[transcript.Profile]string{transcript.OpenAI: "", transcript.Anthropic: "-1:no-messages", transcript.Gemini: "-1:no-messages"} {
		repaired, changes := transcript.Repair([]state.Message{prompt}, profile, transcript.Policy{})
		require.Equal(t, want, refused(transcript.Check(repaired, profile)))
		require.Empty(t, changes)
	}
	require.Equal(t, "no-messages: there is nothing but a system prompt", transcript.Check(nil, transcript.OpenAI)[0].String())
}

// A model that takes no system messages between turns gets one of the user.
func TestNoMidSystem(t *testing.T) {
	msgs := decodeAll(t, user, `{"type":"text","role":"system","content":"Be brief.","anthropic":{}}`, say, user)
	for model, want := range map[string]string{
		"claude-opus-4-8": "", "claude-opus-5": "", "claude-fable-5": "", "": "",
		"claude-opus-4-7": "1:system", "claude-opus-4-20250514": "1:system", "claude-haiku-4-5": "1:system", "claude-3-5-sonnet-latest": "1:system",
	} {
		profile := transcript.Anthropic.At("", model)
		require.Equal(t, want, refused(transcript.Check(msgs, profile)), model)
		repaired, _ := transcript.Repair(msgs, profile, transcript.Policy{})
		require.Empty(t, transcript.Check(repaired, profile))
	}
}

// The output of a patch is optional, and that of all other items is not.
func TestOutputsOfResponses(t *testing.T) {
	for typ, want := range map[string]string{"apply_patch": "", "shell": "2:content", "computer": "2:content", "custom_tool": "2:content", "function": "2:content"} {
		request, err := provider.OpenAIResponses.DecodeRequest([]byte(`{"input":[{"role":"user","content":"Hi"},
			{"type":"` + typ + `_call","call_id":"call_1","name":"f","input":"x","arguments":"{}","status":"completed"},
			{"type":"` + typ + `_call_output","call_id":"call_1","status":"completed"}]}`))
		require.NoError(t, err)
		require.Equal(t, want, refused(transcript.Check(request.Messages, transcript.OpenAIResponses)), typ)
	}
}
