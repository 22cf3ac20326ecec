package transcript_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
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
			require.Equal(t, row.kept, row.shapes.KeepTokens(row.keep, nil))
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

// The functions on messages return what the shapes of the messages say.
func TestHistoriesShapes(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: propertyCases, History: brokenFor, Parts: true,
		Obeys: func(_ propertyCase, msgs []state.Message) error {
			shapes := transcript.ShapesOf(msgs)
			if !slices.EqualFunc(shapes.Groups(), transcript.Groups(msgs), slices.Equal) {
				return fmt.Errorf("groups %v and %v", shapes.Groups(), transcript.Groups(msgs))
			}
			open := transcript.Pending(msgs)
			for _, suspended := range [][]state.ToolCall{nil, open[:len(open)/2]} {
				inMessages := fmt.Sprint(collect(transcript.PendingAt(msgs, suspended...)))
				if inShapes := fmt.Sprint(collect(shapes.Pending(suspended...))); inShapes != inMessages {
					return fmt.Errorf("pending %s and %s", inShapes, inMessages)
				}
			}
			tokens := func(m state.Message) int {
				if m == nil {
					return 1
				}
				return len(m.Raw())
			}
			for limit := 0; limit <= len(msgs)+1; limit += 1 + len(msgs)/6 { // all of them for short ones
				if kept := transcript.Select(msgs, shapes.KeepLast(limit)); !same(kept, transcript.KeepLast(limit)(msgs)) {
					return fmt.Errorf("the last %d differ", limit)
				}
				indexes := shapes.KeepTokens(limit*40, func(i int) int { return tokens(msgs[i]) })
				if kept := transcript.Select(msgs, indexes); !same(kept, transcript.KeepTokens(limit*40, tokens)(msgs)) {
					return fmt.Errorf("%d tokens differ", limit*40)
				}
			}
			return nil
		},
	}.Hold(t)
}

func collect(pending func(func(int, state.ToolCall) bool)) (all []string) {
	for i, call := range pending {
		all = append(all, fmt.Sprint(i, call))
	}
	return all
}

// ownMessage is a message of a framework: a word of a script.
type ownMessage struct{ word string }

// ownShape reads a word as script does. The word must begin with + or -, because
// a message of package state that does not say it may be joined all the same.
func ownShape(m *ownMessage) transcript.Shape {
	word := m.word[1:]
	s := transcript.Shape{Joined: m.word[0] == '+'}
	switch {
	case word == "think" || strings.HasPrefix(word, "rs"):
		s.Role, s.Reasoning = "assistant", true
		if id, ok := strings.CutPrefix(word, "rs"); ok {
			s.Refs = []string{"rs_" + id}
		}
		return s
	case len(word) == 1 && word != "c" && word != "r":
		s.Role = map[string]string{"s": "system", "d": "developer", "u": "user", "a": "assistant"}[word]
		return s
	}
	var calls []state.ToolCall
	for _, text := range strings.Split(word[1:], ",") {
		id, name, isNamed := strings.Cut(text, "=")
		if !isNamed {
			name = "f"
		}
		calls = append(calls, state.ToolCall{ID: id, Name: name})
	}
	if word[0] == 'c' {
		s.Calls = calls
	} else {
		s.Answers = calls[:1]
	}
	return s
}

var ownWords = []string{
	"s", "d", "u", "u", "a", "a", "think", "rs1", "rs2", "c1", "c2", "c3", "c1,2", "c2,2", "c1=g", "c=g", "c=h,=g",
	"r1", "r2", "r3", "r1", "r2", "r1=g", "r=g", "r=h",
}

// ownConversation returns the words that a text of bytes stands for, and the same
// in messages of package state.
func ownConversation(t testing.TB, text []byte) ([]*ownMessage, []state.Message) {
	var own []*ownMessage
	var words []string
	assistant := false
	for i, b := range text {
		m := &ownMessage{"-" + ownWords[int(b&0x7f)%len(ownWords)]}
		s := ownShape(m)
		before := assistant
		assistant = len(s.Calls) > 0 || s.Role == "assistant"
		if i > 0 && b >= 0x80 && before == assistant {
			m.word = "+" + m.word[1:]
		}
		own, words = append(own, m), append(words, m.word)
	}
	return own, script(t, strings.Join(words, " "))
}

