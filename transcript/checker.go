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
	entry    entrySpan
	findings []Finding
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
	ruleArguments     = "arguments"       // the input of a call is not spelled as a string
	ruleEmpty         = "empty"           // a text, or a part of it, is empty
	ruleFirst         = "first"           // the conversation does not begin with the user
	ruleSystem        = "system"          // a system message is not at the beginning
	ruleReasoning     = "reasoning"       // the message that followed reasoning is missing
	ruleDuplicateItem = "duplicate-item"  // another item has the id
	ruleServerTool    = "server-tool"     // the provider's own tool lacks its call or result
	ruleCache         = "cache-control"   // the prompt cache has too many breakpoints
	ruleSignature     = "signature"       // a call of the turn that goes on has no signature
	rulePrefill       = "prefill"         // the assistant has the last word
	ruleThinking      = "thinking"        // the turn that goes on does not begin with thinking
)

const noContent = "no content" // the detail of ruleContent and ruleEmpty

// entrySpan is an entry of the provider's conversation: where it ends in
// checker.sent, and whether it has calls.
type entrySpan struct {
	end      int
	hasCalls bool
}

// formatWords has the rules about what only one format can say. It is made for
// one conversation.
type formatWords interface {
	// check visits the messages that are sent, in their order.
	check(c *checker, k int)
	// end is called after the last message.
	end(c *checker)
}
