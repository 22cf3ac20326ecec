package transcript

import (
	"slices"

	"github.com/agentstate/state"
)

// Repair returns a conversation that the provider accepts, and what it changed,
// in the order of the messages. If [Check] finds nothing, Repair returns msgs
// itself and no changes. Repair replaces messages and does not modify them.
// Messages without a reported change are in the result, unchanged and in their
// order.
//
//   - Results move to where the provider wants them, directly after their calls.
//   - Calls that are suspended are answered with Policy.Waiting. Other calls and
//     results without a counterpart are treated as policy says. Reasoning that led
//     only to dropped calls is dropped too.
//   - Ids and names that the provider does not accept are replaced, in a call and
//     in its result alike.
//   - An unknown role becomes user. A system message where the provider accepts
//     none becomes a user message.
//   - Empty messages are dropped.
//   - Where the user has to speak first, or last, a text "Continue." is inserted,
//     and a text "Noted." where the assistant has to speak after results.
//   - A turn that must begin with thinking, and does not, becomes texts. Thinking at
//     the end of a turn, and of another model, is dropped.
//   - Members that the server does not know are dropped; see [Rules.Members].
//   - Parts, arguments and breakpoints of a cache that the provider would refuse as
//     they came are converted or dropped.
//
// Repair never invents a call. It invents no results except the errors of
// Policy.AnswerCalls and the answers to suspended calls.
func Repair(msgs []state.Message, profile Profile, policy Policy) ([]state.Message, []Change) {
	if len(Check(msgs, profile)) == 0 {
		return msgs, nil
	}
	r := newRepairer(msgs, profile, policy, Check)
	r.answerSuspended()
	for range repairRounds {
		for _, rule := range allRules {
			if rule.mend == nil {
				continue
			}
			rule.mend(r)
			r.entries = slices.DeleteFunc(r.entries, func(e *entry) bool { return e.dropped })
		}
		if msgs = r.messages(); len(Check(msgs, profile)) == 0 {
			break
		}
	}
	slices.SortStableFunc(r.changes, func(a, b Change) int { return a.Message - b.Message })
	return msgs, r.changes
}

// repairRounds is how often the steps are taken. A step may cause a finding
// that an earlier step mends: another message may depend on a text that is
// dropped or becomes the user's.
const repairRounds = 3
