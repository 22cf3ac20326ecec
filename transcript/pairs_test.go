package transcript_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// The groups show what is paired: a call and its result are in one group.
func TestCallsAndResultsArePaired(t *testing.T) {
	for _, row := range []struct {
		name    string
		script  string
		want    [][]int
		pending string // the names and ids of the calls without a result
	}{
		{"by id", "u c1 r1", [][]int{{0}, {1, 2}}, ""},
		{"in any order", "c1,2 r2 r1", [][]int{{0, 1, 2}}, ""},
		{"whatever lies between", "c1 u s r1 a", [][]int{{0, 3}, {1}, {2}, {4}}, ""},
		{"not before the call", "r1 c1", [][]int{{0}, {1}}, "f1"},
		{"not twice", "c1 r1 r1", [][]int{{0, 1}, {2}}, ""},
		{"not with another's id", "c1 r2", [][]int{{0}, {1}}, "f1"},
		{"an id that is used again", "c1 r1 c1 r1 c1 u r1", [][]int{{0, 1}, {2, 3}, {4, 6}, {5}}, ""},
		{"an id that is used again but not answered", "c1 r1 u c1", [][]int{{0, 1}, {2}, {3}}, "f1"},
		{"one id twice at once, two results", "c1 u c1 r1 u r1", [][]int{{0, 3}, {1}, {2, 5}, {4}}, ""},
		{"one id twice at once, one result", "c1 u c1 r1", [][]int{{0}, {1}, {2}, {3}}, "f1 f1"},
		{"one id twice at once, then once more", "c1 u c1 r1 u c1 r1", [][]int{{0}, {1}, {2}, {3}, {4}, {5, 6}}, "f1 f1"},
		{"one id twice at once, told apart by name", "c1=g u c1=h r1=h", [][]int{{0}, {1}, {2, 3}}, "g1"},
		{"and both answered", "c1=g u c1=h r1=h r1=g", [][]int{{0, 4}, {1}, {2, 3}}, ""},
		{"and one answered twice", "c1=g u c1=h r1=h r1=h", [][]int{{0, 3}, {1}, {2, 4}}, ""},
		{"names that are of no use", "c1=g u c1=h r1=x r1=x", [][]int{{0, 3}, {1}, {2, 4}}, ""},
		{"a result of another name has the call's id", "c1=g r1=h", [][]int{{0, 1}}, ""},
		{"by name without ids", "c=g,=h r=h r=g", [][]int{{0, 1, 2}}, ""},
		{"by order without ids", "c=g,=g r=g u r=g", [][]int{{0, 1, 3}, {2}}, ""},
		{"without id and of another name", "c=g r=h", [][]int{{0}, {1}}, "g"},
		{"an id is not a name", "cg=g rg=h r=g", [][]int{{0, 1}, {2}}, ""},
		{"by name, although the call has an id", "u c1=g r=g", [][]int{{0}, {1, 2}}, ""},
		{"of two in their order", "c1=g,2=g r=g r=g", [][]int{{0, 1, 2}}, ""},
		{"what an id leaves", "c1=g,2=g r1=g r=g r=g", [][]int{{0, 1, 2}, {3}}, ""},
		{"in the turn before it", "c1=g u c2=g r=g", [][]int{{0}, {1}, {2, 3}}, "g1"},
		{"in several messages of the turn", "u c1=g a -c2=g r=g r=g", [][]int{{0}, {1, 4}, {2}, {3, 5}}, ""},
		{"of another name than the call with an id", "c1=g r=h", [][]int{{0}, {1}}, "g1"},
		{"several calls unanswered", "u c1=g,2=h r1=g c3", [][]int{{0}, {1, 2}, {3}}, "h2 f3"},
		{"nothing", "", [][]int{}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := script(t, row.script)
			require.Equal(t, row.want, transcript.Groups(msgs))
			var pending []string
			for _, call := range transcript.Pending(msgs) {
				pending = append(pending, call.Name+call.ID)
			}
			require.Equal(t, row.pending, strings.Join(pending, " "))
		})
	}
}

