package transcript

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// checkGemini has the rules that only generateContent has.
func checkGemini(c *checker) {
	// "Please ensure that the number of function response parts is equal to the
	// number of function call parts of the function call turn" (gemini-cli#4217),
	// where contents of the same role in a row are one turn.
	results := c.adjacency(isAssistantsTurn)
	c.responses()
	c.userFirst()
	c.callTurns()
	opening := c.opening()
	for k, i := range c.sent {
		results.next(i)
		m, ok := c.msgs[i].(state.TextMessage)
		if !ok {
			continue
		}
		// "contents.parts must not be empty" (vercel/ai#3775), "must include at least
		// one parts field" (genkit#3690). A part with an empty text is taken.
		if hasNothing(m) && !c.besideCalls(k, inContent) {
			c.add(i, ruleEmpty, noContent)
		}
		// "Please use a valid role: user, model" (openagent#1666)
		if isSystems(m) && k >= opening {
			c.add(i, ruleSystem, "in the middle")
		}
	}
}

// inContent reports whether a message is of the same content as the one before
// it. It is as origin.Joins has it, but that results are of one, with nothing else; in
// what came from Gemini only if it says so.
func inContent(before, m state.Message) bool {
	if _, said := origin.Joined(m); said {
		if _, own := origin.Of(m, origin.Gemini); own {
			return origin.Joins(before, m)
		}
	}
	if result, after := isResult(m), isResult(before); result || after {
		return result && after
	}
	return origin.Joins(before, m)
}

// responses demands that a content with responses has nothing else (gemini-cli#16135)
// and that they have the names of the functions.
func (c *checker) responses() {
	for k, i := range c.sent {
		m := c.msgs[i]
		if k > 0 && isResult(c.msgs[c.sent[k-1]]) && !isResult(m) && inContent(c.msgs[c.sent[k-1]], m) {
			c.add(i, ruleNotAdjacent, "results with something else in their content")
		}
		result, ok := m.(state.ToolResultMessage)
		if number := c.answers[i]; ok && number != none && result.Call().Name != c.pairing.calls[number].Name {
			c.add(i, ruleName, fmt.Sprintf("%s, answered as %.60q", describe(*c.pairing.calls[number].ToolCall), result.Call().Name))
		}
	}
}

// callTurns demands that calls come after the user: "Please ensure that function
// call turn comes immediately after a user turn or after a function response
// turn" (gemini-cli#11814).
func (c *checker) callTurns() {
	var last, before state.Message // the message before, and the one before the turn
	for _, i := range c.sent {
		m := c.msgs[i]
		if last == nil || !isAssistantsTurn(last, m) {
			before = last
		}
		last = m
		if _, ok := m.(state.ToolCallMessage); ok && (before == nil || !isUsers(before)) {
			c.add(i, ruleCallTurn, "not after the user or results")
		}
	}
}

// userFirst demands that the user begins: "first content should be with role
// 'user'".
func (c *checker) userFirst() {
	for _, i := range c.sent {
		if m := c.msgs[i]; !isSystems(m) {
			if origin.IsAssistants(m) {
				c.add(i, ruleFirst, "the assistant begins")
			}
			return
		}
	}
}
