package statetest

import (
	"strconv"
	"strings"

	"github.com/agentstate/state"
)

// Transcript returns a conversation as text, in a line for each message. The
// ids of calls are renamed call_1, call_2 … in the order in which they appear,
// and the members of JSON objects are sorted: conversations that say the same
// have the same text. Texts are quoted. Secrets are not masked:
// [state.State.Redact] does that.
func Transcript(msgs []state.Message) string {
	t := transcriptText{ids: map[string]string{}}
	for _, m := range msgs {
		t.message(m)
		t.WriteByte('\n')
	}
	return t.String()
}

type transcriptText struct {
	strings.Builder
	ids map[string]string // the names of ids
}

func (t *transcriptText) message(m state.Message) {
	switch m := m.(type) {
	case nil:
		t.WriteString("nil")
	case state.TextMessage:
		t.WriteString(m.Role() + ": " + sortedJSON(m.Content()))
	case state.ToolCallMessage:
		t.WriteString(m.Role() + " calls ")
		for i, c := range m.Calls() {
			if i > 0 {
				t.WriteString(", ")
			}
			t.WriteString(c.Name + " " + sortedJSON(c.Input) + " (" + t.id(c.ID) + ")")
		}
	case state.ToolResultMessage:
		c := m.Call()
		t.WriteString("result of " + c.Name + " (" + t.id(c.ID) + ")")
		if m.IsError() {
			t.WriteString(", failed")
		}
		t.WriteString(": " + sortedJSON(m.Content()))
	default:
		t.WriteString(m.Role() + " " + m.Type() + ": " + sortedJSON(m.Raw()))
	}
}

// id returns the name of an id.
func (t *transcriptText) id(id string) string {
	if id == "" {
		return "no id"
	}
	name, ok := t.ids[id]
	if !ok {
		name = "call_" + strconv.Itoa(len(t.ids)+1)
		t.ids[id] = name
	}
	return name
}

// sortedJSON returns JSON on one line, with the members of objects sorted and
// numbers as they are spelled.
func sortedJSON(j state.JSON) string {
	if j == "" {
		return "nothing"
	}
	sorted, err := state.JSONOf(spelledTree(j))
	if err != nil {
		return strconv.Quote(string(j))
	}
	return string(sorted)
}
