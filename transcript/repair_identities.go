package transcript

import (
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// The longest ids and names that every provider accepts, in bytes.
const (
	maxNewID   = 40
	maxNewName = 64
)

// repairIdentities gives calls ids and names that the provider accepts, and
// results those of their calls. Calls have equal names afterwards if and only
// if they had before.
func (r *repairer) repairIdentities() {
	ids, names := newLabels(maxNewID), newLabels(maxNewName)
	for _, e := range r.entries {
		switch m := e.message.(type) {
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				ids.taken[c.ID], names.taken[c.Name] = true, true
			}
		case state.ToolResultMessage:
			ids.taken[m.Call().ID] = true
		}
	}
	renamed := map[*entry][]state.ToolCall{} // by message, its calls with their new ids and names
	waiting := map[string]bool{}             // by id of the calls so far, whether one waits for its result
	newNames := map[string]string{}          // by names that were not accepted
	for _, e := range r.entries {
		switch m := e.message.(type) {
		case state.ToolCallMessage:
			calls := m.Calls()
			for i := range calls {
				c := &calls[i]
				waits, used := waiting[c.ID]
				mustBeNew := waits || used && r.ids == idsUnique && !r.isOwn(m)
				c.Name = r.acceptedName(c.Name, newNames, names)
				if !r.acceptsID(c.ID) || r.ids != idsFree && mustBeNew {
					c.ID = ids.unique(sanitizeLabel(c.ID, "call"))
				}
				waiting[c.ID] = true
			}
			renamed[e] = calls
			r.renameCalls(e, m, calls)
		case state.ToolResultMessage:
			if e.answers == nil {
				continue
			}
			c := renamed[e.answers][e.call]
			r.renameResult(e, m, c)
			waiting[c.ID] = false
		}
	}
}

// acceptedName returns the name that the provider accepts for the name of a
// call.
func (r *repairer) acceptedName(name string, newNames map[string]string, names labels) string {
	if r.acceptsName(name) {
		return name
	}
	if _, ok := newNames[name]; !ok {
		label := sanitizeLabel(name, "unnamed")
		if !r.acceptsName(label) { // because of its first character
			label = "_" + label[:min(len(label), maxNewName-1)]
		}
		newNames[name] = names.unique(label)
	}
	return newNames[name]
}

// renameCalls gives the calls of a message their new ids and names.
func (r *repairer) renameCalls(e *entry, m state.ToolCallMessage, calls []state.ToolCall) {
	texts := callTexts(m)
	changed := false
	for i, old := range m.Calls() {
		if text, ok := r.renamedCall(e, texts[i], old, calls[i]); ok {
			texts[i], changed = text, true
		}
	}
	if changed {
		e.replaceMessage(origin.WithMember(m, "tools", jsontext.Array(texts)))
	}
}

// renameResult gives a result the id and the name of its call. Only Gemini
// demands the name of the call.
func (r *repairer) renameResult(e *entry, m state.ToolResultMessage, call state.ToolCall) {
	old := m.Call()
	if r.acceptsName(old.Name) && r.format != origin.Gemini {
		call.Name = old.Name
	}
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	if text, ok := r.renamedCall(e, members.Get("tool"), old, call); ok {
		e.replaceMessage(origin.WithMember(m, "tool", text))
	}
}

// renamedCall returns the JSON of a call with the id and the name of another,
// and whether that is a change.
func (r *repairer) renamedCall(e *entry, text []byte, old, call state.ToolCall) ([]byte, bool) {
	if old.ID == call.ID && old.Name == call.Name {
		return nil, false
	}
	members, _ := jsontext.Members(text) // checked when the message was made
	object := jsontext.Object(members)
	if old.ID != call.ID {
		rule := ruleID
		if r.acceptsID(old.ID) {
			rule = ruleDuplicateID
		}
		object = object.WithString("id", call.ID)
		r.reportChange(e, rule, "now with the id "+strconv.Quote(call.ID)+": "+describeCall(old))
	}
	if old.Name != call.Name {
		object = object.WithString("name", call.Name)
		r.reportChange(e, ruleName, "now with the name "+strconv.Quote(call.Name)+": "+describeCall(old))
	}
	return object.JSON(), true
}

// sanitizeLabel returns text with every character replaced by "_" that is no
// ASCII letter or digit, "_" or "-". For an empty text it returns other.
func sanitizeLabel(text, other string) string {
	var b strings.Builder
	for _, c := range text {
		if b.Len() == maxNewName {
			break
		}
		if c > 127 || !consistsOf(string(c), 1, "_-") {
			c = '_'
		}
		b.WriteRune(c)
	}
	if b.Len() == 0 {
		return other
	}
	return b.String()
}

// labels are ids or names that are unique.
type labels struct {
	taken    map[string]bool
	last     map[string]int // by text, the number that was last appended to it
	maxBytes int
}

func newLabels(maxBytes int) labels {
	return labels{map[string]bool{}, map[string]int{}, maxBytes}
}

// unique returns text if it is not taken, or else text with a number.
func (l labels) unique(text string) string {
	text = text[:min(len(text), l.maxBytes)]
	label := text
	for l.taken[label] {
		l.last[text] = max(l.last[text], 1) + 1
		number := "_" + strconv.Itoa(l.last[text])
		label = text[:min(len(text), l.maxBytes-len(number))] + number
	}
	l.taken[label] = true
	return label
}
