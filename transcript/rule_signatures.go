package transcript

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// findUnsigned demands signatures of the calls of the turn that goes on, of the
// first one in each content; see [Profile.ThoughtSignatures].
func findUnsigned(c *checker) {
	if !c.profile.ThoughtSignatures {
		return
	}
	var before state.Message
	hasCall := false  // the content so far
	var lacking []int // the messages of the turn whose first call has no signature
	for _, i := range c.sent {
		m := c.msgs[i].message
		if before == nil || !sameContent(before, m) {
			hasCall = false
		}
		before = m
		calls, ok := m.(state.ToolCallMessage)
		switch {
		case ok && !hasCall:
			hasCall = true
			// Calls from elsewhere get a signature when they are encoded.
			if c.msgs[i].isOwn && len(calls.Calls()) > 0 && !isSigned(calls.Calls()[0]) {
				lacking = append(lacking, i)
			}
		case !ok && c.msgs[i].isUserTurn() && !isResult(m):
			lacking = nil // a new turn begins
		}
	}
	for _, i := range lacking {
		c.addFinding(i, ruleSignature, describeCall(*c.callsOf(i)[0].ToolCall))
	}
}

// isSigned reports whether a call of Gemini has a signature.
func isSigned(call state.ToolCall) bool {
	extra, _ := jsontext.Members([]byte(call.Extra)) // none if Extra is empty
	more := extra.Object(origin.Gemini).Object("more")
	return more.String("thoughtSignature") != "" || more.String("thought_signature") != ""
}

// repairSignatures gives calls the signature that stands for none.
func (r *repairer) repairSignatures() {
	for _, refused := range r.refusals(ruleSignature) {
		m := refused.message.(state.ToolCallMessage)
		calls := callTexts(m)
		call, _ := jsontext.Members(calls[0]) // checked when the message was made
		kept := call.Object(origin.Gemini)
		more := kept.Object("more").Without("thought_signature").WithString("thoughtSignature", origin.NoSignature)
		calls[0] = call.With(origin.Gemini, kept.With("more", more.JSON()).JSON()).JSON()
		r.reportChange(refused.entry, ruleSignature, "with the signature that stands for none: "+describeCall(m.Calls()[0]))
		refused.replaceMessage(origin.WithMember(m, "tools", jsontext.Array(calls)))
	}
}
