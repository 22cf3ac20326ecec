package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/origin"
)

// rules are what differs between the providers.
type rules struct {
	name        string
	format      string   // the member of messages that came from the provider
	roles       []string // of texts; nil for any
	ids         idRule
	maxIDBytes  int    // 0 for no limit
	idChars     string // accepted besides letters and digits; "" for any
	acceptsName func(string) bool
	sameTurn    func(before, m state.Message) bool
	adjacent    bool           // results come directly after the turn with their calls
	check       func(*checker) // the rules that only this provider has; may be nil
}

// idRule is what a provider demands of the ids of calls.
type idRule uint8

const (
	idsFree    idRule = iota // nothing
	idsPending               // there is an id, and no other call that waits for its result has it
	idsUnique                // and no call from another provider has an id that was used before
)

// acceptsID reports whether a call may have the id.
func (r *rules) acceptsID(id string) bool {
	switch {
	case r.ids == idsFree:
		return true
	case id == "", r.maxIDBytes > 0 && len(id) > r.maxIDBytes:
		return false
	}
	return r.idChars == "" || consistsOf(id, len(id), r.idChars)
}

// acceptsRole reports whether a text may have the role.
func (r *rules) acceptsRole(role string) bool {
	return r.roles == nil || slices.Contains(r.roles, role)
}

// consistsOf reports whether text has 1 to maxBytes bytes, all of them ASCII
// letters, digits or in chars.
func consistsOf(text string, maxBytes int, chars string) bool {
	if text == "" || len(text) > maxBytes {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if !isASCIILetter(c) && !(c >= '0' && c <= '9') && strings.IndexByte(chars, c) < 0 {
			return false
		}
	}
	return true
}

func isASCIILetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// checker collects findings about a conversation.
type checker struct {
	*rules
	pairing
	msgs     []state.Message
	sent     []int // the indexes of the messages that the provider is sent
	entry    entrySpan
	findings []Finding
}

// checkAll returns the findings in the order of the messages. If continued is
// set, results may answer calls that the provider holds.
func checkAll(msgs []state.Message, r *rules, continued bool) []Finding {
	c := checker{msgs: msgs, rules: r, pairing: pairCalls(msgs), sent: make([]int, 0, len(msgs))}
	places := adjacency{turn: none}
	if c.adjacent {
		places.turnStart = make([]int, len(msgs))
	}
	for i, m := range msgs {
		_, isCall := m.(state.ToolCallMessage) // its calls are known already
		switch {
		case !internal.IsMessage(m):
			c.addFinding(i, ruleMessage, "nil or a zero value")
		case isCall && len(c.callsOf(i)) > 0, !isCall && c.isSent(m):
			c.sent = append(c.sent, i)
			c.checkRole(i)
			if c.adjacent {
				places.check(&c, i)
			}
		}
	}
	c.checkPairs(continued)
	c.checkCalls()
	if c.check != nil {
		c.check(&c)
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return a.Message - b.Message })
	return c.findings
}

func (c *checker) addFinding(message int, rule, detail string) {
	c.findings = append(c.findings, Finding{message, rule, detail})
}

// isSent reports whether the provider is sent anything of the message. It is
// not sent the items and the reasoning of other providers.
func (r *rules) isSent(m state.Message) bool {
	switch m := m.(type) {
	case state.UnknownMessage:
		format, _ := origin.ItemType(m)
		return format == r.format
	case state.TextMessage:
		return !isReasoning(m) || r.isOwn(m)
	case state.ToolCallMessage:
		return m.Calls() != nil
	}
	return true
}

