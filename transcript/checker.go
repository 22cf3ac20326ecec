package transcript

import (
	"fmt"

	"github.com/agentstate/state"
)

// checker collects findings about a conversation.
type checker struct {
	*rules
	pairing
	profile  Profile
	msgs     []view
	sent     []int // the indexes of the messages that the provider is sent
	findings []Finding
}

func newChecker(msgs []state.Message, profile Profile) *checker {
	c := &checker{
		rules: profile.rulesOrCommon(), pairing: pairCalls(msgs), profile: profile,
		msgs: make([]view, len(msgs)), sent: make([]int, 0, len(msgs)),
	}
	for i, m := range msgs {
		if !inside.IsMessage(m) { // it stays without a view
			continue
		}
		v := &c.msgs[i]
		if *v = c.view(m); v.isSent(c.format) {
			c.sent = append(c.sent, i)
		}
	}
	return c
}

// isNothing reports whether a message is nothing that can be sent: its type is not
// known, or it is the zero value.
func (c *checker) isNothing(i int) bool { return c.msgs[i].message == nil }

func (c *checker) addFinding(message int, rule, detail string) {
	c.findings = append(c.findings, Finding{message, rule, detail})
}

// isSent reports whether the provider is sent anything of the message.
func (r *rules) isSent(m state.Message) bool {
	v := r.view(m)
	return v.isSent(r.format)
}

// isOwn reports whether the message came from the provider.
func (r *rules) isOwn(m state.Message) bool {
	v := r.view(m)
	return v.isOwn
}

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
