package tool

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
)

// Plan returns the batches in which [Run] makes the calls of one step, as
// indexes of calls. It uses what the tools declare with From and To, and the
// order of the calls:
//
//   - A call that reads a field comes after all calls that write it, wherever
//     they are in the step. Calls that write the same field need no order between
//     them, because Run writes outputs in the order of the calls.
//   - Calls that wait for each other are a cycle. The first of them is made before
//     the others. The rule then applies again to the calls that remain.
//   - A stateful tool may read and write anything. It is alone in its batch, after
//     all calls in front of it and before all calls behind it.
//
// Each call is in the earliest batch that these rules allow. Calls of one batch
// do not read what others of the batch write. Calls without a tool are in no
// batch.
func Plan(tools []*Tool, calls []state.ToolCall) [][]int {
	return planBatches(newToolbox(tools).toolsOf(calls))
}

// planBatches is Plan with the tool of each call, or nil.
func planBatches(toolOf []*Tool) [][]int {
	var batches [][]int
	var between []int // the calls since the last stateful one
	for i, t := range toolOf {
		switch {
		case t == nil:
		case t.Stateful():
			batches = append(batches, layerCalls(toolOf, between)...)
			batches = append(batches, []int{i})
			between = between[:0]
		default:
			between = append(between, i)
		}
	}
	return append(batches, layerCalls(toolOf, between)...)
}

// layerCalls returns the batches of calls of which none is stateful.
func layerCalls(toolOf []*Tool, calls []int) [][]int {
	g := newWaitGraph(toolOf, calls)
	var batches [][]int
	for v, call := range calls {
		layer := g.layerOf(v)
		for len(batches) <= layer {
			batches = append(batches, nil)
		}
		batches[layer] = append(batches[layer], call)
	}
	return batches
}

// waitGraph says which of the calls 0, 1, … n-1 waits for which. Call v
// precedes call w if v < w.
//
// All calls of one tool read and write the same fields. Let tool a feed tool b
// if a writes a field that b reads; a tool may feed itself. Let R(v) be the set
// of tools that v's tool feeds, directly or through others, where every tool on
// the way has a call behind v. Two calls v < w, of tools a and b, are ordered
// by these rules:
//
//  1. If a feeds b, w waits for v.
//  2. Otherwise, if b feeds a, v waits for w, unless b is in R(v): then the two
//     are on a cycle whose first call is v, and w waits for v.
//  3. Otherwise neither waits.
//
// These are the rules of [Plan]: a reader waits for each writer, unless it is
// the first call of a cycle. R(v) looks only at calls behind v, since a cycle
// with a call in front of v has another first call, at which rule 2 breaks it.
//
// The rules never make calls wait in a circle. Proof: assume a circle, and let
// v be its first call. All others on the circle are behind v. Walk the circle
// from v against the direction of waiting: each next call y waits for the call
// x before it. The tool of each call y is in R(v):
//
//   - If x is v, then y waits for v by rule 1, so v's tool feeds y's, which has the
//     call y behind v; or by rule 2, so y's tool is in R(v).
//   - If x is not v, its tool is in R(v) by induction. If x's tool feeds y's, y's
//     tool is in R(v) too, because y is behind v. Otherwise y waits for x by the
//     exception in rule 2, so x < y and y's tool is in R(x). All calls behind x are
//     behind v, so whatever R(x) reaches from x's tool, R(v) reaches too.
//
// The last call on the walk is the one that v waits for. Since it is behind v,
// that is by rule 2, which demands that its tool is not in R(v): a
// contradiction.
type waitGraph struct {
	toolIndex []int    // of each call
	feeds     [][]bool // of each tool, the tools that it feeds
	last      []int    // of each tool, its last call
	reached   [][]bool // R(v) of a call, nil if it is not known yet
	layers    []int    // of each call, 1 + its layer, 0 if it is not known yet
}

func newWaitGraph(toolOf []*Tool, calls []int) *waitGraph {
	g := &waitGraph{
		toolIndex: make([]int, len(calls)),
		reached:   make([][]bool, len(calls)),
		layers:    make([]int, len(calls)),
	}
	var tools []*Tool
	indexOf := make(map[*Tool]int, len(calls))
	for v, call := range calls {
		t := toolOf[call]
		index, ok := indexOf[t]
		if !ok {
			index = len(tools)
			indexOf[t] = index
			tools, g.last = append(tools, t), append(g.last, v)
		}
		g.toolIndex[v], g.last[index] = index, v
	}
	readers := make(map[string][]int, len(tools))
	for b, t := range tools {
		for _, field := range t.reads {
			readers[field] = append(readers[field], b)
		}
	}
	g.feeds = make([][]bool, len(tools))
	for a, t := range tools {
		g.feeds[a] = make([]bool, len(tools))
		for _, field := range t.writes {
			for _, b := range readers[field] {
				g.feeds[a][b] = true
			}
		}
	}
	return g
}

// layerOf returns the number of call v's batch: the one after the last batch of
// a call that it waits for.
func (g *waitGraph) layerOf(v int) int {
	if g.layers[v] == 0 {
		layer := 0
		for u := range g.toolIndex {
			if u != v && g.waitsFor(v, u) {
				layer = max(layer, g.layerOf(u)+1)
			}
		}
		g.layers[v] = layer + 1
	}
	return g.layers[v] - 1
}

// waitsFor reports whether call v comes after call u.
func (g *waitGraph) waitsFor(v, u int) bool {
	first, second := min(u, v), max(u, v)
	a, b := g.toolIndex[first], g.toolIndex[second]
	if g.feeds[a][b] || g.feeds[b][a] && g.reachedFrom(first)[b] {
		return v == second
	}
	return g.feeds[b][a] && v == first
}

// reachedFrom returns R(v).
func (g *waitGraph) reachedFrom(v int) []bool {
	if g.reached[v] != nil {
		return g.reached[v]
	}
	reached := make([]bool, len(g.feeds))
	todo := []int{g.toolIndex[v]}
	for len(todo) > 0 {
		from := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for to, feeds := range g.feeds[from] {
			if feeds && g.last[to] > v && !reached[to] {
				reached[to] = true
				todo = append(todo, to)
			}
		}
	}
	g.reached[v] = reached
	return reached
}

// toolbox finds tools by name.
type toolbox struct {
	tools map[string]*Tool // nil for a name that several tools have
	names []string         // in the order of the tools
}

func newToolbox(tools []*Tool) toolbox {
	box := toolbox{tools: make(map[string]*Tool, len(tools))}
	for _, t := range tools {
		if t == nil || t.Name() == "" {
			continue
		}
		if _, twice := box.tools[t.Name()]; twice {
			box.tools[t.Name()] = nil
			continue
		}
		box.tools[t.Name()] = t
		box.names = append(box.names, t.Name())
	}
	return box
}

// toolsOf returns the tool of each call, or nil for a call without one.
func (box toolbox) toolsOf(calls []state.ToolCall) []*Tool {
	tools := make([]*Tool, len(calls))
	for i, call := range calls {
		tools[i] = box.tools[call.Name]
	}
	return tools
}

// missingTool returns the error that there is no tool of a name.
func (box toolbox) missingTool(name string) error {
	if _, twice := box.tools[name]; twice {
		return &kindError{ErrUnknownTool, fmt.Errorf("there are several tools %q", name)}
	}
	known := "none"
	if len(box.names) > 0 {
		known = strings.Join(box.names, ", ")
	}
	return &kindError{ErrUnknownTool, fmt.Errorf("tool %q not found; there are %s", name, known)}
}
