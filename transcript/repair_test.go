package transcript_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// short describes messages and changes, each on a line.
func short[T interface{ String() string }](list []T) string {
	var lines []string
	for _, one := range list {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

type repairRow struct {
	name    string
	profile transcript.Profile
	script  string
	want    string // indexes of the messages that stay unchanged, in their order
	changes string // indexes and rules
}

func TestRepairDropsAndMoves(t *testing.T) {
	for _, row := range []repairRow{
		{"a valid history stays", transcript.Anthropic, "s u c1 r1 a", "0 1 2 3 4", ""},
		{"a call without result is dropped", transcript.OpenAI, "u c1 u", "0 2", "1:unanswered-call"},
		{"a result without call is dropped", transcript.OpenAI, "u r1 a", "0 2", "1:orphan-result"},
		{"so is a second result", transcript.Anthropic, "u c1 r1 r1 a", "0 1 2 4", "3:orphan-result"},
		{"and one before its call, with the call", transcript.Gemini, "u r1 c1 u", "0 3", "1:orphan-result 2:unanswered-call"},
		{"but what is continued may begin with one", continued(transcript.OpenAIResponses), "r1 u c2", "0 1", "2:unanswered-call"},
		{"a result moves to its call", transcript.Anthropic, "u c1 u r1 a", "0 1 3 2 4", "3:not-adjacent"},
		{"or may stay", transcript.OpenAIResponses, "u c1 u r1 c2", "0 1 2 3", "4:unanswered-call"},
		{"results keep their order", transcript.OpenAI, "u c1,2,3 u r3 a r1 r2", "0 1 3 5 6 2 4", "3:not-adjacent 5:not-adjacent 6:not-adjacent"},
		{"each goes to its own turn", transcript.OpenAI, "u c1 c2 u c3 r3 r2 r1", "0 1 2 6 7 3 4 5", "6:not-adjacent 7:not-adjacent"},
		{"what one turn of Anthropic's is", transcript.Anthropic, "u c1 a r1 c2", "0 1 2 3", "4:unanswered-call"},
		{"reasoning goes with its call", transcript.OpenAIResponses, "u rs1 c1 u", "0 3", "1:reasoning 2:unanswered-call"},
		{"or with what it followed", transcript.OpenAIResponses, "u rs1 rs2 rs3 c1 u a", "0 5 6", "1:reasoning 2:reasoning 3:reasoning 4:unanswered-call"},
		{"thoughts likewise", transcript.Anthropic, "u think c1 u", "0 3", "1:reasoning 2:unanswered-call"},
		{"unless there is an answer", transcript.OpenAIResponses, "u rs1 c1 r1 rs2 c2", "0 1 2 3", "4:reasoning 5:unanswered-call"},
		{"an item that is there twice", transcript.OpenAIResponses, "u rs1 c1 r1 rs1 c2 r2", "0 1 2 3 5 6", "4:duplicate-item"},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := script(t, row.script)
			repaired, changes := transcript.Repair(msgs, row.profile, transcript.Policy{})
			var want []state.Message
			for _, place := range strings.Fields(row.want) {
				want = append(want, msgs[int(place[0]-'0')])
			}
			require.Equal(t, short(want), short(repaired))
			require.Equal(t, want, repaired)
			require.Equal(t, row.changes, ruled(changes))
		})
	}
}

func ruled(changes []transcript.Change) string {
	var short []string
	for _, c := range changes {
		short = append(short, strings.ReplaceAll(refused([]transcript.Finding{{Message: c.Message, Rule: c.Rule}}), " ", ""))
	}
	return strings.Join(short, " ")
}

