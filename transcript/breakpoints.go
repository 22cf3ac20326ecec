package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// maxBreakpoints is how many breakpoints of the prompt cache a request of the
// Messages API may have: "A maximum of 4 blocks with cache_control may be
// provided. Found 5." (Anthropic.SDK#50). Those of tools are not in the conversation.
const maxBreakpoints = 4

// breakpoints are the messages with the breakpoints of a conversation, one for
// each.
type breakpoints []int

// isSpare reports whether the n-th breakpoint is one of too many. The first is
// that of the beginning, which all requests share, and the last ones are those
// of this request and the one before it.
func (b breakpoints) isSpare(n int) bool {
	return len(b) > maxBreakpoints && n > 0 && n <= len(b)-maxBreakpoints
}

// check adds a finding for each message with breakpoints of too many.
func (b breakpoints) check(c *checker) {
	last := none
	for n, i := range b {
		if b.isSpare(n) && i != last {
			c.addFinding(i, ruleCache, fmt.Sprintf("%d breakpoints in all", len(b)))
			last = i
		}
	}
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
		members = w.in(w.in(members), origin.Anthropic, "block", "more")
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
			extra, ok := internal.CallExtra(m, k)
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
func (w *breakpointWalk) inEach(o jsontext.Object, list string, visit func(jsontext.Object) jsontext.Object) jsontext.Object {
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
