package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// checkAnthropic has the rules that only the Messages API has.
func checkAnthropic(c *checker) {
	// "Each tool_use block must have a corresponding tool_result block in the next
	// message", where entries of the same role in a row are one message.
	results, tools, opening := c.adjacency(isAssistantsTurn), c.serverTools(), c.opening()
	after := false // the user's turn
	for k, i := range c.sent {
		results.next(i)
		tools.next(i)
		// "role 'system' is not supported on this model" (claude-code#61412); the
		// models that have it want it after a user's turn (pydantic-ai#6765), several
		// in a row as well.
		if m := c.msgs[i]; !isSystems(m) {
			after = isUsers(m)
		} else if k >= opening && !(after && c.isOwn(m) && m.Role() == "system") {
			c.add(i, ruleSystem, "in the middle")
			after = false
		}
		m, ok := c.msgs[i].(state.TextMessage)
		if !ok {
			continue
		}
		// "text content blocks must be non-empty", "text content blocks must contain
		// non-whitespace text", "all messages must have non-empty content except for
		// the optional final assistant message"
		last := k == len(c.sent)-1 && origin.IsAssistants(m)
		blank := hasNothing(m) || m.Content() == `""` // beside calls it is left out
		if what := emptyText(m); what != "" && !(what == noContent && last) && !(blank && c.besideCalls(k, origin.Joins)) {
			c.add(i, ruleEmpty, what)
		}
	}
	tools.end()
}

// isAssistantsTurn reports whether both messages are of one turn of the assistant's.
func isAssistantsTurn(before, m state.Message) bool {
	return origin.IsAssistants(before) && origin.IsAssistants(m)
}

// isUsers reports whether it is of the user's turn, as results are.
func isUsers(m state.Message) bool { return !origin.IsAssistants(m) && !isSystems(m) }

const noContent = "no content"

// emptyText tells what a text message lacks, "" if it says something.
func emptyText(m state.TextMessage) string {
	switch content := m.Content(); {
	case hasNothing(m):
		return noContent
	case content[0] == '"' && strings.TrimSpace(content.Text()) == "":
		return "no text"
	}
	for i, part := range partsOf(m) {
		if isTextPart(part) && strings.TrimSpace(part.String("text")) == "" {
			return fmt.Sprintf("no text in part %d", i)
		}
	}
	return ""
}

// hasNothing reports whether a text message has neither a text nor parts.
func hasNothing(m state.TextMessage) bool { return isMissing(m.Content()) || m.Content() == "[]" }

func isTextPart(part jsontext.Object) bool { return part.String("type") == "text" }

// serverTools demands that the calls and the results of the provider's own tools
// are complete:
//
//   - "Each advisor_tool_result block must have a corresponding server_tool_use
//     block before it" (claude-code#95406)
//   - "web_search tool use with id … was found without a corresponding
//     web_search_tool_result block" (anthropic-sdk-python#961, #1339); while its turn
//     is the last one, the provider goes on with it.
//
// It is told of each message that is sent, and of the end.
type serverTools struct {
	*checker
	calls    []serverCall
	answered map[string]bool // of the calls so far
	user     int             // the last text of the user's
}

type serverCall struct {
	id      string
	message int
}

func (c *checker) serverTools() *serverTools {
	return &serverTools{checker: c, answered: map[string]bool{}, user: none}
}

func (t *serverTools) next(i int) {
	m := t.msgs[i]
	if m.Role() == "user" {
		t.user = i
	}
	if !t.isOwn(m) {
		return
	}
	for _, part := range partsOf(m) {
		call, result := serverTool(part)
		_, called := t.answered[result]
		switch {
		case call != "":
			t.calls, t.answered[call] = append(t.calls, serverCall{call, i}), false
		case called:
			t.answered[result] = true
		case result != "":
			t.add(i, ruleServerTool, fmt.Sprintf("no call %.60q", result))
		}
	}
}

func (t *serverTools) end() {
	for _, call := range t.calls {
		if !t.answered[call.id] && call.message < t.user {
			t.add(call.message, ruleServerTool, fmt.Sprintf("no result of call %.60q", call.id))
		}
	}
}
