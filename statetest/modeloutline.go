package statetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/statetest/internal/kit"
)

const (
	shownMessages = 24 // of a conversation in a failure
	shownAround   = 3  // messages on each side of one that matters, in a long conversation
)

func (m *Model) outline(ctx context.Context, msgs []state.Message, marked map[int]bool) string {
	return outline(msgs, marked, func(text string) string { return m.mask(ctx, text) })
}

// outline returns a conversation, a line for each message. Messages that matter
// are marked. Of a long conversation it has what is near these and near the end.
func outline(msgs []state.Message, marked map[int]bool, mask func(string) string) string {
	var b strings.Builder
	skipped := 0
	for i, msg := range msgs {
		if !isShown(i, len(msgs), marked) {
			skipped++
			continue
		}
		if skipped > 0 {
			fmt.Fprintf(&b, "      …  %s\n", kit.Count(skipped, "message", "messages"))
			skipped = 0
		}
		mark := " "
		if marked[i] {
			mark = "✗"
		}
		fmt.Fprintf(&b, "    %s %s\n", mark, outlineLine(i, msg, mask))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func isShown(i, n int, marked map[int]bool) bool {
	if n <= shownMessages || i >= n-shownAround {
		return true
	}
	for near := i - shownAround; near <= i+shownAround; near++ {
		if marked[near] {
			return true
		}
	}
	return false
}

// outlineLine returns what a message says in short. Texts are masked before they
// are shortened: half a secret would not be recognised.
func outlineLine(i int, m state.Message, mask func(string) string) string {
	role, says := "?", "no message"
	switch m := m.(type) {
	case state.TextMessage:
		role, says = m.Role(), strconv.Quote(fault.Clip(mask(m.Text())))
	case state.ToolCallMessage:
		var calls []string
		for _, c := range m.Calls() {
			calls = append(calls, strings.TrimSpace(c.Name+" "+fault.Clip(mask(string(c.Input))))+idNote(c.ID))
		}
		role, says = m.Role(), "calls "+strings.Join(calls, ", ")
	case state.ToolResultMessage:
		what := "result of "
		if m.IsError() {
			what = "error of "
		}
		role, says = "tool", what+m.Call().Name+idNote(m.Call().ID)+" "+strconv.Quote(fault.Clip(mask(m.Text())))
	case state.UnknownMessage:
		role, says = m.Role(), m.Type()
	}
	return fmt.Sprintf("%-2d %-9s  %s", i, role, says)
}

// unmasked is for texts that are not printed.
func unmasked(text string) string { return text }

func idNote(id string) string {
	if id == "" {
		return ""
	}
	return " (" + id + ")"
}

// explain returns what the request says, and what each reply that is left
// lacks.
func (m *Model) explain(ctx context.Context, r asked) string {
	mask := func(text string) string { return m.mask(ctx, text) }
	text := m.outline(ctx, r.Messages, nil)
	left := m.script.left()
	if len(left) == 0 {
		return text + "\n    all " + kit.Count(len(m.script.replies), "reply has", "replies have") + " been given"
	}
	for _, e := range left {
		text += "\n    " + e.shown(mask) + ": " + e.lacks(r.Request, mask)
	}
	return text
}
