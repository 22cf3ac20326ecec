package transcript_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// named returns calls with these ids and the name f. The id is left out of "f".
func named(ids ...string) []state.ToolCall {
	var calls []state.ToolCall
	for _, id := range ids {
		calls = append(calls, state.ToolCall{ID: strings.TrimPrefix(id, "f"), Name: "f"})
	}
	return calls
}

// Some frameworks have several results in a message, or calls with their results.
func TestShapesOfMessagesThatHaveSeveralThings(t *testing.T) {
	type shape = transcript.Shape
	user, model := shape{Role: "user"}, shape{Role: "assistant"}
	calls := func(ids ...string) shape { return shape{Role: "assistant", Calls: named(ids...)} }
	answers := func(ids ...string) shape { return shape{Role: "user", Answers: named(ids...)} }
	both := shape{Role: "assistant", Calls: named("1", "2"), Answers: named("1", "2")}
	for _, row := range []struct {
		name    string
		shapes  transcript.Shapes
		groups  [][]int
		pending string // ids
		keep    int
		kept    []int
	}{
		{"nothing", nil, [][]int{}, "", 1, []int{}},
		{"results in one message", transcript.Shapes{user, calls("1", "2"), answers("2", "1"), model},
			[][]int{{0}, {1, 2}, {3}}, "", 1, []int{0, 3}},
		{"one of them is missing", transcript.Shapes{user, calls("1", "2"), answers("2"), user, model},
			[][]int{{0}, {1, 2}, {3}, {4}}, "1", 1, []int{0, 1, 2, 3, 4}},
		{"results of calls of two messages", transcript.Shapes{user, calls("1"), calls("2"), answers("1", "2"), model},
			[][]int{{0}, {1, 2, 3}, {4}}, "", 4, []int{0, 4}},
		{"results of one call and of none", transcript.Shapes{answers("1", "9"), calls("1"), answers("1", "8"), model},
			[][]int{{0}, {1, 2}, {3}}, "", 1, []int{0, 3}},
		{"several results with one id", transcript.Shapes{user, calls("1", "1"), answers("1", "1"), model},
			[][]int{{0}, {1, 2}, {3}}, "", 9, []int{0, 1, 2, 3}},
		{"results without ids", transcript.Shapes{user, calls("f", "f"), answers("f"), model},
			[][]int{{0}, {1}, {2}, {3}}, " ", 9, []int{0, 1, 2, 3}},
		{"calls with their results", transcript.Shapes{user, both, both, user, model},
			[][]int{{0}, {1}, {2}, {3}, {4}}, "", 4, []int{0, 2, 3, 4}},
		{"results together with a text are no request", transcript.Shapes{user, calls("1"), answers("1"), model, model},
			[][]int{{0}, {1, 2}, {3}, {4}}, "", 3, []int{0, 3, 4}},
		{"reasoning", transcript.Shapes{user, {Role: "assistant", Reasoning: true}, calls("1"), answers("1"), model},
			[][]int{{0}, {1, 2, 3}, {4}}, "", 2, []int{0, 4}},
		{"an entry in pieces", transcript.Shapes{user, model, {Role: "assistant", Joined: true, Calls: named("1")}, answers("1"), model},
			[][]int{{0}, {1, 2, 3}, {4}}, "", 2, []int{0, 4}},
		{"references", transcript.Shapes{user, {Role: "assistant", Refs: []string{"x", ""}}, user, {Role: "assistant", Refs: []string{"y", "x"}}, {Refs: []string{""}}},
			[][]int{{0}, {1, 3}, {2}, {4}}, "", 1, []int{2, 4}},
		{"the role of a result does not matter", transcript.Shapes{{Role: "system", Answers: named("9")}, user, model},
			[][]int{{0}, {1}, {2}}, "", 1, []int{1, 2}},
		{"a system prompt with a call", transcript.Shapes{{Role: "system"}, {Role: "system", Joined: true, Calls: named("1")}, answers("1"), user, model, user, model},
			[][]int{{0, 1, 2}, {3}, {4}, {5}, {6}}, "", 1, []int{0, 1, 2, 5, 6}},
		{"reasoning is no request", transcript.Shapes{user, {Role: "user", Reasoning: true}, model},
			[][]int{{0}, {1}, {2}}, "", 1, []int{0, 2}},
		{"shapes without anything", make(transcript.Shapes, 3), [][]int{{0}, {1}, {2}}, "", 1, []int{2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.groups, row.shapes.Groups())
			var pending []string
			for _, call := range row.shapes.Pending() {
				pending = append(pending, call.ID)
			}
			require.Equal(t, row.pending, strings.Join(pending, " "))
			require.Equal(t, row.kept, row.shapes.KeepLast(row.keep))
		})
	}
}

func TestPendingYieldsTheCallOfTheShape(t *testing.T) {
	waiting := state.ToolCall{ID: "1", Name: "f", Input: `{"n":1.0}`, Extra: `{"x":1}`}
	shapes := transcript.Shapes{{Calls: []state.ToolCall{waiting, {ID: "2"}}}, {Answers: named("3")}}
	require.Equal(t, map[int]state.ToolCall{0: waiting}, maps.Collect(shapes.Pending(state.ToolCall{ID: "2"})))
}

func TestSelectLeavesOutWhatIsNotThere(t *testing.T) {
	list := []string{"a", "b", "c"}
	selected := transcript.Select(list, []int{2, -1, 0, 3})
	require.Equal(t, []string{"c", "a"}, selected)
	selected[0] = "x"
	require.Equal(t, []string{"a", "b", "c"}, list)
	require.Empty(t, transcript.Select[int](nil, []int{0}))
}

// The functions on messages return what the shapes of the messages say, and keep
// groups whole.
func TestHistoriesShapes(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: brokenFor, Parts: true,
		Obeys: func(_ propertyCase, msgs []state.Message) error {
			shapes := transcript.ShapesOf(msgs)
			if !slices.EqualFunc(shapes.Groups(), transcript.Groups(msgs), slices.Equal) {
				return fmt.Errorf("groups %v and %v", shapes.Groups(), transcript.Groups(msgs))
			}
			if pending := fmt.Sprint(slices.Collect(calls(shapes.Pending()))); pending != fmt.Sprint(transcript.Pending(msgs)) {
				return fmt.Errorf("pending %s and %s", pending, transcript.Pending(msgs))
			}
			for limit := 0; limit <= len(msgs)+1; limit += 1 + len(msgs)/6 { // all of them for short ones
				indexes := shapes.KeepLast(limit)
				if kept := transcript.Select(msgs, indexes); !same(kept, transcript.KeepLast(limit)(msgs)) {
					return fmt.Errorf("the last %d differ", limit)
				}
				for _, group := range shapes.Groups() {
					for _, i := range group {
						if slices.Contains(indexes, i) != slices.Contains(indexes, group[0]) {
							return fmt.Errorf("of group %v only a part is kept", group)
						}
					}
				}
			}
			return nil
		},
	}.Hold(t)
}

func calls(pending iter.Seq2[int, state.ToolCall]) iter.Seq[state.ToolCall] {
	return func(yield func(state.ToolCall) bool) {
		for _, call := range pending {
			if !yield(call) {
				return
			}
		}
	}
}
