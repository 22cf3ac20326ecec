package transcript

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
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
	check   func([]state.Message, Profile) []Finding

	joinedFrom []int // of each original message, the first one of its provider's entry
	said       bool  // there is more than a system prompt
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

func newRepairer(
	msgs []state.Message, profile Profile, policy Policy, check func([]state.Message, Profile) []Finding,
) *repairer {
	r := &repairer{
		rules:   profile.rulesOrCommon(),
		profile: profile,
		policy:  policy,
		check:   check,

		joinedFrom: make([]int, len(msgs)),
	}
	for i, m := range msgs {
		if !inside.IsMessage(m) {
			r.addChange(i, ruleMessage, "dropped")
			continue
		}
		r.entries = append(r.entries, &entry{message: m, original: i})
		r.said = r.said || !origin.IsSystem(m)
	}
	for joined := range packShapes(msgs).entries() {
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

// refusals returns what is found now of the rules, once for each entry.
func (r *repairer) refusals(rules ...string) []refusal {
	var found []refusal
	for _, finding := range r.check(r.messages(), r.profile) {
		if !slices.Contains(rules, finding.Rule) {
			continue
		}
		if e := r.entries[finding.Message]; len(found) == 0 || found[len(found)-1].entry != e {
			found = append(found, refusal{e, finding.Rule})
		}
	}
	return found
}

// filterParts keeps the parts of a text for which keep returns true. It drops
// the text if none is left.
func (r *repairer) filterParts(refused refusal, keep func(part jsontext.Object) bool) {
	var kept [][]byte
	content := refused.message.(state.TextMessage).Content()
	parts, _ := jsontext.Elements([]byte(content)) // none if it is not an array
	for _, part := range parts {
		if members, _ := jsontext.Members(part); keep(members) {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		r.dropEntry(refused.entry, refused.rule, "it says nothing")
		return
	}
	detail := fmt.Sprintf("dropped %d of %d parts", len(parts)-len(kept), len(parts))
	r.reportChange(refused.entry, refused.rule, detail)
	refused.replaceMessage(origin.WithMember(refused.message, "content", jsontext.Array(kept)))
}

// continueText is what the user says where the provider wants the user to
// speak.
const continueText = "Continue."

// say appends a text of the user.
func (r *repairer) say(text, rule string) {
	last := r.entries[len(r.entries)-1].original
	r.entries = append(r.entries, &entry{message: state.UserText(text), original: last, added: true})
	r.addChange(last, rule, "put a user text behind it")
}

func (r *repairer) setJoined(e *entry, joined bool) {
	members, _ := jsontext.Members([]byte(e.message.Raw())) // checked with the message
	for i, m := range members {
		if kept := members[i : i+1].Object(m.Name); origin.IsFormat(m.Name) && kept.Get("joined") != nil {
			members[i].Value = kept.With("joined", strconv.AppendBool(nil, joined)).JSON()
		}
	}
	e.replaceMessage(state.DecodeMessage(members.JSON()))
	detail := "no longer in one entry with the message before it"
	if joined {
		detail = "now in one entry with the message before it"
	}
	r.reportChange(e, ruleNotAdjacent, detail)
}
