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
			c.role(i)
		}
	}
	c.pairs(profile.continued)
	c.calls()
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
	entry    entrySpan
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
			c.add(call.message, ruleUnanswered, describe(*call.ToolCall))
		}
	}
	if continued {
		return
	}
	for i, number := range c.answers {
		if number != none {
			continue
		}
		if result, ok := c.msgs[i].(state.ToolResultMessage); ok && isMessage(result) {
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
			c.add(call.message, ruleName, describe(*call.ToolCall))
		}
		if !c.goodID(call.ID) {
			c.add(call.message, ruleID, describe(*call.ToolCall))
		}
		if call.ID == "" || c.ids == idsFree {
			continue
		}
		// OpenAI, OpenAIResponses: "Duplicate value for 'tool_call_id'" (agno#5116,
		// openclaw#47136). Anthropic: "tool_use ids must be unique" (claude-code#20901);
		// it has taken an id again after the answer, but not all of its models may.
		again := c.ids == idsUnique && !c.isOwn(c.msgs[call.message])
		if used[call.key] && (again || until[call.key] > call.message) {
			c.add(call.message, ruleDuplicateID, describe(*call.ToolCall))
		}
		result := call.result
		if result == none {
			result = len(c.msgs)
		}
		used[call.key], until[call.key] = true, max(until[call.key], result)
	}
}

// role demands a role that the provider knows.
func (c *checker) role(i int) {
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

// adjacency demands that results come directly after the turn that calls, before
// anything else. It is told of each message that is sent.
type adjacency struct {
	*checker
	inTurn func(before, m state.Message) bool // whether both are of one turn
	turns  []int                              // of a message, where its turn begins
	turn   int
	before state.Message
}

func (c *checker) adjacency(inTurn func(before, m state.Message) bool) *adjacency {
	return &adjacency{checker: c, inTurn: inTurn, turns: make([]int, len(c.msgs)), turn: none}
}

func (a *adjacency) next(i int) {
	m := a.msgs[i]
	if result, ok := m.(state.ToolResultMessage); ok {
		if number := a.answers[i]; number != none && a.turns[a.pairing.calls[number].message] != a.turn {
			a.add(i, ruleNotAdjacent, describe(result.Call()))
		}
	} else {
		if a.before == nil || !a.inTurn(a.before, m) {
			a.turn = i
		}
		a.turns[i] = a.turn
	}
	a.before = m
}

// besideCalls reports whether there are calls in the entry of the k-th message
// that is sent.
func (c *checker) besideCalls(k int, joins func(before, m state.Message) bool) bool {
	at := func(k int) state.Message { return c.msgs[c.sent[k]] }
	if k >= c.entry.end { // it is of another entry than the one asked for last
		c.entry = entrySpan{end: k + 1}
		first := k
		for first > 0 && joins(at(first-1), at(first)) {
			first--
		}
		for c.entry.end < len(c.sent) && joins(at(c.entry.end-1), at(c.entry.end)) {
			c.entry.end++
		}
		for k := first; k < c.entry.end && !c.entry.calls; k++ {
			_, c.entry.calls = at(k).(state.ToolCallMessage)
		}
	}
	return c.entry.calls
}

// entrySpan is where an entry ends, among the messages that are sent, and whether
// there are calls in it.
type entrySpan struct {
	end   int
	calls bool
}

// opening returns how many messages at the beginning are the system prompt. What
// came from the provider says whether it was there.
func (c *checker) opening() int {
	for k, i := range c.sent {
		m := c.msgs[i]
		if kept, own := origin.Of(m, c.format); !isSystems(m) || own && !strings.HasPrefix(kept.String("in"), "system") {
			return k
		}
	}
	return len(c.sent)
}

// describe names a call.
func describe(call state.ToolCall) string {
	return fmt.Sprintf("call %.60q of %.60q", call.ID, call.Name)
}
