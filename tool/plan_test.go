package tool_test

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/tool"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// stepCases are steps with their batches. A call is written as the fields that its
// tool reads and writes, one letter for each: "ab:c". "-" is a stateful tool, and
// "?" a tool that does not exist.
var stepCases = []struct {
	name  string
	calls string
	want  [][]int
}{
	{"nothing", "", nil},
	{"one call", ":a", [][]int{{0}}},
	{"disjoint calls", "a:b c:d :e f:", [][]int{{0, 1, 2, 3}}},
	{"readers of one field", "a:b a:c a:", [][]int{{0, 1, 2}}},
	{"writers of one field", ":a :a b:a", [][]int{{0, 1, 2}}},
	{"a reader behind its writer", ":a a:", [][]int{{0}, {1}}},
	{"a reader in front of its writer", "a: :a", [][]int{{1}, {0}}},
	{"a reader among its writers", ":a a:b :a", [][]int{{0, 2}, {1}}},
	{"a chain from behind", "b:c a:b :a", [][]int{{2}, {1}, {0}}},
	{"a chain in two places", ":a a:b b: :c c:", [][]int{{0, 3}, {1, 4}, {2}}},
	{"each in the earliest batch", ":a a:b b:c :d d:c", [][]int{{0, 3}, {1, 4}, {2}}},
	{"a tool that reads what it writes", "a:a", [][]int{{0}}},
	{"three calls of one", "a:a a:a a:a", [][]int{{0}, {1}, {2}}},
	{"two such pairs side by side", "a:a b:b a:a b:b", [][]int{{0, 1}, {2, 3}}},
	{"a cycle of two", "a:b b:a", [][]int{{0}, {1}}},
	{"a cycle of three", "a:b b:c c:a", [][]int{{0}, {1}, {2}}},
	{"a cycle of three, against the order of the calls", "a:c b:a c:b", [][]int{{0}, {2}, {1}}},
	{"a cycle, and a reader in front of it", "c: a:bc b:a", [][]int{{1}, {0, 2}}},
	{"a cycle behind a writer", "ac:b b:a :c", [][]int{{2}, {0}, {1}}},
	{"a cycle next to others", "d: a:b b:a :c c:d", [][]int{{1, 3}, {2, 4}, {0}}},
	{"a cycle within a cycle", "a:c b:ac c:ab", [][]int{{0}, {1}, {2}}},
	{"two first calls of a cycle", "a:b a:b b:a", [][]int{{0, 1}, {2}}},
	{"a stateful tool", "-", [][]int{{0}}},
	{"stateful tools", "- - -", [][]int{{0}, {1}, {2}}},
	{"a barrier among disjoint calls", ":a :b - :c :d", [][]int{{0, 1}, {2}, {3, 4}}},
	{"a barrier between a reader and its writer", "a: - :a", [][]int{{0}, {1}, {2}}},
	{"batches on both sides of a barrier", "a: :a - b: :b", [][]int{{1}, {0}, {2}, {4}, {3}}},
	{"a barrier at both ends", "- a: :a -", [][]int{{0}, {2}, {1}, {3}}},
	{"tools that do not exist", "? ? ?", nil},
	{"one that does not exist in the middle", ":a ? a:", [][]int{{0}, {2}}},
}

// step returns the tools and calls of a step written as in stepCases. A call has
// its place as its ID and as its argument "id". fn makes the function of a tool
// from the notation.
func step(t require.TestingT, notation string, fn func(fields string) stepFunc) ([]*tool.Tool, []state.ToolCall) {
	var tools []*tool.Tool
	var calls []state.ToolCall
	made := map[string]bool{}
	for i, fields := range strings.Fields(notation) {
		id := strconv.Itoa(i)
		calls = append(calls, state.ToolCall{ID: id, Name: fields, Input: state.JSON(fmt.Sprintf(`{"id":%q}`, id))})
		if fields != "?" && !made[fields] {
			made[fields] = true
			tools = append(tools, stepTool(t, fields, fn(fields)))
		}
	}
	return tools, calls
}

func idle(string) stepFunc { return nil }

func TestPlan(t *testing.T) {
	for _, c := range stepCases {
		t.Run(c.name, func(t *testing.T) {
			tools, calls := step(t, c.calls, idle)
			require.Empty(t, cmp.Diff(c.want, tool.Plan(tools, calls)))
		})
	}
}

func TestPlanLeavesOutCallsWithoutATool(t *testing.T) {
	a, b := stepTool(t, ":a", nil), stepTool(t, "a:", nil)
	again := stepTool(t, ":a", nil)
	calls := []state.ToolCall{{Name: "a:"}, {Name: ""}, {Name: ":a"}, {Name: "x"}}
	require.Equal(t, [][]int{{2}, {0}}, tool.Plan([]*tool.Tool{nil, a, {}, b, nil}, calls))
	require.Equal(t, [][]int{{0}}, tool.Plan([]*tool.Tool{a, b, again}, calls), "which of the two is meant?")
	require.Empty(t, tool.Plan(nil, calls))
	require.Empty(t, tool.Plan([]*tool.Tool{a}, nil))
}

