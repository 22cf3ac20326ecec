package transcript

import (
	"fmt"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// findBadNames demands names of calls that the provider accepts.
func findBadNames(c *checker) {
	for _, call := range c.calls {
		if !c.names.accept(call.Name) {
			c.addFinding(call.message, ruleName, describeCall(*call.ToolCall))
		}
	}
}

// findBadIDs demands ids of calls that the provider accepts.
func findBadIDs(c *checker) {
	for _, call := range c.calls {
		if !c.acceptsID(call.ID) {
			c.addFinding(call.message, ruleID, describeCall(*call.ToolCall))
		}
	}
}

// findRepeatedIDs demands ids that no other call has: "Duplicate value for
// 'tool_call_id'" (agno#5116, openclaw#47136), "tool_use ids must be unique"
// (claude-code#20901).
func findRepeatedIDs(c *checker) {
	used := make([]bool, c.labels)
	usedUntil := make([]int, c.labels) // the last result of an id, or the end if one is missing
	for _, call := range c.calls {
		if call.ID == "" {
			continue
		}
		if c.repeatsID(*call.ToolCall) {
			c.addFinding(call.message, ruleDuplicateID, describeCall(*call.ToolCall))
		} else if used[call.label] && c.RequireIDs {
			if c.mustBeNew(c.msgs[call.message].isOwn) || usedUntil[call.label] > call.message {
				c.addFinding(call.message, ruleDuplicateID, describeCall(*call.ToolCall))
			}
		}
		result := call.result
		if result == none {
			result = len(c.msgs)
		}
		used[call.label], usedUntil[call.label] = true, max(usedUntil[call.label], result)
	}
}

// mustBeNew reports whether no call before those of a message may have their ids.
// isOwn says that the message came from the provider: Anthropic has accepted its own
// ids again.
func (r *rules) mustBeNew(isOwn bool) bool {
	return r.UniqueIDs && (r.format != origin.Anthropic || !isOwn)
}

// repeatsID reports whether the provider needs another id for a call because an
// earlier call had it, which may be gone by now. That was decided when the call
// was recorded, so that all requests name it alike.
func (r *Rules) repeatsID(c state.ToolCall) bool {
	return r.Format != "" && c.ID != "" && callkey.Repeats(c.Key)
}

// findOtherNames demands that results have the names of their calls.
func findOtherNames(c *checker) {
	if !c.ResultNames {
		return
	}
	for _, call := range c.calls {
		if call.result == none {
			continue
		}
		if result, ok := c.msgs[call.result].message.(state.ToolResultMessage); ok && result.Call().Name != call.Name {
			detail := fmt.Sprintf("%s, answered as %.60q", describeCall(*call.ToolCall), result.Call().Name)
			c.addFinding(call.result, ruleName, detail)
		}
	}
}

// findOtherIDs demands that results have the ids of their calls. Only a result of
// Gemini may have none.
func findOtherIDs(c *checker) {
	for _, call := range c.calls {
		if call.result == none {
			continue
		}
		result, ok := c.msgs[call.result].message.(state.ToolResultMessage)
		if id := result.Call().ID; ok && id != call.ID && c.acceptsID(call.ID) && (id != "" || c.RequireIDs) {
			c.addFinding(call.result, ruleID, fmt.Sprintf("%s, answered with the id %.60q", describeCall(*call.ToolCall), id))
		}
	}
}

// repairIdentities gives calls ids and names that the provider accepts, and
// results those of their calls. Calls have equal names afterwards if and only
// if they had before.
func (r *repairer) repairIdentities() {
	ids := newLabelSet(r.ids)
	for _, e := range r.entries {
		switch m := e.message.(type) {
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				ids.taken[c.ID] = true
			}
		case state.ToolResultMessage:
			ids.taken[m.Call().ID] = true
		}
	}
	renamed := map[*entry][]state.ToolCall{} // by message, its calls with their new ids and names
	waiting := map[string]bool{}             // by id of the calls so far, whether one waits for its result
	for _, e := range r.entries {
		switch m := e.message.(type) {
		case state.ToolCallMessage:
			calls := m.Calls()
			for i := range calls {
				c := &calls[i]
				waits, used := waiting[c.ID]
				mustBeNew := waits || used && r.mustBeNew(r.isOwn(m))
				c.Name = r.profile.ToolName(c.Name)
				switch again := r.repeatsID(*c); {
				case c.Key != "" && (again || c.ID == "" && !r.acceptsID("")):
					c.ID = ids.unique(callkey.WireID(c.Key), "call") // the same in each request
					c.Key = callkey.Own(c.Key)
				case !r.acceptsID(c.ID) || r.RequireIDs && mustBeNew:
					c.ID = ids.unique(c.ID, "call")
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

// renameResult gives a result the id and the name of its call. Its own name stays
// if the provider accepts it.
func (r *repairer) renameResult(e *entry, m state.ToolResultMessage, call state.ToolCall) {
	old := m.Call()
	if old.ID == "" && !r.RequireIDs {
		call.ID = ""
	}
	if r.names.accept(old.Name) && !r.ResultNames {
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
		if old.Key != "" {
			object = object.WithString("key", call.Key)
		}
		r.reportChange(e, rule, "now with the id "+strconv.Quote(call.ID)+": "+describeCall(old))
	}
	if old.Name != call.Name {
		object = object.WithString("name", call.Name)
		r.reportChange(e, ruleName, "now with the name "+strconv.Quote(call.Name)+": "+describeCall(old))
	}
	return object.JSON(), true
}
