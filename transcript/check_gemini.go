package transcript

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// checkGemini has the rules that only generateContent has.
func checkGemini(c *checker) {
	c.checkResponses()
	c.checkUserFirst()
	c.checkCallTurns()
	prompt := c.systemPromptLength()
	for k, i := range c.sent {
		m, ok := c.msgs[i].(state.TextMessage)
		if !ok {
			continue
		}
		// "contents.parts must not be empty" (vercel/ai#3775), "must include at
		// least one parts field" (genkit#3690). A part with an empty text is
		// accepted.
		if isBlank(m) && !c.besideCalls(k, sameContent) {
			c.addFinding(i, ruleEmpty, noContent)
		}
		// "Please use a valid role: user, model" (openagent#1666)
		if isSystem(m) && k >= prompt {
			c.addFinding(i, ruleSystem, "in the middle")
		}
	}
}

// sameContent reports whether a message is in one content of Gemini with the
// message before it. A message that came from Gemini says so itself. Otherwise
// results share a content with nothing but results, and the rest is as for
// other providers.
func sameContent(before, m state.Message) bool {
	if _, said := origin.Joined(m); said {
		if _, own := origin.Of(m, origin.Gemini); own {
			return origin.Joins(before, m)
		}
	}
	if isResult(m) || isResult(before) {
		return isResult(m) && isResult(before)
	}
	return origin.Joins(before, m)
}

// checkResponses demands that a content with responses has nothing else
// (gemini-cli#16135) and that they have the names of the functions.
func (c *checker) checkResponses() {
	var before state.Message
	for _, i := range c.sent {
		m := c.msgs[i]
		if before != nil && isResult(before) && !isResult(m) && sameContent(before, m) {
			c.addFinding(i, ruleNotAdjacent, "results with something else in their content")
		}
		if result, ok := m.(state.ToolResultMessage); ok && c.answers[i] != none {
			call, name := c.calls[c.answers[i]], result.Call().Name
			if name != call.Name {
				c.addFinding(i, ruleName, fmt.Sprintf("%s, answered as %.60q", describeCall(*call.ToolCall), name))
			}
		}
		before = m
	}
}

// checkCallTurns demands that calls come after the user: "Please ensure that
// function call turn comes immediately after a user turn or after a function
// response turn" (gemini-cli#11814).
func (c *checker) checkCallTurns() {
	var before, beforeTurn state.Message
	for _, i := range c.sent {
		m := c.msgs[i]
		if before == nil || !isAssistantTurn(before, m) {
			beforeTurn = before
		}
		before = m
		if _, ok := m.(state.ToolCallMessage); ok && (beforeTurn == nil || !isUserTurn(beforeTurn)) {
			c.addFinding(i, ruleCallTurn, "not after the user or results")
		}
	}
}

// checkUserFirst demands that the user begins: "first content should be with
// role 'user'".
func (c *checker) checkUserFirst() {
	for _, i := range c.sent {
		if m := c.msgs[i]; !isSystem(m) {
			if origin.FromAssistant(m) {
				c.addFinding(i, ruleFirst, "the assistant begins")
			}
			return
		}
	}
}
