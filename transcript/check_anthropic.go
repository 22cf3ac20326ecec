package transcript

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// blockWords has the rules about the blocks of the Messages API. The calls and
// the results of the provider's own tools have to be complete:
//
//   - "Each advisor_tool_result block must have a corresponding server_tool_use
//     block before it" (claude-code#95406)
//   - "web_search tool use with id … was found without a corresponding
//     web_search_tool_result block" (anthropic-sdk-python#961, #1339). In the last
//     turn the result may be missing, because the provider continues that turn.
type blockWords struct {
	calls    []serverCall
	answered map[string]bool // of the calls so far
	lastUser int             // after the first call
	cached   breakpoints
}

type serverCall struct {
	id      string
	message int
}

func (w *blockWords) check(c *checker, k int) {
	i := c.sent[k]
	m := c.msgs[i]
	if len(w.calls) > 0 && m.Role() == "user" {
		w.lastUser = i
	}
	for range countBreakpoints(m) { // parts of other providers keep theirs, too
		w.cached = append(w.cached, i)
	}
	if !c.keepsParts(m) {
		return
	}
	for n, part := range textParts(m) {
		// "'image' blocks are not permitted within assistant turns"
		// (Semoss#2323). Those of other providers are not sent.
		if isImagePart(part) && origin.FromAssistant(m) && c.isOwn(m) {
			c.addFinding(i, ruleContent, fmt.Sprintf("part %d is an image", n))
		}
		call, result := serverToolIDs(part)
		_, called := w.answered[result]
		switch {
		case call != "":
			w.calls, w.answered[call] = append(w.calls, serverCall{call, i}), false
		case called:
			w.answered[result] = true
		case result != "":
			c.addFinding(i, ruleServerTool, fmt.Sprintf("no call %.60q", result))
		}
	}
}

// end looks for calls without a result, and for breakpoints of too many.
func (w *blockWords) end(c *checker) {
	w.cached.check(c)
	for _, call := range w.calls {
		if !w.answered[call.id] && call.message < w.lastUser {
			c.addFinding(call.message, ruleServerTool, fmt.Sprintf("no result of call %.60q", call.id))
		}
	}
}

// endsWithServerResult reports whether a text ends with the result of one of the
// provider's own tools.
func endsWithServerResult(m state.Message) bool {
	parts := textParts(m)
	if len(parts) == 0 {
		return false
	}
	_, result := serverToolIDs(parts[len(parts)-1])
	return result != ""
}

// hasServerTool reports whether a text has calls or results of the provider's
// own tools.
func hasServerTool(m state.Message) bool { return slices.ContainsFunc(textParts(m), isServerTool) }

// isServerTool reports whether a part is a call of the provider's own tools, or
// its result.
func isServerTool(part jsontext.Object) bool {
	call, result := serverToolIDs(part)
	return call != "" || result != ""
}
