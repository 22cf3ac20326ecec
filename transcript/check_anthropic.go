package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// checkAnthropic has the rules that only the Messages API has.
func checkAnthropic(c *checker) {
	c.checkServerTools()
	c.checkMiddleSystems()
	c.checkEmptyTexts()
}

// checkMiddleSystems demands that system messages are at the beginning: "role
// 'system' is not supported on this model" (claude-code#61412). Models that
// support it demand a user turn in front of it (pydantic-ai#6765), and accept
// several consecutive system messages.
func (c *checker) checkMiddleSystems() {
	prompt := c.systemPromptLength()
	afterUser := false
	for k, i := range c.sent {
		m := c.msgs[i]
		if !isSystem(m) {
			afterUser = isUserTurn(m)
		} else if k >= prompt && !(afterUser && c.isOwn(m) && m.Role() == "system") {
			c.addFinding(i, ruleSystem, "in the middle")
			afterUser = false
		}
	}
}

// checkEmptyTexts demands content: "text content blocks must be non-empty",
// "text content blocks must contain non-whitespace text", "all messages must
// have non-empty content except for the optional final assistant message".
func (c *checker) checkEmptyTexts() {
	for k, i := range c.sent {
		m, ok := c.msgs[i].(state.TextMessage)
		if !ok {
			continue
		}
		last := k == len(c.sent)-1 && origin.FromAssistant(m)
		problem := emptyText(m)
		if problem == "" || problem == noContent && last {
			continue
		}
		if empty := isBlank(m) || m.Content() == `""`; empty && c.besideCalls(k, origin.Joins) {
			continue // not sent
		}
		c.addFinding(i, ruleEmpty, problem)
	}
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

// checkServerTools demands that the calls and the results of the provider's own
// tools are complete:
//
//   - "Each advisor_tool_result block must have a corresponding server_tool_use
//     block before it" (claude-code#95406)
//   - "web_search tool use with id … was found without a corresponding
//     web_search_tool_result block" (anthropic-sdk-python#961, #1339). In the last
//     turn the result may be missing, because the provider continues that turn.
func (c *checker) checkServerTools() {
	type serverCall struct {
		id      string
		message int
	}
	var calls []serverCall
	answered := map[string]bool{} // of the calls so far
	lastUser := none
	for _, i := range c.sent {
		m := c.msgs[i]
		if m.Role() == "user" {
			lastUser = i
		}
		if !c.isOwn(m) {
			continue
		}
		for _, part := range textParts(m) {
			call, result := serverToolIDs(part)
			_, called := answered[result]
			switch {
			case call != "":
				calls, answered[call] = append(calls, serverCall{call, i}), false
			case called:
				answered[result] = true
			case result != "":
				c.addFinding(i, ruleServerTool, fmt.Sprintf("no call %.60q", result))
			}
		}
	}
	for _, call := range calls {
		if !answered[call.id] && call.message < lastUser {
			c.addFinding(call.message, ruleServerTool, fmt.Sprintf("no result of call %.60q", call.id))
		}
	}
}
