package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// Check returns what the provider would refuse in a conversation, in the order of
// the messages; nothing if it accepts it.
//
// Items of other providers' own kinds count as not there, since they are not
// sent.
func Check(msgs []state.Message, profile Profile) []Finding {
	c := checker{msgs: msgs, rules: profile.demands(), pairing: pair(msgs)}
	c.sent = make([]int, 0, len(msgs))
	for i, m := range msgs {
		_, isCall := m.(state.ToolCallMessage) // of which the calls are known
		switch {
		case !isMessage(m):
			c.add(i, ruleMessage, "nil or a zero value")
		case isCall && len(c.of(i)) > 0, !isCall && c.isSent(m):
			c.sent = append(c.sent, i)
		}
	}
	c.pairs(profile.continued)
	c.calls()
	c.roles()
	if c.check != nil {
		c.check(&c)
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return a.Message - b.Message })
	return c.findings
}

// checker collects findings.
type checker struct {
	*rules
	pairing
	msgs     []state.Message
	sent     []int // the places of the messages that the provider gets
	findings []Finding
}

func (c *checker) add(message int, rule, detail string) {
	c.findings = append(c.findings, Finding{message, rule, detail})
}

// isSent reports whether there is anything in the message for the provider. There
// is not in the items and the reasoning of other providers.
func (c *checker) isSent(m state.Message) bool {
	switch m := m.(type) {
	case state.UnknownMessage:
		format, _ := origin.Unknown(m)
		return format == c.format
	case state.TextMessage:
		return !isReasoning(m) || c.isOwn(m)
	case state.ToolCallMessage:
		return m.Calls() != nil
	}
	return true
}

// isOwn reports whether the message came from the provider.
func (c *checker) isOwn(m state.Message) bool {
	_, ok := origin.Of(m, c.format)
	return ok
}

// pairs demands a result for each call and a call for each result.
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
func (c *checker) pairs(continued bool) {
	for _, call := range c.pairing.calls {
		if call.result == none {
			c.add(call.message, ruleUnanswered, describe(call.ToolCall))
		}
	}
	if continued {
		return
	}
	for i, number := range c.answers {
		if result, ok := c.msgs[i].(state.ToolResultMessage); ok && number == none && isMessage(result) {
			c.add(i, ruleOrphan, describe(result.Call()))
		}
	}
}

// calls demands names and ids that the provider takes.
func (c *checker) calls() {
	used := make([]bool, c.keys)
	until := make([]int, c.keys) // to where an id is in use: its last result, or the end
	for _, call := range c.pairing.calls {
		if !c.goodName(call.Name) {
			c.add(call.message, ruleName, describe(call.ToolCall))
		}
		if !c.goodID(call.ID) {
			c.add(call.message, ruleID, describe(call.ToolCall))
		}
		if call.ID == "" || c.ids == idsFree {
			continue
		}
		// OpenAI, OpenAIResponses: "Duplicate value for 'tool_call_id'" (agno#5116,
		// openclaw#47136). Anthropic: "tool_use ids must be unique" (claude-code#20901);
		// it has taken an id again after the answer, but not all of its models may.
		again := c.ids == idsUnique && !c.isOwn(c.msgs[call.message])
		if used[call.key] && (again || until[call.key] > call.message) {
			c.add(call.message, ruleDuplicateID, describe(call.ToolCall))
		}
		result := call.result
		if result == none {
			result = len(c.msgs)
		}
		used[call.key], until[call.key] = true, max(until[call.key], result)
	}
}

// roles demands roles that the provider knows.
func (c *checker) roles() {
	for _, i := range c.sent {
		switch m := c.msgs[i].(type) {
		case state.TextMessage:
			if !c.goodRole(m.Role()) {
				c.add(i, ruleRole, fmt.Sprintf("%.60q", m.Role()))
			}
		case state.ToolCallMessage:
			if m.Role() != "assistant" {
				c.add(i, ruleRole, fmt.Sprintf("%.60q of calls", m.Role()))
			}
		}
	}
}

// adjacent demands that results come directly after the turn that calls, before
// anything else. inTurn tells which messages are of one turn with the message
// before them.
func (c *checker) adjacent(inTurn func(before, m state.Message) bool) {
	turns := make([]int, len(c.msgs)) // of a message, where its turn begins
	turn := none
	var before state.Message
	for _, i := range c.sent {
		m := c.msgs[i]
		if result, ok := m.(state.ToolResultMessage); ok {
			if number := c.answers[i]; number != none && turns[c.pairing.calls[number].message] != turn {
				c.add(i, ruleNotAdjacent, describe(result.Call()))
			}
		} else {
			if before == nil || !inTurn(before, m) {
				turn = i
			}
			turns[i] = turn
		}
		before = m
	}
}

// besideCalls tells of each message that is sent whether calls are in the same
// entry.
func (c *checker) besideCalls(joins func(before, m state.Message) bool) []bool {
	calling := make([]bool, len(c.sent))
	start, found := 0, false
	end := func(next int) {
		for k := start; found && k < next; k++ {
			calling[k] = true
		}
	}
	for k, i := range c.sent {
		if k > 0 && !joins(c.msgs[c.sent[k-1]], c.msgs[i]) {
			end(k)
			start, found = k, false
		}
		_, isCall := c.msgs[i].(state.ToolCallMessage)
		found = found || isCall
	}
	end(len(c.sent))
	return calling
}

// opening returns how many messages at the beginning are the system prompt. What
// came from the provider says whether it was there.
func (c *checker) opening() int {
	for k, i := range c.sent {
		m := c.msgs[i]
		if kept, own := origin.Of(m, c.format); !isSystems(m) || own && !strings.HasPrefix(textOf(kept, "in"), "system") {
			return k
		}
	}
	return len(c.sent)
}

// describe names a call.
func describe(call state.ToolCall) string {
	return fmt.Sprintf("call %.60q of %.60q", call.ID, call.Name)
}
