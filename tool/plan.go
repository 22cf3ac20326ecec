package tool

import (
	"cmp"
	"math"
	"slices"
	"sort"
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
//     all calls in front of it and before all calls behind it. Neighbours of which
//     each is stateful, annotated as ReadOnly and without outputs share a batch.
//
// Each call is in the earliest batch that these rules allow. Calls of one batch
// do not read what others of the batch write. Calls without a tool are in no
// batch. The time that Plan takes grows linearly with the number of calls.
func Plan(tools []*Tool, calls []state.ToolCall) [][]int {
	box := newToolbox(tools)
	return box.plan(box.indexes(calls))
}

// plan is Plan with the index of the tool of each call, or -1.
func (box toolbox) plan(toolOf []int) [][]int {
	var batches [][]int
	between := make([]int, 0, len(toolOf)) // the calls since the last stateful one
	looking := false                       // the last batch is of stateful calls that only look
	for i, index := range toolOf {
		if index < 0 {
			continue
		}
		switch t := box.tools[index]; {
		case t.looksOnly() && looking && len(between) == 0:
			batches[len(batches)-1] = append(batches[len(batches)-1], i)
		case t.Stateful():
			batches = append(box.appendLayers(batches, toolOf, between), []int{i})
			between, looking = between[:0], t.looksOnly()
		default:
			between = append(between, i)
		}
	}
	return box.appendLayers(batches, toolOf, between)
}

// looksOnly reports whether a tool may read anything and writes nothing.
func (t *Tool) looksOnly() bool {
	return t.stateful && t.annotations.ReadOnly && len(t.sinks) == 0
}

// appendLayers appends the batches of calls of which none is stateful.
func (box toolbox) appendLayers(batches [][]int, toolOf, calls []int) [][]int {
	if len(calls) == 0 {
		return batches
	}
	g := box.newWaitGraph(toolOf, calls)
	first := len(batches)
	room := make([]int, 0, len(calls)) // of the batches
	for layer := range g.countLayers() {
		batches = append(batches, room[len(room):len(room):len(room)+g.sizes[layer]])
		room = room[:len(room)+g.sizes[layer]]
	}
	for v, call := range calls {
		batch := &batches[first+g.layers[v]-1]
		*batch = append(*batch, call)
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
//
// The work is done per tool and not per pair of calls. A call waits for a
// prefix of another tool's calls, or for a suffix, or both:
//
//   - If b feeds a, a call v of a waits for all calls of b in front of it, by rule
//     1, and for all behind it, unless a feeds b or b is in R(v), by rule 2.
//   - If only a feeds b, v waits for the calls u of b in front of it for which a is
//     in R(u). They are the first calls of b, because R(u) shrinks as u moves back.
//
// The tools b of R(v) are those with reach(a, b) > v, where reach is the largest
// minimum of the last calls of the tools on a way from a to b.
type waitGraph struct {
	tools  []toolCalls // each tool that has calls
	toolOf []int       // of each call, in tools
	layers []int       // of each call, 1 + its layer, 0 if it is not known yet
	sizes  []int       // of each layer
	todo   []int       // of findLayer
}

// toolCalls are the calls of one tool.
type toolCalls struct {
	calls []int  // in their order
	edges []edge // to the tools that it feeds or that feed it, each once
	feeds bool   // some of them
	reach []int  // to each tool, nil until it is asked for
	// The largest of the layers of the first calls, and of the last calls, as
	// far as they are known: front[k] is that of calls[:k+1], and back[k] that
	// of the k+1 last.
	front, back []int
}

// edge connects a tool with another, or with itself.
type edge struct {
	to    int32
	feeds bool // it feeds the other
	isFed bool // the other feeds it
}

func (box toolbox) newWaitGraph(toolOf, calls []int) *waitGraph {
	n := len(calls)
	room := make([]int, 6*n+len(box.tools))
	take := func(n int) []int {
		part := room[:n:n]
		room = room[n:]
		return part
	}
	g := &waitGraph{toolOf: take(n), layers: take(n), sizes: take(n)}
	number := take(len(box.tools)) // 1 + the number of a tool in tools
	tools := make([]*Tool, 0, min(n, len(box.tools)))
	counts := make([]int, 0, cap(tools)) // of the calls of each tool
	for v, call := range calls {
		index := toolOf[call]
		if number[index] == 0 {
			tools, counts = append(tools, box.tools[index]), append(counts, 0)
			number[index] = len(tools)
		}
		g.toolOf[v] = number[index] - 1
		counts[g.toolOf[v]]++
	}
	g.tools = make([]toolCalls, len(tools))
	for a, count := range counts {
		g.tools[a] = toolCalls{calls: take(count)[:0], front: take(count)[:0], back: take(count)[:0]}
	}
	for v, a := range g.toolOf {
		g.tools[a].calls = append(g.tools[a].calls, v)
	}
	g.connect(tools)
	return g
}

// connect makes the edges.
func (g *waitGraph) connect(tools []*Tool) {
	type use struct {
		field string
		tool  int32
		write bool
	}
	count := 0
	for _, t := range tools {
		count += len(t.reads) + len(t.writes)
	}
	uses := make([]use, 0, count)
	for a, t := range tools {
		for _, field := range t.reads {
			uses = append(uses, use{field, int32(a), false})
		}
		for _, field := range t.writes {
			uses = append(uses, use{field, int32(a), true})
		}
	}
	slices.SortFunc(uses, func(a, b use) int { return strings.Compare(a.field, b.field) })
	type pair struct {
		from int32
		edge
	}
	pairs := make([]pair, 0, 2*count)
	for begin, end := 0, 0; begin < len(uses); begin = end {
		for end = begin; end < len(uses) && uses[end].field == uses[begin].field; end++ {
		}
		for _, w := range uses[begin:end] {
			for _, r := range uses[begin:end] {
				if w.write && !r.write {
					pairs = append(pairs, pair{w.tool, edge{r.tool, true, false}}, pair{r.tool, edge{w.tool, false, true}})
				}
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(int(a.from-b.from), int(a.to-b.to)) })
	edges := make([]edge, 0, len(pairs))
	for i := 0; i < len(pairs); {
		from, begin := pairs[i].from, len(edges)
		for ; i < len(pairs) && pairs[i].from == from; i++ {
			e := pairs[i].edge
			if last := len(edges) - 1; last >= begin && edges[last].to == e.to {
				edges[last].feeds = edges[last].feeds || e.feeds
				edges[last].isFed = edges[last].isFed || e.isFed
			} else {
				edges = append(edges, e)
			}
			g.tools[from].feeds = g.tools[from].feeds || e.feeds
		}
		g.tools[from].edges = edges[begin:len(edges):len(edges)]
	}
}

// countLayers finds the layer of each call and returns how many there are.
func (g *waitGraph) countLayers() int {
	layers := 0
	for v := range g.layers {
		g.findLayer(v)
		layers = max(layers, g.layers[v])
		g.sizes[g.layers[v]-1]++
	}
	return layers
}

// findLayer finds the layer of call v: the one after the last of a call that it
// waits for. It needs no recursion, whose depth the model would choose.
func (g *waitGraph) findLayer(v int) {
	todo := append(g.todo[:0], v)
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		if layer, unknown := g.tryLayer(v); unknown >= 0 {
			todo = append(todo, unknown)
		} else {
			g.layers[v] = layer + 1
			todo = todo[:len(todo)-1]
		}
	}
	g.todo = todo
}

// tryLayer returns the layer of call v and -1, or else a call that v waits for
// and whose layer is not known yet.
func (g *waitGraph) tryLayer(v int) (layer, unknown int) {
	if g.layers[v] > 0 {
		return g.layers[v] - 1, -1
	}
	a := g.toolOf[v]
	for _, e := range g.tools[a].edges {
		b := &g.tools[e.to]
		front := sort.SearchInts(b.calls, v)
		back := len(b.calls) - front
		switch {
		case e.isFed && (e.feeds || back == 0 || g.reach(a, int(e.to)) > v):
			back = 0
		case !e.isFed && front > 0:
			front, back = sort.SearchInts(b.calls[:front], g.reach(int(e.to), a)), 0
		case !e.isFed:
			back = 0
		}
		for len(b.front) < front {
			next := b.calls[len(b.front)]
			if g.layers[next] == 0 {
				return 0, next
			}
			b.front = appendMax(b.front, g.layers[next])
		}
		for len(b.back) < back {
			next := b.calls[len(b.calls)-1-len(b.back)]
			if g.layers[next] == 0 {
				return 0, next
			}
			b.back = appendMax(b.back, g.layers[next])
		}
		if front > 0 {
			layer = max(layer, b.front[front-1])
		}
		if back > 0 {
			layer = max(layer, b.back[back-1])
		}
	}
	return layer, -1
}

// appendMax appends the larger one of n and the last of list.
func appendMax(list []int, n int) []int {
	if len(list) > 0 {
		n = max(n, list[len(list)-1])
	}
	return append(list, n)
}

// reach returns the largest minimum of the last calls of the tools on a way
// from a to b, or -1 if there is no way.
func (g *waitGraph) reach(a, b int) int {
	from := &g.tools[a]
	if !from.feeds {
		return -1
	}
	if from.reach == nil {
		from.reach = make([]int, len(g.tools))
		for i := range from.reach {
			from.reach[i] = -1
		}
		type arrival struct{ at, width int }
		for todo := []arrival{{a, math.MaxInt}}; len(todo) > 0; {
			x := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, e := range g.tools[x.at].edges {
				to := &g.tools[e.to]
				width := min(x.width, to.calls[len(to.calls)-1])
				if e.feeds && width > from.reach[e.to] {
					from.reach[e.to] = width
					todo = append(todo, arrival{int(e.to), width})
				}
			}
		}
	}
	return from.reach[b]
}
