package aguistate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// handOver hands over what the request brings: the messages of the user, what they
// have decided, and what they have changed in the state.
func (s *stream) handOver(added []message, fields map[string]state.JSON) error {
	if err := s.checkEdits(fields); err != nil {
		return err
	}
	ctx := context.WithoutCancel(s.ctx) // what the client says counts also if it has gone
	msg := workspace.Message{ID: s.in.RunID, Agent: s.handler.opts.Agent, Fields: fields}
	for _, t := range s.in.Tools {
		schema := state.JSON(t.Parameters)
		if schema == "null" { // of version 0.0
			schema = ""
		}
		msg.Tools = append(msg.Tools, workspace.ClientTool{Name: t.Name, Description: t.Description, Schema: schema})
	}
	decided, err := s.decide(&msg)
	switch {
	case err != nil:
		return err
	case len(added) == 0 && decided:
		return s.submit(ctx, msg)
	case len(added) == 0 && len(fields) > 0:
		return s.handler.m.Update(ctx, s.thread, func(w *workspace.Workspace) error {
			st := w.State()
			if msg.Agent != "" {
				st = st.As(msg.Agent)
			}
			values := map[string]any{}
			for name, value := range fields {
				var v any
				if err := json.Unmarshal([]byte(value), &v); err != nil {
					return err
				}
				values[name] = v
			}
			return st.Patch(values)
		})
	}
	for _, m := range added {
		msg.ID = m.ID
		if msg.Content, err = m.userMessage(); err != nil {
			return err
		}
		if err := s.submit(ctx, msg); err != nil {
			return err
		}
		msg = workspace.Message{Agent: msg.Agent, Tools: msg.Tools} // all else came with the first one
	}
	return nil
}

func (s *stream) submit(ctx context.Context, msg workspace.Message) error {
	out, err := s.handler.m.Submit(ctx, s.thread, msg)
	if err == nil && out.Status == workspace.StatusRejected {
		err = workspace.ErrBusy
	}
	s.target = msg.ID
	return err
}

// baseView returns the view of the version of the state that the client names, or
// nil if it is not held, or is none of this thread and its branches.
func (s *stream) baseView() (*workspace.View, *conversation) {
	var name string
	if json.Unmarshal(s.in.State[versionKey], &name) != nil {
		return nil, nil
	}
	if s.version() == name {
		return s.view, s.conv
	}
	name, branch, isBranch := strings.Cut(name, "~")
	name, _, _ = strings.Cut(name, ".")
	thread := s.origin
	if isBranch {
		thread += "~" + branch
	}
	number, _, _ := strings.Cut(name, "-")
	version, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, nil
	}
	user, _ := workspace.SplitThread(s.thread)
	v, err := s.handler.m.ViewAt(s.ctx, workspace.Thread(user, thread), version)
	if err != nil || versionOf(v) != name {
		return nil, nil
	}
	return s.handler.shown(v)
}

// edits returns what the client has changed in the state that it has. Earlier
// values of shared fields are not known: if there are others now, what the client
// has made of those is left out.
func (s *stream) edits() map[string]state.JSON {
	v, _ := s.baseView()
	if v == nil {
		return nil
	}
	changed := map[string]state.JSON{}
	was := fieldsOf(v, "")
	for name := range was {
		if _, stays := s.in.State[name]; !stays {
			changed[name] = "null"
		}
	}
	for name, value := range s.in.State {
		if old, present := was[name]; name != versionKey && (!present || !sameInClient(old, value)) {
			changed[name] = state.JSON(value)
		}
	}
	if shared := sharedVersion(v); shared != "" && !strings.Contains(string(s.in.State[versionKey]), shared) {
		for _, name := range sharedFields(v) {
			delete(changed, name)
		}
	}
	return changed
}

// sameInClient reports whether a client reads the same from both texts: its numbers
// have 53 bits.
func sameInClient(a state.JSON, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// checkEdits refuses to replace what a handler combines.
func (s *stream) checkEdits(changed map[string]state.JSON) error {
	handlers := map[string]string{}
	for _, f := range s.view.State().Fields() {
		handlers[f.Name] = f.Handler
	}
	handlers[state.Messages.Name] = "that of the conversation"
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		h := handlers[name]
		if h == "" || h == "replace" || h == "last_wins" || slices.Contains(s.handler.opts.Write, name) && name != state.Messages.Name {
			continue
		}
		errs = append(errs, fmt.Errorf("%w: a page may not replace the field %q, whose handler is %s", state.ErrDenied, name, h))
	}
	return errors.Join(errs...)
}

