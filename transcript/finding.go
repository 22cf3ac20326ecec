package transcript

import "fmt"

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
	ruleOrphan        = "orphan-result"   // a result has no call in front of it
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
