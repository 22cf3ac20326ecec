package transcript_test

import (
	"testing"

	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

func TestCheckOpenAI(t *testing.T) {
	checkScripts(t, transcript.OpenAI, []checkRow{
		{"results directly after calls", "u a c1 c2 r2 r1 u", ""},
		{"text of the calls' entry", "u c1 +a r1", ""},
		{"the user between", "u c1 u r1", "3:not-adjacent"},
		{"the system between", "u c1 s r1", "3:not-adjacent"},
		{"text of another entry between", "u c1 a r1", "3:not-adjacent"},
		{"two entries with calls, then results", "u c1 -c2 r2 r1", "4:not-adjacent"},
		{"results of two rounds together", "u c1 r1 a -c2 r2 u", ""},
		{"a result after another entry", "u c1,2 r1 a r2", "4:not-adjacent"},
		{"an id twice at once", "u c1 c1 r1 r1", "2:duplicate-id"},
		{"an id used again", "u c1 r1 c1 r1", ""},
		{"an id that waits indefinitely", "u c1 u c1 r1 r1", "3:duplicate-id 4:not-adjacent"},
		{"the assistant begins", "a c1 r1", ""},
		{"the system in the middle", "u a s d u", ""},
	})
}

func TestCheckOpenAIResponses(t *testing.T) {
	checkScripts(t, transcript.OpenAIResponses, []checkRow{
		{"results anywhere after calls", "u c1 u c2 a r2 s r1", ""},
		{"an id twice at once", "u c1 u c1 r1 r1", "3:duplicate-id"},
		{"an id used again", "u c1 r1 c1 r1", "3:duplicate-id"},
		{"reasoning with its message", "u rs1 msg1 u", ""},
		{"reasoning with another message", "u rs1 a u", "1:reasoning"},
		{"reasoning with its call", "u rs1 c1 r1", ""},
		{"reasoning goes on", "u rs1 rs2 msg1", ""},
		{"reasoning goes on, with a call", "u rs1 rs2 c1 r1", ""},
		{"reasoning whose call is gone", "u rs1 u", "1:reasoning"},
		{"reasoning before a result", "u c1 rs1 r1", "2:reasoning"},
		{"reasoning at the end", "u a rs1", ""},
		{"a message's item twice", "u msg1 msg2 msg1", "3:duplicate-item"},
		{"an item twice", "u rs1 msg1 rs1 msg2", "3:duplicate-item"},
	})
	checkMessages(t, transcript.OpenAIResponses, []messagesRow{
		{"reasoning with its item", []string{user, reason, search, say}, ""},
		{"reasoning of another server", []string{user, `{"type":"openai_responses.reasoning","role":"assistant","item":{"type":"reasoning","id":"1e97d346"}}`, say}, ""},
		{"reasoning without id", []string{user, `{"type":"openai_responses.reasoning","role":"assistant","item":{"type":"reasoning"}}`, user}, ""},
		{"a call's item twice", []string{user,
			`{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","openai_responses":{"more":{"id":"fc_1"}}}],"openai_responses":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":"","openai_responses":{"more":{"id":"fco_1"}}}`,
			`{"type":"tool_call","role":"assistant","tools":[{"id":"2","name":"f","openai_responses":{"more":{"id":"fc_1"}}}],"openai_responses":{}}`,
			`{"type":"tool_result","role":"tool_result","tool":{"id":"2","name":"f"},"content":"","openai_responses":{"more":{"id":"fco_1"}}}`,
		}, "3:duplicate-item 4:duplicate-item"},
	})
}

func TestCheckAnthropic(t *testing.T) {
	checkScripts(t, transcript.Anthropic, []checkRow{
		{"results directly after calls", "s u a c1,2 r2 r1 u", ""},
		{"text of the same turn between", "u c1 a r1", ""},
		{"two entries with calls, then results", "u c1 -c2 r2 r1", ""},
		{"the user between", "u c1 u r1", "3:not-adjacent"},
		{"the system between", "u c1 s r1", "2:system 3:not-adjacent"},
		{"a result after another turn", "u c1,2 r1 a r2", "4:not-adjacent"},
		{"an id twice", "u c1,1 r1 r1", "1:duplicate-id"},
		{"an id used again", "u c1 r1 a u c1 r1", "5:duplicate-id"}, // but see TestCheckIDsOfAnthropic
		{"several texts of the system first", "s d s u", ""},
		{"the system in the middle", "s u s", "2:system"},
		{"the assistant begins", "s a u", ""},
		{"calls begin", "c1 r1", ""},
		{"only the system", "s", "-1:no-messages"},
		{"the system before the user", "s u s u", "2:system"},
	})
}

func TestCheckGemini(t *testing.T) {
	checkScripts(t, transcript.Gemini, []checkRow{
		{"results directly after calls", "s u a c1,2 r2 r1 u", ""},
		{"calls after results", "u c1 r1 c2 r2", ""},
		{"the user between", "u c1 u r1", "3:not-adjacent"},
		{"text of another content of the same turn between", "u c1 a r1", ""},
		{"a result after another content", "u c1,2 r1 u r2", "4:not-adjacent"},
		{"ids twice", "u c1,1 r1 r1 a u c1 r1", ""},
		{"no ids", "u c=f,=g r=g r=f", ""},
		{"a result without the id of its call", "u c1,2 r=f r2", ""},
		{"a result with another id", "u c1 r2", "1:unanswered-call 2:orphan-result"},
		{"only the system", "s", "-1:no-messages"},
		{"another name", "u c1=f r1=g", "2:name"},
		{"calls after another content of the same turn", "u a -c1 r1", ""},
		{"calls first", "c1 r1", "0:first 0:call-turn"},
		{"calls after calls", "u c1 -c2 r1 r2", ""},
		{"the assistant begins", "s a u", "1:first"},
		{"the system in the middle", "u a s u", "2:system"},
		{"several texts of the system first", "s d u", ""},
	})
}

// Gemini accepts responses in several contents. A content with several of them has
// nothing else.
func TestCheckResponsesOfGemini(t *testing.T) {
	const calls = `{"type":"tool_call","role":"assistant","tools":[{"name":"f"},{"name":"g"}]}`
	const first = `{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":{}}`
	const second = `{"type":"tool_result","role":"tool_result","tool":{"name":"g"},"content":{}`
	checkMessages(t, transcript.Gemini, []messagesRow{
		{"in one content", []string{user, calls, first, second + `,"gemini":{"joined":true}}`}, ""},
		{"in one content, as it is not said", []string{user, calls, first, second + `}`}, ""},
		{"in one content, whatever other providers have", []string{user, calls, first, second + `,"openai":{"joined":false}}`}, ""},
		{"in two contents", []string{user, calls, first, second + `,"gemini":{"joined":false}}`}, ""},
		{"in two contents, the user between", []string{user, calls, first, user, second + `}`}, "4:not-adjacent"},
		{"and the user after them", []string{user, calls, first, second + `}`, user}, ""},
		{"and the user in the content", []string{user, calls, first, second + `}`, `{"type":"text","role":"user","content":"go on","gemini":{"joined":true}}`}, "4:not-adjacent"},
		{"and the user in the content of the only result", []string{user, `{"type":"tool_call","role":"assistant","tools":[{"name":"f"}]}`, first, `{"type":"text","role":"user","content":"go on","gemini":{"joined":true}}`}, ""},
		{"and the user in the content of the second result", []string{user, calls, first, second + `,"gemini":{"joined":false}}`, `{"type":"text","role":"user","content":"go on","gemini":{"joined":true}}`}, ""},
	})
}

// withContent returns messages in which the second message of the role has the
// content.
func withContent(role, content string, rest ...string) []string {
	m := `{"type":"text","role":"` + role + `","content":` + content + `}`
	if content == "" {
		m = `{"type":"text","role":"` + role + `"}`
	}
	return append([]string{user, m}, rest...)
}

func TestCheckContent(t *testing.T) {
	const call, result = `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}]}`,
		`{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":""}`
	for _, row := range []struct {
		name string
		msgs []string
		want [4]string // of OpenAI, OpenAIResponses, Anthropic and Gemini
	}{
		{"text", withContent("user", `"x"`), [4]string{}},
		{"null", withContent("user", `null`), [4]string{"1:content", "1:content", "1:empty", "1:content"}},
		{"missing", withContent("user", ``), [4]string{"1:content", "1:content", "1:empty", "1:content"}},
		{"no parts", withContent("user", `[]`), [4]string{"1:content", "1:content", "1:empty", "1:content"}},
		{"empty", withContent("user", `""`), [4]string{"", "", "1:empty", "1:empty"}},
		{"space", withContent("user", `" \n\t"`), [4]string{"", "", "1:empty", ""}},
		{"an empty part", withContent("user", `[{"type":"text","text":"x"},{"type":"text","text":""}]`), [4]string{"", "", "1:empty", "1:empty"}},
		{"an empty part that Gemini has sent", []string{user, `{"type":"text","role":"assistant","content":[{"type":"text","text":"x"},{"type":"text","text":""}],"gemini":{}}`, user}, [4]string{"", "", "1:empty", ""}},
		{"a content of Gemini without parts", []string{user, `{"type":"text","role":"assistant","content":[],"gemini":{"more":{}}}`, user}, [4]string{"1:content", "1:content", "1:empty", ""}},
		{"the same of the user", []string{user, `{"type":"text","role":"user","content":[],"gemini":{"more":{}}}`}, [4]string{"1:content", "1:content", "1:empty", "1:content"}},
		{"a part of space", withContent("user", `[{"type":"text","text":" "}]`), [4]string{"", "", "1:empty", ""}},
		{"a part without a type", []string{user, `{"type":"text","role":"user","content":[{"text":"x"}],"openai":{}}`}, [4]string{"1:content"}},
		{"a part without a type, from elsewhere", withContent("user", `[{"text":"x"}]`), [4]string{}},
		{"another part", withContent("user", `[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]`), [4]string{}},
		{"null at the end", withContent("assistant", `null`), [4]string{"1:content", "1:content", "", "1:content"}},
		{"null and more", withContent("assistant", `null`, user), [4]string{"1:content", "1:content", "1:empty", "1:content"}},
		{"null with calls", withContent("assistant", `null`, call, result), [4]string{"", "1:content", "", ""}},
		{"null with calls and null alone", withContent("assistant", `null`, call, result, `{"type":"text","role":"user"}`), [4]string{"4:content", "1:content 4:content", "4:empty", "4:content"}},
		{"empty with calls", withContent("assistant", `""`, call, result), [4]string{}},
		{"empty with calls, as Gemini said it", []string{user, `{"type":"text","role":"assistant","content":"","gemini":{}}`, call, result}, [4]string{}},
		{"space with calls", withContent("assistant", `" "`, call, result), [4]string{}},
		{"a part of space with calls", withContent("assistant", `[{"type":"text","text":" "}]`, call, result), [4]string{}},
		{"an empty part with calls", withContent("assistant", `[{"type":"text","text":""}]`, call, result), [4]string{"", "", "1:empty", ""}},
		{"a refusal", []string{user, `{"type":"text","role":"assistant","content":null,"openai":{"more":{"refusal":"no"}}}`, user}, [4]string{"", "1:content", "1:empty", "1:content"}},
		{"a refusal of the user's", []string{user, `{"type":"text","role":"user","content":null,"openai":{"more":{"refusal":"no"}}}`}, [4]string{"1:content", "1:content", "1:empty", "1:content"}},
		{"an image of Anthropic's assistant", []string{user, `{"type":"text","role":"assistant","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"https://e.org/a.png"}}],"anthropic":{}}`, user}, [4]string{"", "", "1:content", ""}},
		{"an image of another assistant", []string{user, `{"type":"text","role":"assistant","content":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}],"gemini":{}}`, user}, [4]string{}},
		{"no refusal", []string{user, `{"type":"text","role":"assistant","content":null,"openai":{"more":{"refusal":null}}}`, user}, [4]string{"1:content", "1:content", "1:empty", "1:content"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := decodeAll(t, row.msgs...)
			for i, profile := range everyProfile {
				require.Equal(t, row.want[i], refused(transcript.Check(msgs, profile)), profile)
			}
		})
	}
}

// A result that came from the provider is sent back unchanged.
func TestCheckContentOfResults(t *testing.T) {
	for mark, from := range map[string]transcript.Profile{"openai": transcript.OpenAI, "openai_responses": transcript.OpenAIResponses} {
		own := decodeAll(t, user, `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}]}`,
			`{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"`+mark+`":{}}`)
		for _, profile := range everyProfile {
			want := ""
			if profile == from {
				want = "2:content"
			}
			require.Equal(t, want, refused(transcript.Check(own, profile)), "%s, %s", mark, profile)
		}
	}
}

// Some models of Anthropic accept system messages between turns. A conversation
// with another provider does not tell whether the model is one of these.
func TestCheckSystemOfAnthropic(t *testing.T) {
	const system = `{"type":"text","role":"system","content":"Be brief.","anthropic":{}}`
	checkMessages(t, transcript.Anthropic, []messagesRow{
		{"the prompt", []string{`{"type":"text","role":"system","content":"Be brief.","anthropic":{"in":"system"}}`, user, say}, ""},
		{"after the user", []string{user, system, say}, ""},
		{"at the end", []string{user, say, user, system}, ""},
		{"before the user", []string{user, system, user}, "1:system"},
		{"twice before the user", []string{user, system, system, user}, "1:system 2:system"},
		{"twice after the user", []string{user, system, system, say}, ""},
		{"after the assistant", []string{user, say, system}, "2:system"},
		{"after the result of the provider's own tool", []string{user, serverUse, serverResult, system, say, user}, ""},
		{"after such a result without its call", []string{user, `{"type":"text","role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"f","input":{}}],"anthropic":{}}`, system}, "2:system"},
		{"after what cannot be there", []string{user, say, system, system}, "2:system 3:system"},
		{"first", []string{system, user}, "0:system"},
		{"after one from elsewhere", []string{user, `{"type":"text","role":"system","content":"Be brief."}`, system}, "1:system 2:system"},
	})
}

func TestCheckServerTools(t *testing.T) {
	checkMessages(t, transcript.Anthropic, []messagesRow{
		{"a call and its result", []string{user, serverUse, serverResult, say}, ""},
		{"a call that continues", []string{user, serverUse}, ""},
		{"with calls by the server", []string{user, serverUse, callByServer, resultOfIt}, ""},
		{"a call that was given up", []string{user, serverUse, user}, "1:server-tool"},
		{"a result later", []string{user, serverUse, user, serverResult}, ""},
		{"a result without call", []string{user, serverResult, say}, "1:server-tool"},
		{"a result before its call", []string{user, serverResult, serverUse}, "1:server-tool"},
	})
}

// Anthropic has accepted an id again after its answer. It is unknown whether all of
// its models do. Therefore calls from other providers get other ids.
func TestCheckIDsOfAnthropic(t *testing.T) {
	call := func(mark string) string {
		return `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}]` + mark + `}`
	}
	const own, result = `,"anthropic":{}`, `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":"x"}`
	checkMessages(t, transcript.Anthropic, []messagesRow{
		{"its own", []string{user, call(own), result, call(own), result}, ""},
		{"from elsewhere", []string{user, call(own), result, call(""), result}, "3:duplicate-id"},
		{"its own at once", []string{user, call(own), call(own), result, result}, "2:duplicate-id"},
	})
}

// Parts in the words of OpenAI's other API, and arguments that are no string,
// are refused if they came in a request of the API: they are sent back as they
// are.
func TestCheckWordsOfOpenAI(t *testing.T) {
	text := func(role, typ, mark string) string {
		return `{"type":"text","role":"` + role + `","content":[{"type":"` + typ + `","text":"a"}]` + mark + `}`
	}
	call := func(kept string) []string {
		return []string{user, `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","input":{"a":1}` + kept + `}]}`,
			`{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":""}`}
	}
	const chat, items = `,"openai":{"more":{"name":"x"}}`, `,"openai_responses":{}`
	for _, row := range []struct {
		name    string
		profile transcript.Profile
		msgs    []string
		want    string
	}{
		{"a text of the other API", transcript.OpenAI, []string{text("user", "input_text", chat)}, "0:content"},
		{"the same of a program", transcript.OpenAI, []string{text("user", "input_text", "")}, ""},
		{"the same from the other API", transcript.OpenAI, []string{text("user", "input_text", items)}, ""},
		{"its own", transcript.OpenAI, []string{text("user", "text", chat)}, ""},
		{"what the assistant says, of the user", transcript.OpenAIResponses, []string{text("user", "output_text", items)}, "0:content"},
		{"what the user says, of the assistant", transcript.OpenAIResponses, []string{user, text("assistant", "input_text", items)}, "1:content"},
		{"an image of Chat Completions", transcript.OpenAIResponses, []string{text("user", "image_url", items)}, "0:content"},
		{"its own", transcript.OpenAIResponses, []string{text("user", "text", items)}, ""},
		{"an object", transcript.OpenAI, call(`,"openai":{"in":{"function":{"more":{"arguments":{"a":1},"x":1}}}}`), "1:arguments"},
		{"another spelling", transcript.OpenAI, call(`,"openai":{"in":{"function":{"more":{"arguments":"{ \"a\":1}"}}}}`), ""},
		{"an object from the other API", transcript.OpenAI, call(`,"openai_responses":{"more":{"arguments":{"a":1}}}`), ""},
		{"an object in an item", transcript.OpenAIResponses, call(`,"openai_responses":{"more":{"arguments":{"a":1}}}`), "1:arguments"},
	} {
		t.Run(row.profile.String()+"/"+row.name, func(t *testing.T) {
			msgs := decodeAll(t, row.msgs...)
			require.Equal(t, row.want, refused(transcript.Check(msgs, row.profile)))
			repaired, changes := transcript.Repair(msgs, row.profile, transcript.Policy{})
			require.Empty(t, transcript.Check(repaired, row.profile))
			require.Equal(t, row.want, ruled(changes))
			require.Len(t, repaired, len(msgs))
		})
	}
}
