package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// checkAnthropic has the rules that only the Messages API has.
func checkAnthropic(c *checker) {
	// "Each tool_use block must have a corresponding tool_result block in the next
	// message". Consecutive entries of one role are one message.
	results, tools := c.newAdjacency(isAssistantTurn), c.newServerTools()
	prompt := c.systemPromptLength()
	afterUser := false
	for k, i := range c.sent {
		results.addMessage(i)
		tools.addMessage(i)
		// "role 'system' is not supported on this model" (claude-code#61412). Models
		// that support it demand a user turn in front of it (pydantic-ai#6765), and
		// accept several system messages in a row.
		if m := c.msgs[i]; !isSystem(m) {
			afterUser = isUserTurn(m)
		} else if k >= prompt && !(afterUser && c.isOwn(m) && m.Role() == "system") {
			c.addFinding(i, ruleSystem, "in the middle")
			afterUser = false
		}
		m, ok := c.msgs[i].(state.TextMessage)
		if !ok {
			continue
		}
		// "text content blocks must be non-empty", "text content blocks must contain
		// non-whitespace text", "all messages must have non-empty content except for
		// the optional final assistant message"
		last := k == len(c.sent)-1 && origin.IsAssistants(m)
		problem := emptyText(m)
		if problem == "" || problem == noContent && last {
			continue
		}
		if empty := isBlank(m) || m.Content() == `""`; empty && c.besideCalls(k, origin.Joins) {
			continue // not sent
		}
		c.addFinding(i, ruleEmpty, problem)
	}
	tools.finish()
}

// emptyText returns what a text message lacks, "" if it lacks nothing.
func emptyText(m state.TextMessage) string {
	switch content := m.Content(); {
	case isBlank(m):
		return noContent
	case content[0] == '"' && strings.TrimSpace(content.Text()) == "":
		return "no text"
	}
	for i, part := range textParts(m) {
		if isTextPart(part) && strings.TrimSpace(part.String("text")) == "" {
			return fmt.Sprintf("no text in part %d", i)
		}
	}
	return ""
}

// serverTools demands that the calls and the results of the provider's own tools
// are complete:
//
//   - "Each advisor_tool_result block must have a corresponding server_tool_use
//     block before it" (claude-code#95406)
//   - "web_search tool use with id … was found without a corresponding
//     web_search_tool_result block" (anthropic-sdk-python#961, #1339). In the last
//     turn the result may be missing, because the provider continues that turn.
//
// It is given each message that is sent, and then told that there are no more.
type serverTools struct {
	*checker
	calls    []serverCall
	answered map[string]bool // of the calls so far
	lastUser int             // the last text of the user
}

type serverCall struct {
	id      string
	message int
}

func (c *checker) newServerTools() *serverTools {
	return &serverTools{checker: c, answered: map[string]bool{}, lastUser: none}
}

func (t *serverTools) addMessage(i int) {
	m := t.msgs[i]
	if m.Role() == "user" {
		t.lastUser = i
	}
	if !t.isOwn(m) {
		return
	}
	for _, part := range textParts(m) {
		call, result := serverToolIDs(part)
		_, called := t.answered[result]
		switch {
		case call != "":
			t.calls, t.answered[call] = append(t.calls, serverCall{call, i}), false
		case called:
			t.answered[result] = true
		case result != "":
			t.addFinding(i, ruleServerTool, fmt.Sprintf("no call %.60q", result))
		}
	}
}

func (t *serverTools) finish() {
	for _, call := range t.calls {
		if !t.answered[call.id] && call.message < t.lastUser {
			t.addFinding(call.message, ruleServerTool, fmt.Sprintf("no result of call %.60q", call.id))
		}
	}
}