func TestRepairReplaces(t *testing.T) {
	for _, row := range []struct {
		name    string
		profile transcript.Profile
		policy  transcript.Policy
		history string // a JSON message each line
		want    string
		changes string
	}{
		{
			"one call of several is dropped, the rest of the message stays", transcript.OpenAI, transcript.Policy{},
			`{"type":"text","role":"user","content":"go"}
			{"type":"tool_call","role":"assistant","x":1,"tools":[{"id":"a","name":"f","y":2},{"id":"b","name":"g"}],"openai":{}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"a","name":"f"},"content":"1.0"}`,
			`{"type":"text","role":"user","content":"go"}
			{"type":"tool_call","role":"assistant","x":1,"tools":[{"id":"a","name":"f","y":2}],"openai":{}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"a","name":"f"},"content":"1.0"}`,
			`message 1: unanswered-call: dropped call "b" of "g"`,
		},
		{
			"or answered, after the results of the turn", transcript.OpenAI, transcript.Policy{AnswerCalls: true},
			`{"type":"text","role":"user","content":"go"}
			{"type":"tool_call","role":"assistant","tools":[{"id":"b","name":"g","input":{"n":1}},{"id":"a","name":"f"}]}
			{"type":"text","role":"user","content":"more"}
			{"type":"tool_result","role":"tool_result","tool":{"id":"a","name":"f"},"content":"1.0"}`,
			`{"type":"text","role":"user","content":"go"}
			{"type":"tool_call","role":"assistant","tools":[{"id":"b","name":"g","input":{"n":1}},{"id":"a","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"a","name":"f"},"content":"1.0"}
			{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"b","name":"g"},"content":"There is no result: the call may have been made.","stop_reason":"tool","is_error":true}
			{"type":"text","role":"user","content":"more"}`,
			`message 1: unanswered-call: answered call "b" of "g"
message 3: not-adjacent: moved call "a" of "f"`,
		},
		{
			"a result without call becomes the user's", transcript.Anthropic, transcript.Policy{KeepResults: true},
			`{"type":"tool_result","role":"tool_result","tool":{"id":"a","name":"f"},"content":"1.0"}
			{"type":"tool_result","role":"tool_result","tool":{},"content":{"n":1.0}}`,
			`{"type":"text","role":"user","content":"Result of f: 1.0"}
			{"type":"text","role":"user","content":"Result of a tool: {\"n\":1.0}"}`,
			`message 0: orphan-result: made a user text: call "a" of "f"
message 1: orphan-result: made a user text: call "" of ""`,
		},
		{
			"ids that are missing or there twice are replaced, in results too", transcript.Anthropic, transcript.Policy{},
			`{"type":"text","role":"user","content":"go"}
			{"type":"tool_call","role":"assistant","tools":[{"name":"f"},{"id":"a.b","name":"f"},{"id":"x","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"a.b","name":"f"},"content":"1"}
			{"type":"tool_result","role":"tool_result","tool":{"id":null,"name":"f"},"content":"2"}
			{"type":"tool_result","role":"tool_result","tool":{"id":"x","name":"f"},"content":"3"}
			{"type":"tool_call","role":"assistant","tools":[{"id":"x","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"x","name":"f"},"content":"4"}`,
			`{"type":"text","role":"user","content":"go"}
			{"type":"tool_call","role":"assistant","tools":[{"name":"f","id":"call"},{"id":"a_b","name":"f"},{"id":"x","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"a_b","name":"f"},"content":"1"}
			{"type":"tool_result","role":"tool_result","tool":{"id":"call","name":"f"},"content":"2"}
			{"type":"tool_result","role":"tool_result","tool":{"id":"x","name":"f"},"content":"3"}
			{"type":"tool_call","role":"assistant","tools":[{"id":"x_2","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"x_2","name":"f"},"content":"4"}`,
			`message 1: id: now with the id "call": call "" of "f"
message 1: id: now with the id "a_b": call "a.b" of "f"
message 2: id: now with the id "a_b": call "a.b" of "f"
message 3: id: now with the id "call": call "" of "f"
message 5: duplicate-id: now with the id "x_2": call "x" of "f"
message 6: duplicate-id: now with the id "x_2": call "x" of "f"`,
		},
		{
			"names that differ still do", transcript.Gemini, transcript.Policy{},
			`{"type":"text","role":"user","content":"go"}
			{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"a b"},{"id":"2","name":"a/b"},{"id":"3","name":"a_b"},{"id":"4","name":"9"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"a b"},"content":{}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"2"},"content":{}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"3","name":"a_b"},"content":{}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"4","name":"9"},"content":{}}`,
			`{"type":"text","role":"user","content":"go"}
			{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"a_b_96617807"},{"id":"2","name":"a_b_18427750"},{"id":"3","name":"a_b"},{"id":"4","name":"_9_71947021"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"a_b_96617807"},"content":{}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"2","name":"a_b_18427750"},"content":{}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"3","name":"a_b"},"content":{}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"4","name":"_9_71947021"},"content":{}}`,
			`message 1: name: now with the name "a_b_96617807": call "1" of "a b"
message 1: name: now with the name "a_b_18427750": call "2" of "a/b"
message 1: name: now with the name "_9_71947021": call "4" of "9"
message 2: name: now with the name "a_b_96617807": call "1" of "a b"
message 3: name: now with the name "a_b_18427750": call "2" of ""
message 5: name: now with the name "_9_71947021": call "4" of "9"`,
		},
		{
			"roles and the system in the middle", transcript.Gemini, transcript.Policy{},
			`{"type":"text","role":"system","content":"a"}
			{"type":"text","role":"WebSurfer (→ user)","content":"b"}
			{"type":"text","role":"developer","content":"c"}
			{"type":"tool_call","role":"Coder","tools":[{"id":"1","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":{}}`,
			`{"type":"text","role":"system","content":"a"}
			{"type":"text","role":"user","content":"b"}
			{"type":"text","role":"user","content":"c"}
			{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":{}}`,
			`message 1: role: role "WebSurfer (→ user)" is now "user"
message 2: system: role "developer" is now "user"
message 3: role: role "Coder" is now "assistant"`,
		},
		{
			"what says nothing", transcript.Anthropic, transcript.Policy{},
			`{"type":"text","role":"user","content":[{"type":"text","text":" "},{"type":"image","source":{}}]}
			{"type":"text","role":"assistant","content":"\n"}
			{"type":"text","role":"user","content":null}
			{"type":"text","role":"user","content":"more"}`,
			`{"type":"text","role":"user","content":[{"type":"image","source":{}}]}
			{"type":"text","role":"user","content":"more"}`,
			`message 0: empty: dropped 1 of 2 parts
message 1: empty: dropped: it says nothing
message 2: empty: dropped: it says nothing`,
		},
		{
			"the user begins", transcript.Gemini, transcript.Policy{},
			`{"type":"text","role":"system","content":"a"}
			{"type":"text","role":"assistant","content":"b"}`,
			`{"type":"text","role":"system","content":"a"}
			{"type":"text","role":"user","content":"Continue."}
			{"type":"text","role":"assistant","content":"b"}`,
			`message 1: first: put a user text before it`,
		},
		{
			"and before calls", transcript.Gemini, transcript.Policy{},
			`{"type":"text","role":"assistant","content":"b","gemini":{"joined":true}}
			{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}],"gemini":{"joined":true}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":{}}`,
			`{"type":"text","role":"user","content":"Continue."}
			{"type":"text","role":"assistant","content":"b","gemini":{"joined":false}}
			{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}],"gemini":{"joined":true}}
			{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":{}}`,
			`message 0: first: put a user text before it
message 0: not-adjacent: no longer in one entry with the message before it`,
		},
		{
			"several results are of one content with nothing else", transcript.Gemini, transcript.Policy{},
			`{"type":"text","role":"user","content":"a","gemini":{}}
			{"type":"tool_call","role":"assistant","tools":[{"name":"f"},{"name":"f"}],"gemini":{}}
			{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":{},"gemini":{}}
			{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":{},"gemini":{"joined":true}}
			{"type":"text","role":"user","content":"b","gemini":{"joined":true}}`,
			`{"type":"text","role":"user","content":"a","gemini":{}}
			{"type":"tool_call","role":"assistant","tools":[{"name":"f"},{"name":"f"}],"gemini":{}}
			{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":{},"gemini":{}}
			{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":{},"gemini":{"joined":true}}
			{"type":"text","role":"user","content":"b","gemini":{"joined":false}}`,
			`message 4: not-adjacent: no longer in one entry with the message before it`,
		},
		{
			"results that were in one content with others are in a separate one", transcript.Gemini, transcript.Policy{},
			`{"type":"text","role":"user","content":"a","gemini":{}}
			{"type":"tool_call","role":"assistant","tools":[{"name":"f"},{"name":"g"}],"gemini":{}}
			{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":{},"gemini":{}}
			{"type":"text","role":"user","content":"b","gemini":{"joined":true}}
			{"type":"tool_result","role":"tool_result","tool":{"name":"g"},"content":{},"gemini":{"joined":true}}`,
			`{"type":"text","role":"user","content":"a","gemini":{}}
			{"type":"tool_call","role":"assistant","tools":[{"name":"f"},{"name":"g"}],"gemini":{}}
			{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":{},"gemini":{}}
			{"type":"tool_result","role":"tool_result","tool":{"name":"g"},"content":{},"gemini":{"joined":true}}
			{"type":"text","role":"user","content":"b","gemini":{"joined":false}}`,
			`message 3: not-adjacent: no longer in one entry with the message before it
message 4: not-adjacent: moved call "" of "g"`,
		},
		{
			"what comes after a dropped piece of an entry is not of the entry before it", transcript.OpenAI, transcript.Policy{},
			`{"type":"text","role":"assistant","content":"a","openai":{}}
			{"type":"text","role":"assistant","content":null,"openai":{"joined":false}}
			{"type":"text","role":"assistant","content":"b","openai":{"joined":true}}`,
			`{"type":"text","role":"assistant","content":"a","openai":{}}
			{"type":"text","role":"assistant","content":"b","openai":{"joined":false}}`,
			`message 1: content: dropped: it says nothing
message 2: not-adjacent: no longer in one entry with the message before it`,
		},
		{
			"an item's id that is there twice", transcript.OpenAIResponses, transcript.Policy{},
			`{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","openai_responses":{"more":{"id":"fc_1","status":"completed"}}}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":""}
			{"type":"tool_call","role":"assistant","tools":[{"id":"3","name":"f","openai_responses":{"more":{"id":"fc_1","status":"completed"}}},{"id":"2","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"3","name":"f"},"content":""}
			{"type":"tool_result","role":"tool_result","tool":{"id":"2","name":"f"},"content":""}`,
			`{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","openai_responses":{"more":{"id":"fc_1","status":"completed"}}}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":""}
			{"type":"tool_call","role":"assistant","tools":[{"id":"3","name":"f","openai_responses":{"more":{"status":"completed"}}},{"id":"2","name":"f"}]}
			{"type":"tool_result","role":"tool_result","tool":{"id":"3","name":"f"},"content":""}
			{"type":"tool_result","role":"tool_result","tool":{"id":"2","name":"f"},"content":""}`,
			`message 2: duplicate-item: dropped the id of the item`,
		},
		{
			"the provider's own tools", transcript.Anthropic, transcript.Policy{},
			`{"type":"text","role":"user","content":"a"}
			{"type":"text","role":"assistant","content":[{"type":"text","text":"b"},{"type":"server_tool_use","id":"s1"}],"anthropic":{}}
			{"type":"text","role":"user","content":"c"}
			{"type":"text","role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s2"}],"anthropic":{}}`,
			`{"type":"text","role":"user","content":"a"}
			{"type":"text","role":"assistant","content":[{"type":"text","text":"b"}],"anthropic":{}}
			{"type":"text","role":"user","content":"c"}`,
			`message 1: server-tool: dropped 1 of 2 parts
message 3: server-tool: dropped: it says nothing`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			var msgs []state.Message
			for _, line := range strings.Split(row.history, "\n") {
				msgs = append(msgs, decode(t, line))
			}
			repaired, changes := transcript.Repair(msgs, row.profile, row.policy)
			var lines []string
			for _, m := range repaired {
				lines = append(lines, string(m.Raw()))
			}
			require.Equal(t, strings.ReplaceAll(row.want, "\t", ""), strings.Join(lines, "\n"))
			require.Equal(t, row.changes, short(changes))
			require.Empty(t, transcript.Check(repaired, row.profile))
		})
	}
}

func TestRepairDropsWhatIsNoMessage(t *testing.T) {
	user := state.UserText("a")
	msgs, changes := transcript.Repair([]state.Message{nil, user, state.TextMessage{}}, transcript.OpenAI, transcript.Policy{})
	require.Equal(t, []state.Message{user}, msgs)
	require.Equal(t, "0:message 2:message", ruled(changes))
}

func TestRepairOfALongHistory(t *testing.T) {
	whole := conversation(5_000)
	var msgs []state.Message
	for i, m := range whole {
		switch i % 7 {
		case 0: // a call, a result or a text is missing
		case 1: // and one is there twice
			msgs = append(msgs, m, m)
		default:
			msgs = append(msgs, m)
		}
	}
	repaired, changes := transcript.Repair(msgs, transcript.Gemini, transcript.Policy{AnswerCalls: true})
	require.NotEmpty(t, changes)
	require.Empty(t, transcript.Check(repaired, transcript.Gemini))
}
