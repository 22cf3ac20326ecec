package statetest

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// withIDs returns a message with other ids of its calls, or of the call that it
// answers.
func withIDs(m state.Message, rename func(id string) string) state.Message {
	switch m := m.(type) {
	case state.ToolCallMessage:
		ids := make([]string, len(m.Calls()))
		changed := false
		for i, c := range m.Calls() {
			ids[i] = rename(c.ID)
			changed = changed || ids[i] != c.ID
		}
		if !changed {
			return m
		}
		return editCalls(m, func(i int, call jsontext.Object) jsontext.Object { return call.WithString("id", ids[i]) })
	case state.ToolResultMessage:
		id := m.Call().ID
		if renamed := rename(id); id != "" && renamed != id {
			message, _ := jsontext.Members([]byte(m.Raw())) // a message is an object
			call, _ := jsontext.Members(message.Get("tool"))
			return decoded(m, message.With("tool", call.WithString("id", renamed).JSON()))
		}
	}
	return m
}

// withCalls returns a message with those of its calls that are kept, nil if
// there are none.
func withCalls(m state.Message, keep func(c state.ToolCall) bool) state.Message {
	calls := m.(state.ToolCallMessage).Calls()
	kept := 0
	for _, c := range calls {
		if keep(c) {
			kept++
		}
	}
	switch kept {
	case 0:
		return nil
	case len(calls):
		return m
	}
	return editCalls(m, func(i int, call jsontext.Object) jsontext.Object {
		if keep(calls[i]) {
			return call
		}
		return nil
	})
}

// editCalls returns a message with its calls changed, or removed where edit
// returns nil.
func editCalls(m state.Message, edit func(i int, call jsontext.Object) jsontext.Object) state.Message {
	message, _ := jsontext.Members([]byte(m.Raw())) // a message is an object
	elements, _ := message.Elements("tools")
	var edited [][]byte
	for i, e := range elements {
		call, _ := jsontext.Members(e)
		if call = edit(i, call); call != nil {
			edited = append(edited, call.JSON())
		}
	}
	return decoded(m, message.With("tools", jsontext.Array(edited)))
}

// decoded returns the message of an edited one.
func decoded(m state.Message, edited jsontext.Object) state.Message {
	changed, err := state.DecodeMessage(edited.JSON())
	if err != nil {
		return m // too large to be decoded
	}
	return changed
}
