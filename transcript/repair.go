package transcript

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// Repair returns a history that the provider accepts, and what it did for that,
// in the order of the messages. What [Check] finds nothing in is returned as it
// is, with no changes. The messages are not changed but replaced; those of which
// no change is reported are in the result, the very same ones in their order.
//
// Results move to where the provider wants them, directly after their calls.
// What has no counterpart is treated as policy says; reasoning that led to
// dropped calls only is dropped too. Ids and names that the provider does not
// take are replaced, in a call and its result alike. Who has a role that the
// provider does not know becomes the user, and so does the system where it
// cannot speak. What says nothing is dropped. Where the user has to speak first,
// a text that says "Continue." is put in.
//
// No call is made up, and no result but the errors of [AnswerCalls].
func Repair(msgs []state.Message, profile Profile, policy Policy) ([]state.Message, []Change) {
	if len(Check(msgs, profile)) == 0 {
		return msgs, nil
	}
	r := newRepairer(msgs, profile, policy)
	for range rounds {
		for _, mend := range mends {
			mend(r)
			r.list = slices.DeleteFunc(r.list, func(e *entry) bool { return e.dropped })
		}
		if msgs = r.messages(); len(Check(msgs, profile)) == 0 {
			break
		}
	}
	slices.SortStableFunc(r.changes, func(a, b Change) int { return a.Message - b.Message })
	return msgs, r.changes
}

// mends are the steps of a repair. Each mends one kind of findings, after those
// that it builds on: who speaks and what belongs together decides where results
// go, that which text is dropped, and all of it whose turn it is.
var mends = []func(*repairer){
	(*repairer).roles,
	(*repairer).results,
	(*repairer).identities,
	(*repairer).texts,
	(*repairer).systems,
	(*repairer).serverTools,
	(*repairer).items,
	(*repairer).reasoning,
	(*repairer).joined,
	(*repairer).userTurns,
}

// rounds is how often the steps are taken. The second time is for what a step
// opened that an earlier one mends: a text that is dropped, or becomes the
// user's, may have been what another rests on.
const rounds = 3

// repairer mends a history.
type repairer struct {
	*rules
	profile Profile
	policy  Policy
	list    []*entry // the history so far
	given   []int    // of each message that was given, the number of the provider's entry it is in
	changes []Change
}

// entry is a message of the history that is being repaired.
type entry struct {
	m       state.Message
	place   int  // in the history that was given; for one that was put in, of the message it is for
	added   bool // it was put in
	tied    bool // reasoning that led to a call that was dropped
	dropped bool

	answers *entry // the message with the call that it is the result of, nil if none
	call    int    // which of its calls
}

func newRepairer(msgs []state.Message, profile Profile, policy Policy) *repairer {
	r := &repairer{
		rules:   profile.demands(),
		profile: profile,
		policy:  policy,
		given:   make([]int, len(msgs)),
	}
	var before state.Message
	number := 0
	for i, m := range msgs {
		if !isMessage(m) {
			r.change(i, ruleMessage, "dropped")
			continue
		}
		if before != nil && !origin.Joins(before, m) {
			number++
		}
		before, r.given[i] = m, number
		r.list = append(r.list, &entry{m: m, place: i})
	}
	return r
}

func (r *repairer) change(place int, rule, detail string) {
	r.changes = append(r.changes, Change{place, rule, detail})
}

// changed reports a change of an entry that is not of the repair itself.
func (r *repairer) changed(e *entry, rule, detail string) {
	if !e.added {
		r.change(e.place, rule, detail)
	}
}

func (r *repairer) drop(e *entry, rule, why string) {
	e.dropped = true
	r.changed(e, rule, "dropped: "+why)
}

// replace replaces the message. No error is expected, since only valid JSON is
// put into messages.
func (e *entry) replace(m state.Message, err error) {
	if err == nil {
		e.m = m
	}
}

func (r *repairer) messages() []state.Message {
	msgs := make([]state.Message, len(r.list))
	for i, e := range r.list {
		msgs[i] = e.m
	}
	return msgs
}

// refusal is a finding in an entry.
type refusal struct {
	*entry
	rule string
}

// refused returns what Check finds now of the rules, once for each entry.
func (r *repairer) refused(rules ...string) []refusal {
	var refused []refusal
	for _, finding := range Check(r.messages(), r.profile) {
		e := r.list[finding.Message]
		if slices.Contains(rules, finding.Rule) && (len(refused) == 0 || refused[len(refused)-1].entry != e) {
			refused = append(refused, refusal{e, finding.Rule})
		}
	}
	return refused
}
