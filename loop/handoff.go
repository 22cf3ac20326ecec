package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/tool"
)

// endStep ends a step that was begun at a version of the State, and adds its
// results to the history.
func (t *Turn) endStep(step *tool.Step, begun uint64) ([]tool.Result, error) {
	results := step.End()
	if err := t.refuseHandoffs(results, begun); err != nil {
		return results, err
	}
	messages := make([]state.ToolResultMessage, len(results))
	for i, r := range results {
		messages[i] = r.Message
		if r.Err != nil {
			t.report(r)
		}
	}
	return results, t.st.History().Answer(messages...)
}

// handoff is a change by a call after which another agent is next.
type handoff struct {
	cause, agent string
}

// refuseHandoffs finds calls of a step that hand the conversation over to
// different agents, by one field: the last would win, and the model would read
// that all have succeeded. It gives the field the value that it had before, and
// makes their results errors that say so.
func (t *Turn) refuseHandoffs(results []tool.Result, begun uint64) error {
	if t.route == nil || len(results) < 2 {
		return nil
	}
	for field, handoffs := range t.handoffs(results, begun) {
		agents := map[string]bool{}
		for _, h := range handoffs {
			agents[h.agent] = true
		}
		if len(agents) < 2 {
			continue
		}
		before, err := t.base.At(begun)
		if err != nil {
			return err
		}
		value, _ := before.KV().Get(field) // nil deletes
		if err := t.base.Patch(map[string]any{field: value}); err != nil {
			return err
		}
		names := make([]string, len(handoffs))
		for i, h := range handoffs {
			names[i] = fault.Quote(h.agent)
		}
		for i, r := range results {
			c := r.Message.Call()
			if slices.ContainsFunc(handoffs, func(h handoff) bool { return h.cause == causeOf(c) }) {
				results[i].Err = fmt.Errorf("tool %s: not followed: calls of one answer hand over to %s", fault.Quote(c.Name),
					strings.Join(names, " and to "))
				results[i].Message = state.ToolError(c, results[i].Err.Error())
			}
		}
	}
	return nil
}

// handoffs returns the changes of who is next by calls of a step, in their order,
// by field. A field that only one call has written is left out. If the versions
// cannot be looked at, as on the State of an agent, there are none.
func (t *Turn) handoffs(results []tool.Result, begun uint64) map[string][]handoff {
	causes := map[string]bool{}
	for _, r := range results {
		if r.Err == nil {
			causes[causeOf(r.Message.Call())] = true
		}
	}
	written, by := []state.Change{}, map[string]map[string]bool{} // the causes by field
	for c, err := range t.base.Changes(begun) {
		if err != nil {
			return nil
		}
		if causes[c.Cause] && c.Field != "" {
			if by[c.Field] == nil {
				by[c.Field] = map[string]bool{}
			}
			by[c.Field][c.Cause] = true
			written = append(written, c)
		}
	}
	found := map[string][]handoff{}
	for _, c := range written {
		if len(by[c.Field]) < 2 {
			continue
		}
		before, after := t.nextAt(c.Version-1), t.nextAt(c.Version)
		if after != "" && before != after {
			found[c.Field] = append(found[c.Field], handoff{c.Cause, after})
		}
	}
	return found
}

// nextAt returns whose turn was next at a version, or "".
func (t *Turn) nextAt(version uint64) string {
	past, err := t.base.At(version)
	if err != nil {
		return ""
	}
	agent, _ := t.route(past)
	return agent
}

// causeOf returns the cause of what a call writes.
func causeOf(c state.ToolCall) string { return callkey.IDOf(c.ID, c.Key) }
