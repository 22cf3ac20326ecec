package transcript

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// checker collects findings about a conversation.
type checker struct {
	*rules
	pairing
	profile  Profile
	msgs     []state.Message
	sent     []int // the indexes of the messages that the provider is sent
	findings []Finding
}

func newChecker(msgs []state.Message, profile Profile) *checker {
	c := &checker{
		rules: profile.rulesOrCommon(), pairing: pairCalls(msgs), profile: profile,
		msgs: msgs, sent: make([]int, 0, len(msgs)),
	}
	for i, m := range msgs {
		_, isCall := m.(state.ToolCallMessage) // its calls are known already
		switch {
		case c.isNothing(i):
		case isCall && len(c.callsOf(i)) > 0, !isCall && c.isSent(m):
			c.sent = append(c.sent, i)
		}
	}
	return c
}

// isNothing reports whether a message is nothing that can be sent: it has neither
// calls nor results, and its kind is not known.
func (c *checker) isNothing(i int) bool {
	return len(c.callsOf(i)) == 0 && c.answers[i] == none && !inside.IsMessage(c.msgs[i])
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
		return !isReasoning(m) || r.isOwn(m) || origin.SaysIn(m, r.format)
	case state.ToolCallMessage:
		return len(sharedCalls(m)) > 0
	}
	return true
}

// isOwn reports whether the message came from the provider.
func (r *rules) isOwn(m state.Message) bool {
	_, ok := origin.Of(m, r.format)
	return ok
}

// keepsParts reports whether the provider is sent parts of the message in its
// own words as they are.
func (r *rules) keepsParts(m state.Message) bool { return r.isOwn(m) || origin.IsHandmade(m) }

// Finding is something that a provider rejects.
type Finding struct {
	Message int    // its index, -1 for the conversation as a whole
	Rule    string // a short fixed name, such as "unanswered-call"
	Detail  string // the call, id, role and so on; never content
}

func (f Finding) String() string {
	s := f.Rule
	if f.Message >= 0 {
		s = fmt.Sprintf("message %d: %s", f.Message, f.Rule)
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// The names of the rules.
const (
	ruleNoMessages    = "no-messages"
	ruleMessage       = "message"
	ruleRole          = "role"
	ruleName          = "name"
	ruleID            = "id"
	ruleDuplicateID   = "duplicate-id"
	ruleUnanswered    = "unanswered-call"
	ruleOrphan        = "orphan-result"
	ruleNotAdjacent   = "not-adjacent"
	ruleCallTurn      = "call-turn"
	ruleContent       = "content"
	ruleArguments     = "arguments"
	ruleEmpty         = "empty"
	ruleFirst         = "first"
	ruleAfterResults  = "after-results"
	ruleSystem        = "system"
	ruleReasoning     = "reasoning"
	ruleDuplicateItem = "duplicate-item"
	ruleServerTool    = "server-tool"
	ruleCache         = "cache-control"
	ruleSignature     = "signature"
	rulePrefill       = "prefill"
	ruleThinking      = "thinking"
	ruleThinkingModel = "thinking-model"
	ruleThinkingLast  = "thinking-last"
	ruleMember        = "member"
)

const noContent = "no content" // the detail of ruleContent and ruleEmpty
