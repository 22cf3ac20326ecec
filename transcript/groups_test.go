package transcript_test

import (
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// The numbers are those of the cases for grouping calls and results in Microsoft's
// Agent Framework.
func TestGroups(t *testing.T) {
	for _, row := range []struct {
		name   string
		script string
		want   [][]int
	}{
		{"1: a call and its result", "u c1 r1 a", [][]int{{0}, {1, 2}, {3}}},
		{"2: reasoning before the call", "u rs1 c1 r1 a", [][]int{{0}, {1, 2, 3}, {4}}},
		{"2: reasoning after the call", "u c1 rs1 r1 a", [][]int{{0}, {1, 2, 3}, {4}}},
		{"2: reasoning in the call's entry", "u think +c1 r1 a", [][]int{{0}, {1, 2, 3}, {4}}},
		{"2: reasoning as a text before the call", "u think c1 r1 a", [][]int{{0}, {1, 2, 3}, {4}}},
		{"3: a result that is not adjacent", "c1 a r1", [][]int{{0, 2}, {1}}},
		{"4: two calls of one message, results apart", "c1,2 a r1 a r2", [][]int{{0, 2, 4}, {1}, {3}}},
		{"5: two messages answered in one entry", "c1 a -c2 r1 +r2", [][]int{{0, 2, 3, 4}, {1}}},
		{"5: with something said in it", "c1 a -c2 r1 +u +r2", [][]int{{0, 2, 3, 5}, {1}, {4}}},
		{"6: a result of an unknown call", "c1 r9", [][]int{{0}, {1}}},
		{"7: a result before its call", "r1 a -c1", [][]int{{0}, {1}, {2}}},
		{"8: one id, two calls, one result", "c1 a -c1 r1", [][]int{{0}, {1}, {2}, {3}}},
		{"9: an id used again", "c1 r1 c1 a r1", [][]int{{0, 1}, {2, 4}, {3}}},
		{"10: a result in the call's entry", "c1 +r1 u c1 r1", [][]int{{0, 1}, {2}, {3, 4}}},
		{"13: a late result", "c1 u a r1", [][]int{{0, 3}, {1}, {2}}},

		{"text before calls is of their turn", "u a c1 r1", [][]int{{0}, {1, 2, 3}}},
		{"unless it says that it is not", "u a -c1 r1", [][]int{{0}, {1}, {2, 3}}},
		{"text after calls in their entry", "u c1 +a r1", [][]int{{0}, {1, 2, 3}}},
		{"calls in a row are one turn", "u c1 -c2 r2 r1 c3 r3", [][]int{{0}, {1, 2, 3, 4}, {5, 6}}},
		{"with reasoning between", "u rs1 c1 rs2 c2 r1 r2 a", [][]int{{0}, {1, 2, 3, 4, 5, 6}, {7}}},
		{"reasoning goes with what is said next", "u rs1 a u", [][]int{{0}, {1, 2}, {3}}},
		{"reasoning goes on", "u rs1 rs2 a", [][]int{{0}, {1, 2, 3}}},
		{"reasoning goes on after a call", "c1 rs1 rs2 r1", [][]int{{0, 1, 2, 3}}},
		{"reasoning at the end", "u a rs1", [][]int{{0}, {1}, {2}}},
		{"reasoning at the end of a turn", "u c1 rs1", [][]int{{0}, {1, 2}}},
		{"reasoning before the user", "a rs1 u", [][]int{{0}, {1}, {2}}},
		{"text pieces of one entry are not tied", "u a +a", [][]int{{0}, {1}, {2}}},
		{"with reasoning they are", "u think +a +a u", [][]int{{0}, {1, 2, 3}, {4}}},
		{"what the user says with results is not tied", "c1 r1 +u", [][]int{{0, 1}, {2}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, transcript.Groups(script(t, row.script)))
		})
	}
}

