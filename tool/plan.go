package tool

import "slices"

// plan returns the batches in which [Run] makes the calls of one step, as
// indexes of calls, for the index of the tool of each call, or -1. Neighbours of
// which each is stateful, annotated as ReadOnly and without outputs share a
// batch. Each call is in the earliest batch that the rules allow. Calls without
// a tool are in no batch. plan compares each call with each: a message has at
// most 256.
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

// appendLayers appends the batches of calls of which none is stateful. Each call
// is in the batch behind the last one that it waits for.
//
// Calls never wait in a circle. The first call of one would wait for a call
// behind it that feeds it and is not reached from it; but each call on the way
// around is reached from the first, because all are behind it.
func (box toolbox) appendLayers(batches [][]int, toolOf, calls []int) [][]int {
	fed := box.feeding(toolOf, calls)
	waiting := make([]int, len(calls)) // for how many calls each waits
	behind := make([][]int, len(calls))
	for v, call := range calls {
		a := toolOf[call]
		reached := fed.reach(a, v)
		for w := v + 1; w < len(calls); w++ {
			b, first, then := toolOf[calls[w]], v, w
			switch fromA, fromB := fed.feeds(a, b), fed.feeds(b, a); {
			case !fromA && !fromB:
				continue
			case !fromA && !reached[b]:
				first, then = w, v
			}
			waiting[then]++
			behind[first] = append(behind[first], then)
		}
	}
	var batch []int
	for v := range calls {
		if waiting[v] == 0 {
			batch = append(batch, v)
		}
	}
	for len(batch) > 0 {
		var next, made []int
		slices.Sort(batch)
		for _, v := range batch {
			made = append(made, calls[v])
			for _, w := range behind[v] {
				if waiting[w]--; waiting[w] == 0 {
					next = append(next, w)
				}
			}
		}
		batches, batch = append(batches, made), next
	}
	return batches
}

// feeding says which tools write a field that another one, or the same, reads.
type feeding map[int]*fedTools

type fedTools struct {
	to   []int
	last int // call of the tool
}

func (box toolbox) feeding(toolOf, calls []int) feeding {
	f := feeding{}
	for v, call := range calls {
		if t := f[toolOf[call]]; t != nil {
			t.last = v
			continue
		}
		f[toolOf[call]] = &fedTools{last: v}
	}
	for a, from := range f {
		for b := range f {
			if slices.ContainsFunc(box.tools[a].writes, func(field string) bool { return slices.Contains(box.tools[b].reads, field) }) {
				from.to = append(from.to, b)
			}
		}
	}
	return f
}

func (f feeding) feeds(a, b int) bool { return slices.Contains(f[a].to, b) }

// reach returns the tools that tool a feeds, directly or through others, where
// every tool on the way has a call behind v. With one of them that also feeds a,
// call v is the first of a cycle, and is made before the others.
func (f feeding) reach(a, v int) map[int]bool {
	reached := map[int]bool{}
	for todo := []int{a}; len(todo) > 0; {
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