// TestPlanKeepsItsRules checks plans against the rules for each pair of calls,
// which it evaluates with a transitive closure.
func TestPlanKeepsItsRules(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		kind := rapid.Custom(func(t *rapid.T) string {
			switch rapid.IntRange(0, 19).Draw(t, "kind") {
			case 0:
				return "-"
			case 1:
				return "?"
			}
			return letters(drawFields(t, "reads")) + ":" + letters(drawFields(t, "writes"))
		})
		notation := rapid.SliceOfN(kind, 0, 12).Draw(t, "calls")
		tools, calls := step(t, strings.Join(notation, " "), idle)
		plan := tool.Plan(tools, calls)
		t.Log(notation, plan)

		batch := make([]int, len(calls)) // of each call, from 1
		for i, b := range plan {
			require.NotEmpty(t, b)
			require.True(t, slices.IsSorted(b))
			for _, call := range b {
				require.Zero(t, batch[call], "call %d twice", call)
				batch[call] = i + 1
			}
		}
		isBarrier := func(v int) bool { return notation[v] == "-" }
		reads := func(v, u int) bool { // whether v reads a field that u writes
			from, _, _ := strings.Cut(notation[v], ":")
			_, to, _ := strings.Cut(notation[u], ":")
			return u != v && strings.ContainsAny(from, to)
		}
		// onCycle reports whether u also waits for v, through calls that keep and
		// are between the same barriers.
		onCycle := func(v, u int, keep func(int) bool) bool {
			seen := map[int]bool{v: true}
			for todo := []int{v}; len(todo) > 0; {
				from := todo[0]
				todo = todo[1:]
				for next := range calls {
					between := slices.ContainsFunc(notation[min(v, next):max(v, next)], func(s string) bool { return s == "-" })
					if !seen[next] && keep(next) && !between && reads(next, from) {
						seen[next] = true
						todo = append(todo, next)
					}
				}
			}
			return seen[u]
		}
		for v := range calls {
			if notation[v] == "?" {
				require.Zero(t, batch[v])
				continue
			}
			require.NotZero(t, batch[v], "call %d is in no batch", v)
			held := batch[v] == 1
			for u := range calls {
				if u == v || notation[u] == "?" {
					continue
				}
				first, second := min(u, v), max(u, v)
				apart := slices.Contains(notation[first:second+1], "-")
				conflict := reads(v, u) || reads(u, v)
				switch {
				case apart:
					require.Less(t, batch[first], batch[second], "%d and %d around a barrier", first, second)
				case conflict:
					require.NotEqual(t, batch[v], batch[u], "%d and %d in one batch", v, u)
				}
				if !apart && reads(v, u) && batch[v] < batch[u] {
					require.Less(t, v, u, "%d reads before %d has written", v, u)
					require.True(t, onCycle(v, u, func(w int) bool { return w >= v }), "%d reads before %d has written, without a cycle", v, u)
				}
				if !apart && reads(v, u) && v < u && onCycle(v, u, func(w int) bool { return w >= v }) {
					require.Less(t, batch[v], batch[u], "%d is the first of its cycle with %d", v, u)
				}
				if batch[u] == batch[v]-1 && (conflict || isBarrier(u) || isBarrier(v)) {
					held = true
				}
			}
			require.True(t, held, "call %d could be made earlier", v)
		}
	})
}

// drawFields draws a set of at most two fields.
func drawFields(t *rapid.T, label string) uint16 {
	var set uint16
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, 7), 0, 2).Draw(t, label) {
		set |= 1 << i
	}
	return set
}

// letters names the fields of a set.
func letters(set uint16) string {
	var b strings.Builder
	for ; set != 0; set &= set - 1 {
		b.WriteByte('a' + byte(bits.TrailingZeros16(set)))
	}
	return b.String()
}

// A step of as many calls as a message may have, in chains as long as the step.
func TestPlanOfManyCalls(t *testing.T) {
	const n = 256
	var tools []*tool.Tool
	for _, notation := range []string{"a:a", "a:b", "b:c", "c:b", "d:", ":d", "e:f", "f:g", "g:e"} {
		tools = append(tools, stepTool(t, notation, nil))
	}
	calls := make([]state.ToolCall, n)
	for i := range calls {
		calls[i].Name = tools[i*7%len(tools)].Name()
	}
	planned := 0
	for _, batch := range tool.Plan(tools, calls) {
		planned += len(batch)
	}
	require.Equal(t, n, planned)
}

// TestPlanLetsCallsThatOnlyLookShareABatch plans stateful tools with annotations:
// s is a barrier, r is ReadOnly, and o is ReadOnly but has an output.
func TestPlanLetsCallsThatOnlyLookShareABatch(t *testing.T) {
	field := &state.Field[[]string]{Name: "a"}
	look := func(context.Context, *state.State, struct{}) ([]string, error) { return nil, nil }
	readOnly := tool.Annotate(tool.Annotations{ReadOnly: true})
	tools := []*tool.Tool{
		stepTool(t, ":a", nil),
		tool.Must(tool.NewStateful("s", "", look)),
		tool.Must(tool.NewStateful("r", "", look, readOnly)),
		tool.Must(tool.NewStateful("o", "", look, readOnly, tool.To(field, ""))),
	}
	for calls, want := range map[string][][]int{
		"r r r":           {{0, 1, 2}},
		":a r r :a r":     {{0}, {1, 2}, {3}, {4}},
		"s r r s":         {{0}, {1, 2}, {3}},
		"r s r":           {{0}, {1}, {2}},
		"r o r r":         {{0}, {1}, {2, 3}},
		"r x r":           {{0, 2}},
		":a :a r r o o r": {{0, 1}, {2, 3}, {4}, {5}, {6}},
	} {
		var list []state.ToolCall
		for _, name := range strings.Fields(calls) {
			list = append(list, state.ToolCall{Name: name})
		}
		require.Equal(t, want, tool.Plan(tools, list), calls)
	}
}
