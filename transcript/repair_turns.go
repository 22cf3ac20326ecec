package transcript

import (
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// continueText is what the user says where the provider wants the user to
// speak.
const continueText = "Continue."

// repairItems makes the ids of items unique. It drops an item that is there
// already. Texts and calls, which may be new, lose the id.
func (r *repairer) repairItems() {
	for _, refused := range r.refusals(ruleDuplicateItem) {
		e := refused.entry
		if _, ok := e.message.(state.UnknownMessage); ok {
			r.dropEntry(e, ruleDuplicateItem, "it is there already")
			continue
		}
		r.reportChange(e, ruleDuplicateItem, "dropped the id of the item")
		if m, ok := e.message.(state.ToolCallMessage); ok {
			calls := callTexts(m)
			for i, call := range calls {
				calls[i] = withoutItemID(call)
			}
			e.replaceMessage(origin.WithMember(m, "tools", jsontext.Array(calls)))
			continue
		}
		e.replaceMessage(state.DecodeMessage(withoutItemID([]byte(e.message.Raw()))))
	}
}

// withoutItemID returns a message or a call without the id of its item.
func withoutItemID(text []byte) []byte {
	members, _ := jsontext.Members(text) // checked when the message was made
	kept := members.Object(origin.OpenAIResponses)
	if kept.Object("more").Get("id") == nil {
		return text
	}
	return members.With(origin.OpenAIResponses, withoutMore(kept, "id").JSON()).JSON()
}

// repairReasoning drops reasoning that led to nothing, and the reasoning
// directly before it.
func (r *repairer) repairReasoning() {
	refused := map[*entry]bool{}
	for _, one := range r.refusals(ruleReasoning) {
		refused[one.entry] = true
	}
	followed := false    // by another message of the assistant
	droppedNext := false // the next message
	for k := len(r.entries) - 1; k >= 0; k-- {
		e := r.entries[k]
		idle := droppedNext || e.idle && !followed
		if refused[e] || idle && origin.FromAssistant(e.message) && isReasoning(e.message) {
			r.dropEntry(e, ruleReasoning, "nothing follows from it")
			droppedNext = true
			continue
		}
		droppedNext, followed = false, origin.FromAssistant(e.message)
	}
}

// repairJoined corrects what messages say about being in one entry with the
// message before them, if that is another message now. Results of one turn are
// in one entry. Other messages are in one entry only if they were.
func (r *repairer) repairJoined() {
	for k := 1; k < len(r.entries); k++ {
		before, e := r.entries[k-1], r.entries[k]
		joined, said := origin.Joined(e.message)
		if !said || before.original == e.original-1 && !before.added || r.wereJoined(before, e) {
			continue
		}
		if both := isResult(before.message) && isResult(e.message); both != joined {
			r.setJoined(e, both)
		}
	}
	// The remaining messages are not results, but are in one entry with
	// results.
	for _, refused := range r.refusals(ruleNotAdjacent) {
		if joined, _ := origin.Joined(refused.message); joined {
			r.setJoined(refused.entry, false)
		}
	}
}

// wereJoined reports whether both were in one entry, in this order.
func (r *repairer) wereJoined(before, e *entry) bool {
	return !before.added && before.original < e.original &&
		r.joinedFrom[before.original] == r.joinedFrom[e.original]
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

// repairUserTurns inserts a text of the user before a turn that must follow
// one.
func (r *repairer) repairUserTurns() {
	rules := map[*entry]string{} // by refused entry
	for _, refused := range r.refusals(ruleFirst, ruleCallTurn) {
		rules[refused.entry] = refused.rule
	}
	if len(rules) == 0 {
		return
	}
	inserted := map[*entry]*entry{} // by the entry that begins the turn
	var before, start *entry
	for _, e := range r.entries {
		if !r.isSent(e.message) {
			continue
		}
		if before == nil || !r.sameTurn(before.message, e.message) {
			start = e
		}
		if before = e; rules[e] != "" && inserted[start] == nil {
			text := state.UserText(continueText)
			inserted[start] = &entry{message: text, original: start.original, added: true}
			r.addChange(start.original, rules[e], "put a user text before it")
		}
	}
	entries := make([]*entry, 0, len(r.entries)+len(inserted))
	for _, e := range r.entries {
		if text := inserted[e]; text != nil {
			entries = append(entries, text)
			if joined, _ := origin.Joined(e.message); joined {
				r.setJoined(e, false)
			}
		}
		entries = append(entries, e)
	}
	r.entries = entries
}
