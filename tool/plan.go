package tool

import "slices"

// plan returns the batches in which [Run] makes the calls of one step, as
// indexes of calls. Neighbours of which each is stateful, annotated as ReadOnly
// and without outputs share a batch. Each call is in the earliest batch that the
// rules allow. Calls without a tool are in no batch. plan compares each call with
// each: a message has at most 256.
func plan(calls []stepCall) [][]int {
	var batches [][]int
	between := make([]*stepCall, 0, len(calls)) // since the last stateful one
	looking := false                            // the last batch is of stateful calls that only look
	for i := range calls {
		switch c := &calls[i]; {
		case c.tool == nil:
		case c.tool.looksOnly() && looking && len(between) == 0:
			batches[len(batches)-1] = append(batches[len(batches)-1], i)
		case c.tool.stateful:
			batches = append(appendLayers(batches, between), []int{i})
			between, looking = between[:0], c.tool.looksOnly()
		default:
			between = append(between, c)
		}
	}
	return appendLayers(batches, between)
}

// looksOnly reports whether a tool may read anything and writes nothing.
func (t *Tool) looksOnly() bool {
	return t.stateful && t.annotations.ReadOnly && len(t.sinks) == 0
}

// appendLayers appends the batches of calls of which none is stateful. Each call
// is in the batch behind the last one that it waits for.
//
// Calls never wait in a circle. The first call of one would wait for a call
// behind it that feeds it and is not reached from it; but each call on the way
// around is reached from the first, because all are behind it.
func appendLayers(batches [][]int, calls []*stepCall) [][]int {
	fed := newFeeding(calls)
	layer := make([]int, len(calls))
	var waits [][2]int // the second call waits for the first
	for v, call := range calls {
		a := call.tool
		reached := fed.reach(a, v)
		for w := v + 1; w < len(calls); w++ {
			b := calls[w].tool
			switch fromA, fromB := fed.feeds(a, b), fed.feeds(b, a); {
			case !fromA && !fromB:
			case !fromA && !reached[b]:
				waits = append(waits, [2]int{w, v})
			default:
				waits = append(waits, [2]int{v, w})
			}
		}
	}
	for moved := true; moved; {
		moved = false
		for _, w := range waits {
			if layer[w[1]] <= layer[w[0]] {
				layer[w[1]], moved = layer[w[0]]+1, true
			}
		}
	}
	first := len(batches)
	for v, call := range calls {
		for len(batches) <= first+layer[v] {
			batches = append(batches, nil)
		}
		batches[first+layer[v]] = append(batches[first+layer[v]], call.index)
	}
	return batches
}

// feeding says which tools write a field that another one, or the same, reads.
type feeding map[*Tool]*fedTools

type fedTools struct {
	to   []*Tool
	last int // call of the tool
}

func newFeeding(calls []*stepCall) feeding {
	f := feeding{}
	for v, c := range calls {
		if f[c.tool] == nil {
			f[c.tool] = &fedTools{}
		}
		f[c.tool].last = v
	}
	for a, from := range f {
		for b := range f {
			if slices.ContainsFunc(a.writes, func(field string) bool { return slices.Contains(b.reads, field) }) {
				from.to = append(from.to, b)
			}
		}
	}
	return f
}

func (f feeding) feeds(a, b *Tool) bool { return slices.Contains(f[a].to, b) }

// reach returns the tools that tool a feeds, directly or through others, where
// every tool on the way has a call behind v. With one of them that also feeds a,
// call v is the first of a cycle, and is made before the others.
func (f feeding) reach(a *Tool, v int) map[*Tool]bool {
	reached := map[*Tool]bool{}
	for todo := []*Tool{a}; len(todo) > 0; {
		from := todo[0]
		todo = todo[1:]
		for _, b := range f[from].to {
			if !reached[b] && f[b].last > v {
				reached[b] = true
				todo = append(todo, b)
			}
		}
	}
	return reached
}
