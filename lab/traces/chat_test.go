package traces

import (
	"testing"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

// calls returns an assistant's message with calls of the given ids and names.
func calls(idsAndNames ...string) string {
	list := ""
	for i := 0; i < len(idsAndNames); i += 2 {
		if i > 0 {
			list += ","
		}
		list += `{"id":"` + idsAndNames[i] + `","type":"function","function":{"name":"` + idsAndNames[i+1] + `","arguments":"{}"}}`
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + list + `]}`
}

func result(id, content string) string {
	return `{"role":"tool","tool_call_id":"` + id + `","content":"` + content + `"}`
}

// Each row is a message of a file, and the messages that become of it.
func TestChatMessages(t *testing.T) {
	for _, test := range []struct {
		name, in string
		out      []string
	}{
		{"text", `{"role":"assistant","content":"hi"}`, []string{
			`{"type":"text","role":"assistant","content":"hi"}`}},
		{"null content", `{"content":null,"role":"assistant"}`, []string{
			`{"type":"text","role":"assistant","content":null}`}},
		{"no content", `{"role":"assistant"}`, []string{
			`{"type":"text","role":"assistant"}`}},
		{"parts", `{"role":"assistant","content":[{"type":"text","text":"a","cache_control":null},{"type":"image_url"}]}`, []string{
			`{"type":"text","role":"assistant","content":[{"type":"text","text":"a","cache_control":null},{"type":"image_url"}]}`}},
		{"content of another shape", `{"role":"assistant","content":["a",1.0]}`, []string{
			`{"type":"other","role":"assistant","content":["a",1.0]}`}},
		{"unknown members, numbers as spelled", `{"role":"assistant","content":"","cost":1.50e0,"extra":{"seed":14836394043272784000}}`, []string{
			`{"type":"text","role":"assistant","content":"","cost":1.50e0,"extra":{"seed":14836394043272784000}}`}},
		{"names that are taken", `{"role":"assistant","type":"message","original_type":1,"content":"a"}`, []string{
			`{"type":"text","role":"assistant","content":"a","original_type":"message","original_original_type":1}`}},
		{"empty and null calls", `{"role":"assistant","content":"a","tool_calls":[],"function_call":{"name":"","arguments":""}}`, []string{
			`{"type":"text","role":"assistant","content":"a","tool_calls":[],"function_call":{"name":"","arguments":""}}`}},
		{"a call with null content", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"}}],"agent":"main"}`, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","input":{"a":1.0},"type":"function"}],"content":null,"agent":"main"}`}},
		{"a call without content", `{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","input":{}}]}`}},
		{"text and calls", `{"role":"assistant","content":"a","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}},{"id":"2","function":{"name":"g","arguments":"{}"}}],"x":0}`, []string{
			`{"type":"text","role":"assistant","content":"a","x":0}`,
			`{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","input":{}},{"id":"2","name":"g","input":{}}]}`}},
		{"arguments that are no object in a string", `{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":""}},{"function":{"name":"f","arguments":"[1"}},{"function":{"name":"f","arguments":"1.0"}},{"function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"f"}}]}`, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"name":"f","input":""},{"name":"f","input":"[1"},{"name":"f","input":"1.0"},{"name":"f","input":{"a":1}},{"name":"f"}]}`}},
		{"calls of odd shape", `{"role":"assistant","tool_calls":[{"id":null,"function":{"name":"f","strict":true}},{"id":7,"name":"g","arguments":null},null]}`, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"id":null,"name":"f","function":{"strict":true}},{"id":"7","name":"g","input":null,"original_id":7},{"value":null}]}`}},
		{"what there was before tool_calls", `{"role":"assistant","content":null,"tool_calls":null,"function_call":{"name":"f","arguments":"{}"}}`, []string{
			`{"type":"tool_call","role":"assistant","tools":[{"name":"f","input":{}}],"content":null,"tool_calls":null}`}},
		{"a turn of the Responses API", `{"object":"response","output":[{"type":"reasoning","id":"r"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call","call_id":"d","name":"g","arguments":""}],"x":1}`, []string{
			`{"type":"item","original_type":"reasoning","id":"r","object":"response","x":1}`,
			`{"type":"text","role":"assistant","content":[{"type":"output_text","text":"a"}],"original_type":"message"}`,
			`{"type":"tool_call","role":"assistant","tools":[{"id":"c","name":"f","input":{},"type":"function_call","original_id":"fc"},{"id":"d","name":"g","input":"","type":"function_call"}]}`}},
		{"an empty turn of the Responses API", `{"output":[],"status":"failed"}`, []string{
			`{"type":"text","role":"assistant","status":"failed"}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := one(t, tau(test.in))
			require.Len(t, run.Steps, 1)
			require.Equal(t, test.out, raws(run.Steps[0].Output))
			require.Equal(t, test.in, run.Steps[0].Raw)
			require.Equal(t, "$.traj[0]", run.Steps[0].Path)
		})
	}
}

func TestRawIsTheTurnAsItIsInTheFile(t *testing.T) {
	const turn = "{ \"role\" : \"assistant\",\n\t\"content\": \"\\u0041 < \\/ é\", \"n\": [ 1.0 , -0.0 ] }"
	require.Equal(t, turn, one(t, tau(turn)).Steps[0].Raw)
}

func TestAnyRoleIsSaid(t *testing.T) {
	run := one(t, tau(
		`{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`, `{"role":"assistant","content":"a"}`,
		`{"role":"system","content":"late"}`, `{"role":"Orchestrator (-> Web)","content":"o"}`, `{"content":"none"}`, `{"role":null}`,
		`{"role":"assistant","content":"b"}`, `{"role":"assistant","content":"c"}`,
		`{"role":"exit","content":"done"}`))
	require.Len(t, run.Steps, 3)
	require.Equal(t, []string{
		`{"type":"text","role":"system","content":"late"}`,
		`{"type":"text","role":"Orchestrator (-> Web)","content":"o"}`,
		`{"type":"text","role":"unknown","content":"none"}`,
		`{"type":"text","role":"unknown","original_role":null}`,
	}, raws(run.Steps[1].Said))
	require.Empty(t, run.Steps[2].Said)
	require.Equal(t, []string{`{"type":"text","role":"exit","content":"done"}`}, raws(run.Rest))
}

func TestAgentOfATurn(t *testing.T) {
	run := one(t, tau(
		`{"role":"assistant","content":"","agent":"main","name":"n"}`,
		`{"role":"assistant","content":"","name":"Web (surfer)"}`,
		`{"role":"assistant","content":""}`,
		`{"role":"assistant","content":"","agent":null}`))
	var agents []string
	for _, step := range run.Steps {
		agents = append(agents, step.Agent)
	}
	require.Equal(t, []string{"main", "Web (surfer)", "assistant", "assistant"}, agents)
}

// Each row is a conversation, and for each turn which calls the results that
// follow it answer, as "name id".
func TestResultsBelongToCalls(t *testing.T) {
	for _, test := range []struct {
		name string
		in   []string
		out  [][]string
	}{
		{"one id for calls of two turns",
			[]string{calls("1", "f"), result("1", "a"), calls("1", "g"), result("1", "b")},
			[][]string{{"f 1"}, {"g 1"}}},
		{"one id for calls of one turn",
			[]string{calls("1", "f", "1", "g"), result("1", "a"), result("1", "b")},
			[][]string{{"f 1", "g 1"}}},
		{"one id, and names tell",
			[]string{calls("1", "f", "1", "g"), `{"role":"tool","tool_call_id":"1","name":"g"}`, `{"role":"tool","tool_call_id":"1","name":"f"}`},
			[][]string{{"g 1", "f 1"}}},
		{"one id, and the first call has no result",
			[]string{calls("1", "f"), `{"role":"user","content":"go on"}`, calls("1", "g"), result("1", "b")},
			[][]string{{}, {"g 1"}}},
		{"in another order",
			[]string{calls("1", "f", "2", "g"), result("2", "a"), result("1", "b")},
			[][]string{{"g 2", "f 1"}}},
		{"no ids",
			[]string{calls("", "f", "", "g"), `{"role":"tool","content":"a"}`, `{"role":"tool","content":"b"}`},
			[][]string{{"f ", "g "}}},
		{"no ids, but names",
			[]string{calls("", "f", "", "g"), `{"role":"tool","name":"g"}`, `{"role":"tool","name":"f"}`},
			[][]string{{"g ", "f "}}},
		{"a name that is not the call's",
			[]string{calls("1", "f"), `{"role":"tool","tool_call_id":"1","name":"other"}`},
			[][]string{{"f 1"}}},
		{"a list of ids",
			[]string{calls("1", "f", "2", "g"), `{"role":"tool","tool_call_ids":["1","2"],"content":"both"}`},
			[][]string{{"f 1", "g 2"}}},
		{"null for a list of ids",
			[]string{calls("1", "f"), `{"role":"tool","tool_call_ids":null,"content":"a"}`},
			[][]string{{"f 1"}}},
		{"a function's result",
			[]string{`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"a"}`},
			[][]string{{"f "}}},
		{"the Responses API",
			[]string{`{"output":[{"type":"function_call","id":"x","call_id":"1","name":"f"}]}`, `{"type":"function_call_output","call_id":"1","output":"a"}`},
			[][]string{{"f 1"}}},
		{"an orphan is not part of the turn",
			[]string{calls("1", "f"), result("9", "a")},
			[][]string{{}}},
		{"a second answer is not part of the turn",
			[]string{calls("1", "f"), result("1", "a"), result("1", "b")},
			[][]string{{"f 1"}}},
		{"a late result is not part of the turn before it",
			[]string{calls("1", "f"), calls("2", "g"), result("1", "late"), result("2", "a")},
			[][]string{{}, {}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := one(t, tau(test.in...))
			got := [][]string{}
			for _, step := range run.Steps {
				got = append(got, answered(step))
			}
			require.Equal(t, test.out, got)
		})
	}
}

// A result that does not directly follow its turn keeps its place in the
// conversation, and its call.
func TestLateResultsAndOrphansKeepTheirPlace(t *testing.T) {
	run := one(t, tau(calls("1", "f"), `{"role":"user","content":"wait"}`, result("1", "late"), result("9", "orphan")))
	require.Len(t, run.Rest, 3)
	require.Equal(t, "wait", run.Rest[0].(state.TextMessage).Text())
	late := run.Rest[1].(state.ToolResultMessage)
	require.Equal(t, "f", late.Call().Name)
	require.Equal(t, `{"type":"tool_result","role":"tool","tool":{"id":"9"},"content":"orphan","tool_call_id":"9"}`, string(run.Rest[2].Raw()))
}

func TestResultsKeepTheirContent(t *testing.T) {
	for _, content := range []string{`""`, `"299.0"`, `"true"`, `null`, `[{"type":"text","text":"a"}]`, `{"a":1.0}`} {
		run := one(t, tau(calls("1", "f"), `{"role":"tool","tool_call_id":"1","content":`+content+`}`))
		require.Equal(t, state.JSON(content), run.Steps[0].Results[0].Content())
	}
	run := one(t, tau(calls("1", "f"), `{"role":"tool","tool_call_id":"1","is_error":true}`))
	require.Equal(t, state.JSON(""), run.Steps[0].Results[0].Content())
	require.True(t, run.Steps[0].Results[0].IsError())
}