const (
	approval = `{"type":"openai_responses.mcp_approval_request","role":"assistant","item":{"type":"mcp_approval_request","id":"mcpr_1"}}`
	approved = `{"type":"openai_responses.mcp_approval_response","role":"user","item":{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}}`
	hosted   = `{"type":"openai_responses.mcp_call","role":"assistant","item":{"type":"mcp_call","id":"mcp_1","approval_request_id":"mcpr_1"}}`
	search   = `{"type":"openai_responses.web_search_call","role":"assistant","item":{"type":"web_search_call","id":"ws_1"}}`
	find     = `{"type":"openai_responses.tool_search_call","role":"assistant","item":{"type":"tool_search_call","id":"ts_1","call_id":"c"}}`
	found    = `{"type":"openai_responses.tool_search_output","role":"user","item":{"type":"tool_search_output","id":"ts_2","call_id":"c"}}`
	reason   = `{"type":"openai_responses.reasoning","role":"assistant","item":{"type":"reasoning","id":"rs_1"}}`
	user     = `{"type":"text","role":"user","content":"hello"}`
	say      = `{"type":"text","role":"assistant","content":"hello"}`

	serverUse     = `{"type":"text","role":"assistant","content":[{"type":"server_tool_use","id":"srv_1","name":"code_execution","input":{}}],"anthropic":{}}`
	serverResult  = `{"type":"text","role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srv_1","content":{}}],"anthropic":{}}`
	joinedSay     = `{"type":"text","role":"assistant","content":"hello","anthropic":{"joined":true}}`
	joinedUse     = `{"type":"text","role":"assistant","content":[{"type":"server_tool_use","id":"srv_1","name":"code_execution","input":{}}],"anthropic":{"joined":true}}`
	joinedThought = `{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"hello"}],"anthropic":{"joined":true}}`
	callByServer  = `{"type":"tool_call","role":"assistant","tools":[{"id":"t1","name":"f","input":{},"anthropic":{"more":{"caller":{"type":"code_execution_20250825","tool_id":"srv_1"}}}}],"anthropic":{}}`
	prompt        = `{"type":"text","role":"system","content":"Be brief.","anthropic":{"in":"system"}}`
	system        = `{"type":"text","role":"system","content":"Be brief.","anthropic":{"in":"messages"}}`
	resultOfIt    = `{"type":"tool_result","role":"tool_result","tool":{"id":"t1","name":"f"},"content":"","anthropic":{}}`
)

func TestProvidersOwnToolsAreGrouped(t *testing.T) {
	for _, row := range []struct {
		name string
		msgs []string
		want [][]int
	}{
		{"a call in one entry with texts", []string{user, say, joinedUse, joinedSay}, [][]int{{0}, {1, 2, 3}}},
		{"reasoning in one entry with texts", []string{user, say, joinedThought, joinedSay}, [][]int{{0}, {1, 2, 3}}},
		{"texts in one entry", []string{user, say, joinedSay}, [][]int{{0}, {1}, {2}}},
		{"a hosted call and its reasoning", []string{user, reason, search, say}, [][]int{{0}, {1, 2}, {3}}},
		{"an approval", []string{user, approval, user, approved, hosted}, [][]int{{0}, {1, 3, 4}, {2}}},
		{"items that share the id of a call", []string{find, found, say}, [][]int{{0, 1}, {2}}},
		{"a call and its result in other messages", []string{user, serverUse, user, serverResult, say}, [][]int{{0}, {1, 3}, {2}, {4}}},
		{"calls that code makes", []string{user, serverUse, callByServer, resultOfIt, serverResult, say}, [][]int{{0}, {1, 2, 3, 4}, {5}}},
		{"the system after the user", []string{user, say, user, system, system, say}, [][]int{{0}, {1}, {2, 3, 4, 5}}},
		{"the system after a result", []string{user, callByServer, resultOfIt, system, say}, [][]int{{0}, {1, 2, 3, 4}}},
		{"the system after an item of another provider", []string{user, reason, system, say}, [][]int{{0, 1, 2, 3}}},
		{"the system prompt", []string{prompt, user}, [][]int{{0}, {1}}},
		{"one after another", []string{user, serverUse, say, callByServer, resultOfIt, serverResult}, [][]int{{0}, {1, 2, 3, 4, 5}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, transcript.Groups(decodeAll(t, row.msgs...)))
		})
	}
}

func TestGroupsOfWhatIsNoMessage(t *testing.T) {
	require.Equal(t, [][]int{{0}, {1}, {2, 5}, {3}, {4}},
		transcript.Groups([]state.Message{
			nil, state.TextMessage{}, state.ToolCalls(state.ToolCall{ID: "1"}), state.ToolCallMessage{}, state.ToolResultMessage{},
			state.ToolResult(state.ToolCall{ID: "1"}, ""),
		}))
	require.Empty(t, transcript.Groups(nil))
}

func decodeAll(t testing.TB, texts ...string) []state.Message {
	t.Helper()
	msgs := make([]state.Message, len(texts))
	for i, text := range texts {
		msgs[i] = decode(t, text)
	}
	return msgs
}