// isOwn reports whether the message came from the provider.
func (r *rules) isOwn(m state.Message) bool {
	_, ok := origin.Of(m, r.format)
	return ok
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
func (c *checker) checkPairs(continued bool) {
	for _, call := range c.calls {
		if call.result == none {
			c.addFinding(call.message, ruleUnanswered, describeCall(*call.ToolCall))
		}
	}
	if continued {
		return
	}
	for i, number := range c.answers {
		if result, ok := c.msgs[i].(state.ToolResultMessage); ok && number == none && internal.IsMessage(result) {
			c.addFinding(i, ruleOrphan, describeCall(result.Call()))
		}
	}
}

// checkCalls demands names and ids that the provider accepts.
func (c *checker) checkCalls() {
	used := make([]bool, c.keys)
	usedUntil := make([]int, c.keys) // the last result of an id, or the end if one is missing
	for _, call := range c.calls {
		if !c.acceptsName(call.Name) {
			c.addFinding(call.message, ruleName, describeCall(*call.ToolCall))
		}
		if !c.acceptsID(call.ID) {
			c.addFinding(call.message, ruleID, describeCall(*call.ToolCall))
		}
		if call.ID == "" || c.ids == idsFree {
			continue
		}
		// OpenAI, OpenAIResponses: "Duplicate value for 'tool_call_id'"
		// (agno#5116, openclaw#47136). Anthropic: "tool_use ids must be unique"
		// (claude-code#20901). It has accepted an id again after the answer,
		// but not all of its models may.
		mustBeNew := c.ids == idsUnique && !c.isOwn(c.msgs[call.message])
		if used[call.key] && (mustBeNew || usedUntil[call.key] > call.message) {
			c.addFinding(call.message, ruleDuplicateID, describeCall(*call.ToolCall))
		}
		result := call.result
		if result == none {
			result = len(c.msgs)
		}
		used[call.key], usedUntil[call.key] = true, max(usedUntil[call.key], result)
	}
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

// adjacency demands that results come directly after the turn with their calls,
// before anything else.
type adjacency struct {
	turnStart []int         // of each message
	turn      int           // the start of the current turn
	before    state.Message // the last one
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

// entrySpan is an entry of the provider's conversation: where it ends in
// checker.sent, and whether it has calls.
type entrySpan struct {
	end      int
	hasCalls bool
}

// besideCalls reports whether the entry of the k-th message that is sent has
// calls. It must be asked in the order of the messages. The last entry is kept,
// because each of its messages asks.
func (c *checker) besideCalls(k int, joins func(before, m state.Message) bool) bool {
	sentMessage := func(k int) state.Message { return c.msgs[c.sent[k]] }
	if k >= c.entry.end {
		first, end := k, k+1
		for first > 0 && joins(sentMessage(first-1), sentMessage(first)) {
			first--
		}
		for end < len(c.sent) && joins(sentMessage(end-1), sentMessage(end)) {
			end++
		}
		c.entry = entrySpan{end: end}
		for k := first; k < end && !c.entry.hasCalls; k++ {
			_, c.entry.hasCalls = sentMessage(k).(state.ToolCallMessage)
		}
	}
	return c.entry.hasCalls
}

// systemPromptLength returns the number of sent messages that are the system
// prompt. A message that came from the provider says whether it was in it.
func (c *checker) systemPromptLength() int {
	for k, i := range c.sent {
		m := c.msgs[i]
		kept, own := origin.Of(m, c.format)
		if !isSystem(m) || own && !strings.HasPrefix(kept.String("in"), "system") {
			return k
		}
	}
	return len(c.sent)
}

// Finding is something that a provider rejects.
type Finding struct {
	Message int    // its index
	Rule    string // a short fixed name, such as "unanswered-call"
	Detail  string // the call, id, role and so on; never content
}

func (f Finding) String() string {
	s := fmt.Sprintf("message %d: %s", f.Message, f.Rule)
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// The rules, and what is wrong if a finding names one.
const (
	ruleMessage       = "message"         // nil or a zero value
	ruleRole          = "role"            // the provider does not know the role
	ruleName          = "name"            // of a call: missing, or not accepted
	ruleID            = "id"              // of a call: missing, or not accepted
	ruleDuplicateID   = "duplicate-id"    // another call has the id
	ruleUnanswered    = "unanswered-call" // a call has no result
	ruleOrphan        = "orphan-result"   // a result has no earlier call
	ruleNotAdjacent   = "not-adjacent"    // a result is in the wrong place
	ruleCallTurn      = "call-turn"       // calls are in the wrong place
	ruleContent       = "content"         // a text has no content
	ruleEmpty         = "empty"           // a text, or a part of it, is empty
	ruleFirst         = "first"           // the conversation does not begin with the user
	ruleSystem        = "system"          // a system message is not at the beginning
	ruleReasoning     = "reasoning"       // the message that followed reasoning is missing
	ruleDuplicateItem = "duplicate-item"  // another item has the id
	ruleServerTool    = "server-tool"     // the provider's own tool lacks its call or result
)

const noContent = "no content" // the detail of ruleContent and ruleEmpty
