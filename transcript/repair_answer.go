package transcript

import (
	"cmp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// answerSuspended answers the calls that are suspended. If calls are answered
// at all, it answers the others together with them: calls with one id get all
// of their results or none.
func (r *repairer) answerSuspended() {
	if len(r.policy.Suspended) == 0 {
		return
	}
	msgs := r.messages()
	o := outlineOf(msgs)
	p, suspended := pairOthers(func(except map[int]bool) pairing { return pairExcept(msgs, except) }, r.policy.Suspended)
	o.pairing = p
	text := state.JSONText(cmp.Or(r.policy.Waiting, waiting))
	var answers []answer
	for number := range p.calls {
		switch c := &p.calls[number]; {
		case c.result != none:
		case suspended[number]:
			answers = append(answers, answer{number, state.ToolResult(c.unanswered(), text)})
		case r.policy.AnswerCalls:
			answers = append(answers, answer{number, state.ToolError(c.unanswered(), origin.NoResult)})
		}
	}
	r.entries = insertAnswers(r.entries, o, answers, func(a answer) *entry {
		c := p.calls[a.call]
		original := r.entries[c.message].original
		r.addChange(original, ruleUnanswered, "answered "+describeCall(*c.ToolCall))
		return &entry{message: a.message, original: original, added: true}
	})
}

// waiting is the default of Policy.Waiting.
const waiting = "Waiting for approval."
