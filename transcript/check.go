package transcript

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/origin"
)

// Check returns what the provider would reject in a conversation, in the order
// of the messages. It returns nothing if the provider accepts the conversation.
// Items of other providers count as absent, because they are not sent.
func Check(msgs []state.Message, profile Profile) []Finding {
	return checkAll(msgs, profile)
}

func (a *adjacency) check(c *checker, i int) {
	m := c.msgs[i]
	if result, ok := m.(state.ToolResultMessage); ok {
		if number := c.answers[i]; number != none && a.turnStart[c.calls[number].message] != a.turn {
			c.addFinding(i, ruleNotAdjacent, describeCall(result.Call()))
		}
	} else {
		if a.before == nil || !c.sameTurn(a.before, m) {
			a.turn = i
		}
		a.turnStart[i] = a.turn
	}
	a.before = m
}

// adjacency demands that results come directly after the turn with their calls,
// before anything else.
type adjacency struct {
	turnStart []int         // of each message
	turn      int           // the start of the current turn
	before    state.Message // the last one
}

// continues reports whether the provider goes on with m, which ends with a tool
// of its own.
func (r *rules) continues(m state.Message) bool {
	own := r.isOwn(m) || r.format == origin.Anthropic && origin.IsHandmade(m)
	return own && endsWithServerTool(m)
}

// checkLast demands what some models and requests demand of the last turn; see
// Profile.NoPrefill and Profile.Thinking.
func (c *checker) checkLast() {
	if len(c.sent) == 0 {
		return
	}
	last := c.sent[len(c.sent)-1]
	if (c.UserLast || c.profile.noPrefill) && origin.FromAssistant(c.msgs[last]) && !c.continues(c.msgs[last]) {
		c.addFinding(last, rulePrefill, "the assistant has the last word")
	}
	if !c.profile.thinking || !c.ThinkingFirst {
		return
	}
	start := len(c.sent)
	for start > 0 && (origin.FromAssistant(c.msgs[c.sent[start-1]]) || isResult(c.msgs[c.sent[start-1]])) {
		start--
	}
	for start < len(c.sent) && isResult(c.msgs[c.sent[start]]) { // of a turn that is not here
		start++
	}
	if start == len(c.sent) || beginsWithReasoning(c.msgs[c.sent[start]]) {
		return
	}
	c.addFinding(c.sent[start], ruleThinking, "the turn does not begin with thinking")
}

// checkRole demands a role that the provider knows.
func (c *checker) checkRole(i int) {
	switch m := c.msgs[i].(type) {
	case state.TextMessage:
		if !c.acceptsRole(m.Role()) {
			c.addFinding(i, ruleRole, fmt.Sprintf("%.60q", m.Role()))
		}
	case state.ToolCallMessage:
		if m.Role() != "assistant" {
			c.addFinding(i, ruleRole, fmt.Sprintf("%.60q of calls", m.Role()))
		}
	}
}

// checkCalls demands names and ids that the provider accepts.
func (c *checker) checkCalls() {
	used := make([]bool, c.keys)
	usedUntil := make([]int, c.keys) // the last result of an id, or the end if one is missing
	for _, call := range c.calls {
		if !c.names.accept(call.Name) {
			c.addFinding(call.message, ruleName, describeCall(*call.ToolCall))
		}
		if !c.acceptsID(call.ID) {
			c.addFinding(call.message, ruleID, describeCall(*call.ToolCall))
		}
		if call.ID == "" || !c.RequireIDs {
			continue
		}
		// "Duplicate value for 'tool_call_id'" (agno#5116, openclaw#47136),
		// "tool_use ids must be unique" (claude-code#20901)
		if used[call.key] {
			mustBeNew := c.UniqueIDs && !c.isOwn(c.msgs[call.message])
			if mustBeNew || usedUntil[call.key] > call.message {
				c.addFinding(call.message, ruleDuplicateID, describeCall(*call.ToolCall))
			}
		}
		result := call.result
		if result == none {
			result = len(c.msgs)
		}
		used[call.key], usedUntil[call.key] = true, max(usedUntil[call.key], result)
	}
}

// checkPairs demands a result for each call and a call for each result.
//
//   - OpenAI: "An assistant message with 'tool_calls' must be followed by tool
//     messages responding to each 'tool_call_id'"; "messages with role 'tool' must
//     be a response to a preceeding message with 'tool_calls'"
//   - OpenAIResponses: "No tool output found for function call …"; "No tool call
//     found for function call output with call_id …"
//   - Anthropic: "tool_use ids were found without tool_result blocks immediately
//     after"; "unexpected tool_use_id found in tool_result blocks"
//   - Gemini: "the number of function response parts is equal to the number of
//     function call parts of the function call turn"
//
// If the conversation is continued, results may answer calls that the provider
// holds.
func (c *checker) checkPairs() {
	for _, call := range c.calls {
		if call.result == none {
			c.addFinding(call.message, ruleUnanswered, describeCall(*call.ToolCall))
		}
	}
	if c.profile.continued {
		return
	}
	for i, number := range c.answers {
		if result, ok := c.msgs[i].(state.ToolResultMessage); ok && number == none && internal.IsMessage(result) {
			c.addFinding(i, ruleOrphan, describeCall(result.Call()))
		}
	}
}

// checkAll returns the findings in the order of the messages.
func checkAll(msgs []state.Message, profile Profile) []Finding {
	c := checker{
		msgs: msgs, profile: profile, rules: profile.rulesOrCommon(),
		pairing: pairCalls(msgs), sent: make([]int, 0, len(msgs)),
	}
	places := adjacency{turn: none}
	if c.AdjacentResults {
		places.turnStart = make([]int, len(msgs))
	}
	for i, m := range msgs {
		_, isCall := m.(state.ToolCallMessage) // its calls are known already
		switch {
		case len(c.callsOf(i)) == 0 && c.answers[i] == none && !internal.IsMessage(m):
			c.addFinding(i, ruleMessage, "nil or a zero value")
		case isCall && len(c.callsOf(i)) > 0, !isCall && c.isSent(m):
			c.sent = append(c.sent, i)
			c.checkRole(i)
			if c.AdjacentResults {
				places.check(&c, i)
			}
		}
	}
	c.checkPairs()
	c.checkCalls()
	c.checkLast()
	c.checkPlaces()
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return a.Message - b.Message })
	return c.findings
}
