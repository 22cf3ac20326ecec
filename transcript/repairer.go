package transcript

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// Policy says what [Repair] does with calls and results that have no
// counterpart. The zero Policy drops them.
type Policy struct {
	// AnswerCalls keeps calls without a result, and answers each with an error.
	AnswerCalls bool

	// KeepResults keeps the content of results without a call, as a text of the
	// user that quotes it. Content that is not a string is quoted as JSON.
	KeepResults bool

	// Suspended are calls that wait for a result from outside, for example for
	// the approval of a person. Each is kept, and its result is Waiting, which
	// is not an error: after an error, models make the call again. A call is
	// known by its ID, or by its Name if the provider gives calls no ids. Of
	// several open calls with one id, the first is meant.
	Suspended []state.ToolCall

	// Waiting is the result of suspended calls (default "Waiting for
	// approval.").
	Waiting string
}

// Policies with one setting. They must not be changed.
var (
	PolicyDrop        = Policy{}
	PolicyAnswerCalls = Policy{AnswerCalls: true}
	PolicyKeepResults = Policy{KeepResults: true}
)

// Change is something that [Repair] did.
type Change struct {
	Message int    // the index in the original conversation of the message concerned
	Rule    string // of the finding that it mends
	Detail  string // what was done, and to which call, id, role and so on; never content
}

func (c Change) String() string {
	return fmt.Sprintf("message %d: %s: %s", c.Message, c.Rule, c.Detail)
}

// repairer mends a conversation.
type repairer struct {
	*rules
	profile Profile
	policy  Policy
	entries []*entry // the conversation so far
	changes []Change

	joinedFrom []int // of each original message, the first one of its provider's entry
}

// entry is a message of the conversation that is being repaired.
type entry struct {
	message  state.Message
	original int  // the index of the original message, or of the one that it was added for
	added    bool // by the repair
	idle     bool // reasoning that led to a call that was dropped
	dropped  bool

	answers *entry // of a result, the message with its call; nil if there is none
	call    int    // which call of that message
}

func newRepairer(msgs []state.Message, profile Profile, policy Policy) *repairer {
	r := &repairer{
		rules:   profile.rulesOrCommon(),
		profile: profile,
		policy:  policy,

		joinedFrom: make([]int, len(msgs)),
	}
	for i, m := range msgs {
		if !internal.IsMessage(m) {
			r.addChange(i, ruleMessage, "dropped")
			continue
		}
		r.entries = append(r.entries, &entry{message: m, original: i})
	}
	for joined := range outlineOf(msgs).entries() {
		for _, i := range joined {
			r.joinedFrom[i] = joined[0]
		}
	}
	return r
}

func (r *repairer) addChange(original int, rule, detail string) {
	r.changes = append(r.changes, Change{original, rule, detail})
}

// reportChange reports a change of an entry, unless the repair added the entry.
func (r *repairer) reportChange(e *entry, rule, detail string) {
	if !e.added {
		r.addChange(e.original, rule, detail)
	}
}

func (r *repairer) dropEntry(e *entry, rule, why string) {
	e.dropped = true
	r.reportChange(e, rule, "dropped: "+why)
}

// replaceMessage replaces the message of an entry. No error is expected,
// because the repair puts only valid JSON into messages.
func (e *entry) replaceMessage(m state.Message, err error) {
	if err == nil {
		e.message = m
	}
}

func (r *repairer) messages() []state.Message {
	msgs := make([]state.Message, len(r.entries))
	for i, e := range r.entries {
		msgs[i] = e.message
	}
	return msgs
}

// refusal is a finding in an entry.
type refusal struct {
	*entry
	rule string
}

// refusals returns what Check finds now of the rules, once for each entry.
func (r *repairer) refusals(rules ...string) []refusal {
	var found []refusal
	for _, finding := range Check(r.messages(), r.profile) {
		e := r.entries[finding.Message]
		if slices.Contains(rules, finding.Rule) && (len(found) == 0 || found[len(found)-1].entry != e) {
			found = append(found, refusal{e, finding.Rule})
		}
	}
	return found
}