// decide reads the decisions about calls that wait. Those about calls that others
// have decided are left out.
func (s *stream) decide(msg *workspace.Message) (decided bool, err error) {
	for _, m := range s.in.Messages {
		if m.Role != "tool" {
			continue
		}
		w := s.conv.find(m.ToolCallID)
		if w == nil || !w.Client {
			continue
		}
		answer := tool.AnswerWith(w.Key, state.JSONText(m.text()))
		if m.Error != "" {
			answer.Result, answer.Failed = state.JSONText(m.Error), true
		}
		msg.Decisions = append(msg.Decisions, answer)
	}
	for _, r := range s.in.Resume {
		w := s.conv.find(r.InterruptID)
		if w == nil {
			if !s.conv.calls[r.InterruptID] {
				return false, invalid("no call has the id %q", r.InterruptID)
			}
			continue
		}
		var answer struct {
			Approved   *bool
			EditedArgs json.RawMessage
		}
		if json.Unmarshal(r.Payload, &answer) != nil {
			answer.Approved = nil // which is set also by what is no bool
			if yes := false; json.Unmarshal(r.Payload, &yes) == nil {
				answer.Approved = &yes
			}
		}
		switch {
		case r.Status == "cancelled", r.Status == "resolved" && answer.Approved != nil && !*answer.Approved:
			msg.Decisions = append(msg.Decisions, tool.Refuse(w.Key, ""))
		case r.Status != "resolved" || len(r.Payload) == 0:
			return false, invalid("the answer to %q has no payload", r.InterruptID)
		case answer.Approved != nil:
			if string(answer.EditedArgs) == "null" {
				answer.EditedArgs = nil
			}
			msg.Decisions = append(msg.Decisions, tool.ApproveWith(w.Key, state.JSON(answer.EditedArgs)))
		default:
			msg.Decisions = append(msg.Decisions, tool.AnswerWith(w.Key, state.JSON(r.Payload)))
		}
	}
	return len(msg.Decisions) > 0, nil
}

// find returns the call that waits with an id, or nil.
func (c *conversation) find(id string) *waitingCall {
	for i := range c.waiting {
		if c.waiting[i].id == id {
			return &c.waiting[i]
		}
	}
	return nil
}

// waits returns how the run ends for a client: with the calls that a person decides
// about, or those of the client's own tools.
func (s *stream) waits() *outcome {
	interrupted, success := &outcome{Type: "interrupt"}, &outcome{Type: "success"}
	for _, w := range s.conv.waiting {
		if w.Client {
			success.Pending = append(success.Pending, w.id)
			continue
		}
		arguments := json.RawMessage(argumentsOf(w.ToolCall, s.view.Redact))
		i := interrupt{
			ID: w.id, Reason: "tool_call", Message: s.view.Redact(w.Reason), ToolCallID: w.id, ResponseSchema: approvalSchema,
			Metadata: map[string]any{"name": s.view.Redact(w.Name), "arguments": arguments, "agent": w.Agent},
		}
		if !w.Until.IsZero() {
			i.ExpiresAt = w.Until.UTC().Format(time.RFC3339)
		}
		interrupted.Interrupts = append(interrupted.Interrupts, i)
	}
	switch {
	case len(interrupted.Interrupts) > 0:
		return interrupted
	case len(success.Pending) > 0 && s.in.isNew():
		return success
	}
	return nil
}

var approvalSchema = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object"}},"required":["approved"]}`)

// branch finds the thread in which the messages of the client are, beginning with
// the one that it names. If the client has shortened what it had, and says
// something else in its place, that is a separate thread from then on.
func (s *stream) branch() error {
	for {
		known := 0
		for known < len(s.in.Messages) && s.conv.has(s.in.Messages[known].ID) {
			known++
		}
		if known == len(s.in.Messages) || s.in.Messages[known].Role != "user" || ended(s.view, s.in.Messages[known].ID) {
			return nil
		}
		next := s.conv.behind(s.in.Messages[:known])
		if next == nil || next.number == 0 {
			return nil
		}
		user, thread := workspace.SplitThread(s.thread)
		thread += "~" + s.in.Messages[known].ID
		to := workspace.Thread(user, thread)
		v, conv, err := s.handler.view(s.ctx, to)
		if err != nil {
			return err
		}
		if !v.Exists {
			_, base := s.baseView()
			if base == nil || base.behind(s.in.Messages[:known]) == nil {
				return nil // the client has shortened nothing: others have gone on meanwhile
			}
			err := s.handler.m.Fork(s.ctx, s.thread, to, workspace.ForkPoint{Message: next.number})
			if err != nil && !errors.Is(err, workspace.ErrExists) {
				return err
			}
			if v, conv, err = s.handler.view(s.ctx, to); err != nil {
				return err
			}
		}
		s.thread, s.in.ThreadID = to, thread
		s.view, s.conv = v, conv
	}
}

// behind returns the message that follows the last of messages, or nil.
func (c *conversation) behind(list []message) *message {
	i := 0
	if len(list) > 0 {
		last, ok := c.places[list[len(list)-1].ID]
		if i = last + 1; !ok {
			return nil
		}
	}
	if i >= len(c.messages) {
		return nil
	}
	return &c.messages[i]
}
