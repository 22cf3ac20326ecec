package transcript

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// goOn is what the user says where the provider wants it to speak.
const goOn = "Continue."

// items makes the ids of items unique: an item that is there again is dropped,
// and texts and calls, which can be something new, lose the id.
func (r *repairer) items() {
	for _, refused := range r.refused(ruleDuplicateItem) {
		e := refused.entry
		if _, ok := e.m.(state.UnknownMessage); ok {
			r.drop(e, ruleDuplicateItem, "it is there already")
			continue
		}
		r.changed(e, ruleDuplicateItem, "dropped the id of the item")
		if m, ok := e.m.(state.ToolCallMessage); ok {
			tools := toolsOf(m)
			for i, tool := range tools {
				tools[i] = withoutItemID(tool)
			}
			e.replace(origin.With(m, "tools", jsontext.Array(tools)))
			continue
		}
		e.replace(state.DecodeMessage(withoutItemID([]byte(e.m.Raw()))))
	}
}

// withoutItemID returns a message or a call without the id that is kept of its
// item, if there is one.
func withoutItemID(object []byte) []byte {
	members, _ := jsontext.Members(object) // checked when the message was made
	kept := members.Object(origin.OpenAIResponses)
	more := kept.Object("more")
	if more.Get("id") == nil {
		return object
	}
	kept = kept.With("more", more.Without("id").JSON())
	return jsontext.Object(members).With(origin.OpenAIResponses, kept.JSON()).JSON()
}

// reasoning drops reasoning that led to nothing, and what was thought directly
// before it.
func (r *repairer) reasoning() {
	idle := map[*entry]bool{}
	for _, refused := range r.refused(ruleReasoning) {
		idle[refused.entry] = true
	}
	followed := false // by something else of the assistant's
	before := false   // what was dropped
	for k := len(r.list) - 1; k >= 0; k-- {
		e := r.list[k]
		if idle[e] || (before || e.tied && !followed) && origin.IsAssistants(e.m) && isReasoning(e.m) {
			r.drop(e, ruleReasoning, "nothing follows from it")
			before = true
			continue
		}
		before, followed = false, origin.IsAssistants(e.m)
	}
}

// joined sets right what messages say of the one before them, where that is
// another one now: results of one turn are of one entry, and else nothing is that
// was not.
func (r *repairer) joined() {
	for k := 1; k < len(r.list); k++ {
		before, e := r.list[k-1], r.list[k]
		joined, said := origin.Joined(e.m)
		if !said || before.place == e.place-1 && !before.added || r.together(before, e) {
			continue
		}
		if one := isResult(before.m) && isResult(e.m); one != joined {
			r.setJoined(e, one)
		}
	}
	// What is left is of one entry with results though it is none.
	for _, refused := range r.refused(ruleNotAdjacent) {
		if joined, _ := origin.Joined(refused.m); joined {
			r.setJoined(refused.entry, false)
		}
	}
}

// together reports whether both were of one entry, in this order.
func (r *repairer) together(before, e *entry) bool {
	return !before.added && before.place < e.place && r.given[before.place] == r.given[e.place]
}

func (r *repairer) setJoined(e *entry, joined bool) {
	for _, format := range []string{origin.OpenAI, origin.OpenAIResponses, origin.Anthropic, origin.Gemini} {
		if kept, _ := origin.Of(e.m, format); kept.Get("joined") != nil {
			e.replace(origin.With(e.m, format, kept.With("joined", fmt.Appendf(nil, "%t", joined)).JSON()))
		}
	}
	detail := "no longer of one entry with the message before it"
	if joined {
		detail = "now of one entry with the message before it"
	}
	r.changed(e, ruleNotAdjacent, detail)
}

// userTurns puts a text of the user's where the user has to speak: before the
// turn that is refused.
func (r *repairer) userTurns() {
	rules := map[*entry]string{} // by what is refused
	for _, refused := range r.refused(ruleFirst, ruleCallTurn) {
		rules[refused.entry] = refused.rule
	}
	if len(rules) == 0 {
		return
	}
	c := checker{rules: r.rules}
	spoken := map[*entry]*entry{} // by what follows
	var before, start *entry
	for _, e := range r.list {
		if !c.isSent(e.m) {
			continue
		}
		if before == nil || !r.sameTurn(before.m, e.m) {
			start = e
		}
		if before = e; rules[e] != "" && spoken[start] == nil {
			spoken[start] = &entry{m: state.UserText(goOn), place: start.place, added: true}
			r.change(start.place, rules[e], "put a text of the user's before it")
		}
	}
	list := make([]*entry, 0, len(r.list)+len(spoken))
	for _, e := range r.list {
		if text := spoken[e]; text != nil {
			list = append(list, text)
			if joined, _ := origin.Joined(e.m); joined {
				r.setJoined(e, false)
			}
		}
		list = append(list, e)
	}
	r.list = list
}
