package transcript

import (
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// What every provider takes, in bytes.
const (
	maxFitID   = 40
	maxFitName = 64
)

// identities gives calls ids and names that the provider takes, and results
// those of their calls. Calls that had the same name still have, and no others.
func (r *repairer) identities() {
	ids, names := newLabels(maxFitID), newLabels(maxFitName)
	for _, e := range r.list {
		switch m := e.m.(type) {
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				ids.taken[c.ID], names.taken[c.Name] = true, true
			}
		case state.ToolResultMessage:
			ids.taken[m.Call().ID] = true
		}
	}
	given := map[*entry][]state.ToolCall{} // ids and names, by the message with the calls
	used := map[string]bool{}              // ids of the calls so far, true while no other call may have them
	fit := map[string]string{}             // names by those that did not fit
	for _, e := range r.list {
		switch m := e.m.(type) {
		case state.ToolCallMessage:
			calls := m.Calls()
			_, own := origin.Of(m, r.format)
			for i := range calls {
				c := &calls[i]
				waits, again := used[c.ID]
				again = again && r.ids == idsUnique && !own
				if c.Name = r.fitName(c.Name, fit, names); !r.goodID(c.ID) || r.ids != idsFree && (waits || again) {
					c.ID = ids.next(fitting(c.ID, "call"))
				}
				used[c.ID] = true
			}
			given[e] = calls
			r.rename(e, m, calls)
		case state.ToolResultMessage:
			if e.answers == nil {
				continue
			}
			c := given[e.answers][e.call]
			r.renameResult(e, m, c)
			used[c.ID] = false
		}
	}
}

// fitName returns the name that the provider takes for one that a call has.
func (r *repairer) fitName(name string, fit map[string]string, names labels) string {
	if r.goodName(name) {
		return name
	}
	if _, ok := fit[name]; !ok {
		good := fitting(name, "unnamed")
		if !r.goodName(good) { // it begins with what a name cannot
			good = "_" + good[:min(len(good), maxFitName-1)]
		}
		fit[name] = names.next(good)
	}
	return fit[name]
}

// rename gives the calls of a message the ids and names that they do not have
// yet.
func (r *repairer) rename(e *entry, m state.ToolCallMessage, calls []state.ToolCall) {
	tools := toolsOf(m)
	changed := false
	for i, was := range m.Calls() {
		if tool, ok := r.renamed(e, tools[i], was, calls[i]); ok {
			tools[i], changed = tool, true
		}
	}
	if changed {
		e.replace(origin.With(m, "tools", jsontext.Array(tools)))
	}
}

// renameResult does the same for the result of a call. Only Gemini demands that
// it has the name of the call.
func (r *repairer) renameResult(e *entry, m state.ToolResultMessage, is state.ToolCall) {
	was := m.Call()
	if r.goodName(was.Name) && r.format != origin.Gemini {
		is.Name = was.Name
	}
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	if tool, ok := r.renamed(e, jsontext.Object(members).Get("tool"), was, is); ok {
		e.replace(origin.With(m, "tool", tool))
	}
}

// renamed returns a call as it is in a message with the id and the name of
// another, and whether that is a change.
func (r *repairer) renamed(e *entry, tool []byte, was, is state.ToolCall) ([]byte, bool) {
	if was.ID == is.ID && was.Name == is.Name {
		return nil, false
	}
	members, _ := jsontext.Members(tool) // checked when the message was made
	object := jsontext.Object(members)
	if was.ID != is.ID {
		rule := ruleID
		if r.goodID(was.ID) {
			rule = ruleDuplicateID
		}
		object = object.WithString("id", is.ID)
		r.changed(e, rule, "now with the id "+strconv.Quote(is.ID)+": "+describe(was))
	}
	if was.Name != is.Name {
		object = object.WithString("name", is.Name)
		r.changed(e, ruleName, "now with the name "+strconv.Quote(is.Name)+": "+describe(was))
	}
	return object.JSON(), true
}

// fitting returns a text of letters and digits, "_" and "-" that looks like the
// one given, or the other one if that is empty.
func fitting(text, other string) string {
	var b strings.Builder
	for _, c := range text {
		if b.Len() == maxFitName {
			break
		}
		if c > 127 || !madeOf(string(c), 1, false, "_-") {
			c = '_'
		}
		b.WriteRune(c)
	}
	if b.Len() == 0 {
		return other
	}
	return b.String()
}

// labels are ids or names of which no two are the same.
type labels struct {
	taken map[string]bool
	last  map[string]int // the number that was added to a text last
	max   int            // bytes
}

func newLabels(max int) labels {
	return labels{map[string]bool{}, map[string]int{}, max}
}

// next returns the text, or if it is taken one made of it that is not.
func (l labels) next(text string) string {
	text = text[:min(len(text), l.max)]
	label := text
	for l.taken[label] {
		l.last[text] = max(l.last[text], 1) + 1
		number := "_" + strconv.Itoa(l.last[text])
		label = text[:min(len(text), l.max-len(number))] + number
	}
	l.taken[label] = true
	return label
}
