package transcript

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// eachBreakpoint calls drop for each breakpoint with the index of its entry, and
// removes those for which it returns true.
func (r *repairer) eachBreakpoint(drop func(k int) bool) {
	for k, e := range r.entries {
		if !r.isSent(e.message) || !mayHaveBreakpoints(e.message) {
			continue
		}
		w := breakpointWalk{drop: func() bool { return drop(k) }}
		members := w.inMessage(e.message)
		if w.dropped > 0 {
			e.replaceMessage(state.DecodeMessage(members.JSON()))
			r.reportChange(e, ruleCache, fmt.Sprintf("dropped %d breakpoints", w.dropped))
		}
	}
}

// repairBreakpoints removes breakpoints of too many.
func (r *repairer) repairBreakpoints() {
	if len(r.refusals(ruleCache)) == 0 {
		return
	}
	var all breakpoints
	r.eachBreakpoint(func(k int) bool {
		all = append(all, k)
		return false
	})
	n := 0
	r.eachBreakpoint(func(int) bool {
		n++
		return all.isSpare(n - 1)
	})
}

// repairSignatures gives calls the signature that stands for none.
func (r *repairer) repairSignatures() {
	for _, refused := range r.refusals(ruleSignature) {
		m := refused.message.(state.ToolCallMessage)
		calls := callTexts(m)
		call, _ := jsontext.Members(calls[0]) // checked when the message was made
		kept := call.Object(origin.Gemini)
		part := kept.Object("part")
		more := part.Object("more").Without("thought_signature").WithString("thoughtSignature", origin.NoSignature)
		calls[0] = call.With(origin.Gemini, kept.With("part", part.With("more", more.JSON()).JSON()).JSON()).JSON()
		r.reportChange(refused.entry, ruleSignature, "with the signature that stands for none: "+describeCall(m.Calls()[0]))
		refused.replaceMessage(origin.WithMember(m, "tools", jsontext.Array(calls)))
	}
}
