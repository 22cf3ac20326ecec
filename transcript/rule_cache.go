package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// maxBreakpoints is how many breakpoints of the prompt cache a request of the
// Messages API may have: "A maximum of 4 blocks with cache_control may be
// provided. Found 5." (Anthropic.SDK#50). Those of tools are not in the conversation.
const maxBreakpoints = 4

// findBreakpoints demands that there are not too many. Parts of other providers
// keep theirs.
func findBreakpoints(c *checker) {
	var all breakpoints
	for _, i := range c.sent {
		for range countBreakpoints(c.msgs[i].message) {
			all = append(all, i)
		}
	}
	last := none
	for n, i := range all {
		if all.isSpare(n) && i != last {
			c.addFinding(i, ruleCache, fmt.Sprintf("%d breakpoints in all", len(all)))
			last = i
		}
	}
}

// repairBreakpoints removes breakpoints of too many.
func (r *repairer) repairBreakpoints() {
	if len(r.refusals(ruleCache)) == 0 {
		return
	}
	var all breakpoints
	r.eachBreakpoint(func(k int) bool {
		all = append(all, k)
		return false
	})
	n := 0
	r.eachBreakpoint(func(int) bool {
		n++
		return all.isSpare(n - 1)
	})
}

// eachBreakpoint calls drop for each breakpoint with the index of its entry, and
// removes those for which it returns true.
func (r *repairer) eachBreakpoint(drop func(k int) bool) {
	for k, e := range r.entries {
		if !r.isSent(e.message) || !mayHaveBreakpoints(e.message) {
			continue
		}
		w := breakpointWalk{drop: func() bool { return drop(k) }}
		members := w.inMessage(e.message)
		if w.dropped > 0 {
			e.replaceMessage(state.DecodeMessage(members.JSON()))
			r.reportChange(e, ruleCache, fmt.Sprintf("dropped %d breakpoints", w.dropped))
		}
	}
}

// breakpoints are the messages with the breakpoints of a conversation, one for
// each.
type breakpoints []int

// isSpare reports whether the n-th breakpoint is one of too many. The first is
// that of the beginning, which all requests share, and the last ones are those
// of this request and the one before it.
func (b breakpoints) isSpare(n int) bool {
	return len(b) > maxBreakpoints && n > 0 && n <= len(b)-maxBreakpoints
}

// countBreakpoints returns how many breakpoints a message has.
func countBreakpoints(m state.Message) int {
	if !mayHaveBreakpoints(m) {
		return 0
	}
	n := 0
	w := breakpointWalk{drop: func() bool {
		n++
		return false
	}}
	w.inMessage(m)
	return n
}

// breakpointWalk visits the breakpoints of a message, and removes those for
// which drop returns true.
type breakpointWalk struct {
	drop    func() bool
	dropped int
}

// inMessage returns the members of a message.
func (w *breakpointWalk) inMessage(m state.Message) jsontext.Object {
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	if _, ok := m.(state.ToolCallMessage); ok {
		return w.inEach(members, "tools", func(call jsontext.Object) jsontext.Object {
			return w.in(w.in(call), origin.Anthropic, "more")
		})
	}
	members = w.inEach(members, "content", func(part jsontext.Object) jsontext.Object { return w.in(part) })
	if _, ok := m.(state.ToolResultMessage); ok {
		members = w.in(w.in(members), origin.Anthropic, "part", "more")
	}
	return members
}

// mayHaveBreakpoints reports whether a message may have some. It reads no more
// than the members that can have them: most messages have none.
func mayHaveBreakpoints(m state.Message) bool {
	switch m := m.(type) {
	case state.TextMessage:
		return isMarkedList(m.Content())
	case state.ToolCallMessage:
		for k := 0; ; k++ {
			extra, ok := inside.CallExtra(m, k)
			if !ok || strings.Contains(extra, `"cache_control"`) {
				return ok
			}
		}
	case state.ToolResultMessage:
		_, marked := m.Extra("cache_control")
		kept, _ := m.Extra(origin.Anthropic)
		return marked || strings.Contains(string(kept), `"cache_control"`) || isMarkedList(m.Content())
	}
	return false
}

func isMarkedList(content state.JSON) bool {
	return strings.HasPrefix(string(content), "[") && strings.Contains(string(content), `"cache_control"`)
}

// inEach visits the objects of a list.
func (w *breakpointWalk) inEach(
	o jsontext.Object, list string, visit func(jsontext.Object) jsontext.Object,
) jsontext.Object {
	elements, err := o.Elements(list)
	if err != nil || len(elements) == 0 {
		return o
	}
	before := w.dropped
	for i, element := range elements {
		inner, err := jsontext.Members(element)
		if err != nil {
			continue
		}
		n := w.dropped
		if inner = visit(inner); w.dropped > n {
			elements[i] = inner.JSON()
		}
	}
	if w.dropped == before {
		return o
	}
	return o.With(list, jsontext.Array(elements))
}

// in visits an object, or the object at a path in it.
func (w *breakpointWalk) in(o jsontext.Object, path ...string) jsontext.Object {
	if len(path) > 0 {
		before := w.dropped
		inner := w.in(o.Object(path[0]), path[1:]...)
		if w.dropped == before {
			return o
		}
		return o.With(path[0], inner.JSON())
	}
	if jsontext.IsNull(o.Get("cache_control")) || !w.drop() {
		return o
	}
	w.dropped++
	return o.Without("cache_control")
}
