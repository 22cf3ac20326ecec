package transcript

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// signatures demands signatures of the calls of the turn that goes on; see
// [Profile.ThoughtSignatures].
type signatures struct {
	hasCall bool  // the content so far
	lacking []int // the messages of the turn whose first call has no signature
}

// check visits the messages in their order. joined says that a message is in the
// content of the one before it.
func (s *signatures) check(c *checker, i int, joined bool) {
	m := c.msgs[i]
	if !joined {
		s.hasCall = false
	}
	calls, ok := m.(state.ToolCallMessage)
	switch {
	case ok && !s.hasCall:
		s.hasCall = true
		// Calls from elsewhere get a signature when they are encoded.
		if c.isOwn(m) && len(calls.Calls()) > 0 && !isSigned(calls.Calls()[0]) {
			s.lacking = append(s.lacking, i)
		}
	case !ok && isUserTurn(m) && !isResult(m):
		s.lacking = nil // a new turn begins
	}
}

func (s *signatures) end(c *checker) {
	for _, i := range s.lacking {
		call := c.callsOf(i)[0]
		c.addFinding(i, ruleSignature, describeCall(*call.ToolCall))
	}
}

// isSigned reports whether a call of Gemini has a signature.
func isSigned(call state.ToolCall) bool {
	extra, _ := jsontext.Members([]byte(call.Extra)) // none if Extra is empty
	more := extra.Object(origin.Gemini).Object("part").Object("more")
	return more.String("thoughtSignature") != "" || more.String("thought_signature") != ""
}
