package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// checkAnthropic has the rules that only the Messages API has. It visits each
// message once: long conversations do not fit into the caches of a processor.
func checkAnthropic(c *checker) {
	systems := middleSystems{prompt: c.systemPromptLength()}
	tools := serverTools{answered: map[string]bool{}, lastUser: none}
	for k, i := range c.sent {
		tools.check(c, i)
		systems.check(c, k)
		c.checkEmptyText(k)
	}
	tools.checkResults(c)
}

// middleSystems demands that system messages are at the beginning: "role
// 'system' is not supported on this model" (claude-code#61412). Models that
// support it demand a user turn in front of it (pydantic-ai#6765), and accept
// several consecutive system messages.
type middleSystems struct {
	prompt    int // the number of messages that are the system prompt
	afterUser bool
}

func (s *middleSystems) check(c *checker, k int) {
	i := c.sent[k]
	m := c.msgs[i]
	if !isSystem(m) {
		s.afterUser = isUserTurn(m)
	} else if k >= s.prompt && !(s.afterUser && c.isOwn(m) && m.Role() == "system") {
		c.addFinding(i, ruleSystem, "in the middle")
		s.afterUser = false
	}
}

// checkEmptyText demands content: "text content blocks must be non-empty",
// "text content blocks must contain non-whitespace text", "all messages must
// have non-empty content except for the optional final assistant message".
func (c *checker) checkEmptyText(k int) {
	i := c.sent[k]
	m, ok := c.msgs[i].(state.TextMessage)
	if !ok {
		return
	}
	last := k == len(c.sent)-1 && origin.FromAssistant(m)
	problem := emptyText(m)
	if problem == "" || problem == noContent && last {
		return
	}
	if empty := isBlank(m) || m.Content() == `""`; empty && c.besideCalls(k, origin.Joins) {
		return // not sent
	}
	c.addFinding(i, ruleEmpty, problem)
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
type serverTools struct {
	calls    []serverCall
	answered map[string]bool // of the calls so far
	lastUser int
}

type serverCall struct {
	id      string
	message int
}

func (s *serverTools) check(c *checker, i int) {
	m := c.msgs[i]
	if m.Role() == "user" {
		s.lastUser = i
	}
	if !c.isOwn(m) {
		return
	}
	for _, part := range textParts(m) {
		call, result := serverToolIDs(part)
		_, called := s.answered[result]
		switch {
		case call != "":
			s.calls, s.answered[call] = append(s.calls, serverCall{call, i}), false
		case called:
			s.answered[result] = true
		case result != "":
			c.addFinding(i, ruleServerTool, fmt.Sprintf("no call %.60q", result))
		}
	}
}

// checkResults looks for calls without a result, after the last message.
func (s *serverTools) checkResults(c *checker) {
	for _, call := range s.calls {
		if !s.answered[call.id] && call.message < s.lastUser {
			c.addFinding(call.message, ruleServerTool, fmt.Sprintf("no result of call %.60q", call.id))
		}
	}
}