// requireSameOnShapes requires that a framework's conversation is trimmed and
// grouped as the same conversation in messages of package state, and obeys the
// laws of a Trim.
func requireSameOnShapes(t testing.TB, text []byte) {
	own, msgs := ownConversation(t, text)
	before := slices.Clone(own)
	shapes := transcript.ShapesFunc(own, ownShape)
	groups := shapes.Groups()
	require.Equal(t, transcript.Groups(msgs), groups)
	ids := func(pending func(func(int, state.ToolCall) bool)) (all []string) {
		for i, call := range pending {
			all = append(all, fmt.Sprint(i, call.ID, call.Name))
		}
		return all
	}
	open := transcript.Pending(msgs)
	require.Equal(t, ids(transcript.PendingAt(msgs)), ids(shapes.Pending()))
	require.Equal(t, ids(transcript.PendingAt(msgs, open[len(open)/2:]...)), ids(shapes.Pending(open[len(open)/2:]...)))
	var fewer []int
	for limit := range len(own) + 1 {
		kept := shapes.KeepLast(limit)
		require.True(t, slices.IsSorted(kept))
		require.True(t, same(transcript.KeepLast(limit)(msgs), transcript.Select(msgs, kept)))
		keeps := make([]bool, len(own))
		for k, m := range transcript.Select(own, kept) {
			require.Same(t, own[kept[k]], m)
			require.False(t, keeps[kept[k]], "twice")
			keeps[kept[k]] = true
		}
		for _, i := range fewer {
			require.True(t, keeps[i], "message %d is kept by a smaller limit", i)
		}
		fewer = kept
		for _, group := range groups {
			for _, i := range group {
				require.Equal(t, keeps[group[0]], keeps[i], "group %v", group)
			}
		}
		requirePairsWhole(t, shapes, keeps)
	}
	require.Len(t, fewer, len(own))
	require.Equal(t, before, own)
}

// requirePairsWhole requires that a call with an id of its own is kept if and
// only if its first answer is. It does not ask the package what belongs together.
func requirePairsWhole(t testing.TB, shapes transcript.Shapes, keeps []bool) {
	callers := map[string][]int{} // by id
	answered := map[string]bool{}
	for i, s := range shapes {
		for _, c := range s.Calls {
			callers[c.ID] = append(callers[c.ID], i)
		}
		for _, a := range s.Answers {
			if made := callers[a.ID]; a.ID != "" && len(made) > 0 && !answered[a.ID] {
				answered[a.ID] = true
				isOnly := 0
				for _, other := range shapes {
					for _, c := range other.Calls {
						if c.ID == a.ID {
							isOnly++
						}
					}
				}
				if isOnly == 1 {
					require.Equal(t, keeps[made[0]], keeps[i], "call %s", a.ID)
				}
			}
		}
	}
}

func TestShapesAreTrimmedLikeMessages(t *testing.T) {
	seed := effort.LogSeed(t)
	for run := range effort.Runs(2000) {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		text := make([]byte, rng.IntN(14))
		for i := range text {
			text[i] = byte(rng.Uint32())
		}
		requireSameOnShapes(t, text)
	}
}

func FuzzShapes(f *testing.F) {
	f.Add([]byte("\x02\x0c\x12\x11\x04"))         // u c1,2 r2 r1 a
	f.Add([]byte("\x02\x0f\x0f\x97\x17\x02\x04")) // calls without ids
	f.Add([]byte("\x02\x04\x89\x11\x07\x8a\x12")) // an entry in pieces, reasoning
	f.Add([]byte("\x0d\x12\x0d\x12\x12\x00\x02")) // an id that is used again
	f.Fuzz(func(t *testing.T, text []byte) {
		requireSameOnShapes(t, text[:min(len(text), 40)])
	})
}

// Shapes can be made one by one: the methods give the same for a conversation
// that has grown.
func TestShapesGrowWithTheConversation(t *testing.T) {
	own, _ := ownConversation(t, []byte("\x00\x02\x0c\x12\x11\x04\x02\x09\x11\x04"))
	var shapes transcript.Shapes
	for i, m := range own {
		shapes = append(shapes, ownShape(m))
		require.Equal(t, transcript.ShapesFunc(own[:i+1], ownShape), shapes)
		require.Equal(t, transcript.ShapesFunc(own[:i+1], ownShape).KeepLast(3), shapes.KeepLast(3))
	}
}

func TestKeepTokensOfShapesCountsOnce(t *testing.T) {
	own, _ := ownConversation(t, []byte("\x00\x02\x0c\x12\x11\x04\x02\x09\x11\x04"))
	counted := map[int]int{}
	transcript.ShapesFunc(own, ownShape).KeepTokens(4, func(i int) int {
		counted[i]++
		return 1
	})
	require.Less(t, len(counted), len(own), "those that are dropped need no count")
	for i, times := range counted {
		require.Equal(t, 1, times, "message %d", i)
	}
}
