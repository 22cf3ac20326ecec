package tool

import "github.com/agentstate/state"

// Plan returns the batches in which [Run] makes the calls of one step, as
// indexes of calls. It looks at what the tools declare with From and To, and at
// the order of the calls:
//
//   - A call that reads a field comes after all calls that write it, wherever
//     they stand in the step. That several calls write a field orders nothing,
//     since Run merges in the order of the calls.
//   - Calls that wait for each other are a cycle. The first of them goes before
//     the others, and what then remains is looked at again.
//   - A stateful tool may read and write anything, so it is alone in its batch,
//     all calls in front of it come before it and all behind it after it.
//
// Each call is in the earliest batch that this allows; calls of one batch do
// not read what others of the batch write. Calls without a tool, of which Run
// tells the model, are in no batch.
func Plan(tools []*Tool, calls []state.ToolCall) [][]int {
	return schedule(newToolbox(tools).pick(calls))
}

// schedule is Plan with the tool of each call, or nil.
func schedule(tools []*Tool) [][]int {
	var batches [][]int
	var free []int // the calls since the last barrier
	for i, t := range tools {
		switch {
		case t == nil:
		case t.Stateful():
			batches = append(batches, arrange(tools, free)...)
			batches = append(batches, []int{i})
			free = free[:0]
		default:
			free = append(free, i)
		}
	}
	return append(batches, arrange(tools, free)...)
}

// arrange returns the batches of calls among which there is no stateful one.
func arrange(tools []*Tool, calls []int) [][]int {
	g := newGraph(tools, calls)
	var batches [][]int
	for v, call := range calls {
		level := g.level(v)
		for len(batches) < level {
			batches = append(batches, nil)
		}
		batches[level-1] = append(batches[level-1], call)
	}
	return batches
}

// graph says which of the calls 0, 1, … wait for which. Calls of one tool read
// and write the same, so what feeds what is kept by tool: by kind of call.
type graph struct {
	kinds   []int // of each call
	feeds   []set // of each kind, the kinds that read what it writes
	last    []int // of each kind, its last call
	waiting []set // what waitersOf returned for a call, or nil
	levels  []int // what level returned for a call, or 0
}

func newGraph(tools []*Tool, calls []int) *graph {
	g := &graph{
		kinds:   make([]int, len(calls)),
		waiting: make([]set, len(calls)),
		levels:  make([]int, len(calls)),
	}
	kinds := make([]*Tool, 0, len(calls))
	kindOf := make(map[*Tool]int, len(calls))
	for v, call := range calls {
		t := tools[call]
		k, ok := kindOf[t]
		if !ok {
			k = len(kinds)
			kindOf[t] = k
			kinds, g.last = append(kinds, t), append(g.last, v)
		}
		g.kinds[v], g.last[k] = k, v
	}
	readers := make(map[string]set, len(kinds))
	for k, t := range kinds {
		for _, s := range t.sources {
			if readers[s.field] == nil {
				readers[s.field] = newSet(len(kinds))
			}
			readers[s.field].add(k)
		}
	}
	g.feeds = make([]set, len(kinds))
	for k, t := range kinds {
		g.feeds[k] = newSet(len(kinds))
		for _, s := range t.sinks {
			g.feeds[k].addAll(readers[s.field])
		}
	}
	return g
}

// level returns the number of call v's batch, from 1: one more than that of the
// last batch it waits for.
func (g *graph) level(v int) int {
	if g.levels[v] == 0 {
		level := 1
		for u := range g.kinds {
			if u != v && g.waits(v, u) {
				level = max(level, g.level(u)+1)
			}
		}
		g.levels[v] = level
	}
	return g.levels[v]
}

// waits reports whether call v comes after call u.
func (g *graph) waits(v, u int) bool {
	first, second := min(u, v), max(u, v)
	switch a, b := g.kinds[first], g.kinds[second]; {
	case g.feeds[a].has(b):
		return v == second
	case g.feeds[b].has(a):
		// The first waits for the second, unless that would close a cycle.
		return g.waitersOf(first).has(b) == (v == second)
	}
	return false
}

// waitersOf returns the kinds whose calls behind v wait for it, if only through
// others behind it. Calls in front of v have no part in this: they are not held
// up by the calls behind them with which they are on a cycle, so that what is
// left are the cycles of which v is the first call.
func (g *graph) waitersOf(v int) set {
	if found := g.waiting[v]; found != nil {
		return found
	}
	found := newSet(len(g.feeds))
	todo := []int{g.kinds[v]}
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for next := range g.feeds {
			if g.feeds[k].has(next) && g.last[next] > v && !found.has(next) {
				found.add(next)
				todo = append(todo, next)
			}
		}
	}
	g.waiting[v] = found
	return found
}

// set is a set of small numbers.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s set) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s set) addAll(other set) {
	for i := range other {
		s[i] |= other[i]
	}
}
