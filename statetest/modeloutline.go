package statetest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/statetest/internal/kit"
)

// shownMessages is the number of messages at the end of a conversation that a
// failure shows.
const shownMessages = 24

// outline returns the end of a conversation, a line for each message. Messages
// that matter are marked, and are shown wherever they are.
func (m *Model) outline(msgs []state.Message, marked map[int]bool) string {
	var lines []string
	skipped := 0
	for i, msg := range msgs {
		if i < len(msgs)-shownMessages && !marked[i] {
			skipped++
			continue
		}
		if skipped > 0 {
			lines = append(lines, "      …  "+kit.Count(skipped, "message", "messages"))
			skipped = 0
		}
		mark := " "
		if marked[i] {
			mark = "✗"
		}
		lines = append(lines, "    "+mark+" "+m.outlineLine(i, msg))
	}
	return strings.Join(lines, "\n")
}

// outlineLine returns what a message says in short. Texts are masked before they
// are shortened: half a secret would not be recognised.
func (m *Model) outlineLine(i int, msg state.Message) string {
	clip := func(text string) string { return fault.Clip(m.secrets.Mask(text)) }
	role, says := "?", "no message"
	switch msg := msg.(type) {
	case state.TextMessage:
		role, says = msg.Role(), strconv.Quote(clip(msg.Text()))
	case state.ToolCallMessage:
		var calls []string
		for _, c := range msg.Calls() {
			calls = append(calls, strings.TrimSpace(c.Name+" "+clip(string(c.Input)))+idNote(c.ID))
		}
		role, says = msg.Role(), "calls "+strings.Join(calls, ", ")
	case state.ToolResultMessage:
		what := "result of "
		if msg.IsError() {
			what = "error of "
		}
		role, says = "tool", what+msg.Call().Name+idNote(msg.Call().ID)+" "+strconv.Quote(clip(msg.Text()))
	case state.UnknownMessage:
		role, says = msg.Role(), msg.Type()
	}
	return fmt.Sprintf("%-2d %-9s  %s", i, role, says)
}

func idNote(id string) string {
	if id == "" {
		return ""
	}
	return " (" + id + ")"
}

// explain returns what the request says, and what each reply that is left
// lacks.
func (m *Model) explain(r asked) string {
	text := m.outline(r.Messages, nil)
	left := m.script.left()
	if len(left) == 0 {
		return text + "\n    all " + kit.Count(len(m.script.replies), "reply has", "replies have") + " been given"
	}
	for _, e := range left {
		text += "\n    " + e.shown(m.secrets.Mask) + ": " + e.lacks(r.Request, m.secrets.Mask)
	}
	return text
}