// The role of a result differs between providers and has no meaning.
func TestTheRoleOfAResultDoesNotMatter(t *testing.T) {
	call := state.ToolCall{ID: "1", Name: "f"}
	for _, role := range []string{"user", "tool", "function", "anything"} {
		result := decode(t, `{"type":"tool_result","role":"`+role+`","tool":{"id":"1","name":"f"},"content":""}`)
		require.Empty(t, transcript.Pending([]state.Message{state.ToolCalls(call), result}), role)
	}
}

func TestPendingReturnsTheWholeCall(t *testing.T) {
	call := state.ToolCall{ID: "1", Name: "f", Input: `{"n":1.0}`, Extra: `{"type":"tool","gemini":{"more":{}}}`}
	require.Equal(t, transcript.Pending([]state.Message{nil, state.TextMessage{}, state.ToolCalls(call)}),
		state.ToolCallMessage(state.ToolCalls(call)).Calls())
}

// A key decides, whatever the ids are. Where one has none, the id does.
func TestKeysDecideWhichCallAResultAnswers(t *testing.T) {
	for _, row := range []struct {
		name           string
		calls, results string // ids and keys
		pending        string
		answers        error // of the results, if they are given later
	}{
		{"in the order of the calls", "1/a 1/b", "1/a 1/b", "", nil},
		{"in another order", "1/a 1/b", "1/b 1/a", "", nil},
		{"only the second", "1/a 1/b 1/c", "1/b", "1/a 1/c", nil},
		{"without ids", "/a /b", "/b", "/a", nil},
		{"of many", "/a /b /c /d /e /f /g", "/a /g /b", "/c /d /e /f", nil},
		{"with the id of another call", "1/a 2/b", "2/a", "2/b", nil},
		{"with an id that no call has", "1/a 2/b", "3/a", "2/b", nil},
		{"not twice", "1/a 1/b", "1/a 1/a", "1/b", state.ErrAnswered},
		{"a key that no call has", "1/a", "1/x", "1/a", state.ErrUnknownCall},
		{"a key that no call has, and another id", "1/a 2/", "1/x", "1/a 2/", state.ErrUnknownCall},
		{"a key that no call has, for a call without one", "1/a 1/", "1/x", "1/a", nil},
		{"and a result without a key", "1/a 1/", "1/x 1/", "", nil},
		{"no key for a call with one", "1/a", "1/", "", nil},
		{"a key before the id", "1/a 1/", "1/a", "1/", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			var said, results []state.Message
			for _, c := range keyed(row.calls) {
				said = append(said, state.ToolCalls(c), state.UserText("u"))
			}
			var answers []state.ToolResultMessage
			for _, c := range keyed(row.results) {
				results = append(results, state.ToolResult(c, "1"))
				answers = append(answers, state.ToolResult(c, "1"))
			}
			shown := func(calls []state.ToolCall) string {
				var words []string
				for _, c := range calls {
					words = append(words, c.ID+"/"+c.Key)
				}
				return strings.Join(words, " ")
			}
			require.Equal(t, row.pending, shown(transcript.Pending(append(said, results...))))
			given, err := transcript.Answer(said, answers...)
			require.ErrorIs(t, err, row.answers)
			if err != nil {
				return
			}
			require.Equal(t, row.pending, shown(transcript.Pending(given)))
			var last state.ToolCall // each result stands behind its call
			for _, m := range given {
				switch m := m.(type) {
				case state.ToolCallMessage:
					last = m.Calls()[0]
				case state.ToolResultMessage:
					require.Equal(t, last.ID, m.Call().ID)
					if last.Key != "" {
						require.Equal(t, last.Key, m.Call().Key)
					}
				}
			}
		})
	}
}

func keyed(words string) (calls []state.ToolCall) {
	for _, word := range strings.Fields(words) {
		id, key, _ := strings.Cut(word, "/")
		calls = append(calls, state.ToolCall{ID: id, Key: key, Name: "f"})
	}
	return calls
}
