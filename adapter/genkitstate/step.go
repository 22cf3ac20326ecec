package genkitstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/loop"
)

// inside is what this package sees of a State beside the exported methods.
var inside = state.Inside(internal.Key{})

// step is a message of the model with calls, in its conversation.
type step struct {
	before  []*ai.Message
	message *ai.Message
	results []*ai.Part // each at the index of its call in the message
	// restarted says of the calls, at their indexes, whether a person has restarted
	// them, and edited whether with another input.
	restarted, edited []bool
}

func newStep(before []*ai.Message, message *ai.Message) *step {
	n := len(message.Content)
	return &step{before, message, make([]*ai.Part, n), make([]bool, n), make([]bool, n)}
}

// resume returns the step with which the conversation of a request ends, if it
// has calls without results, and records the results that Genkit has added.
func (g *generation) resume(ctx context.Context, t *loop.Turn, req *ai.ModelRequest) (*step, error) {
	last := len(req.Messages) - 1
	if s := g.left; s != nil {
		g.left = nil // middleware around this one may try again
		if err := s.take(ctx, t, req.Messages[last].Content); err != nil {
			return nil, err
		}
		req.Messages = s.conversation()
		return nil, nil
	}
	for last >= 0 && req.Messages[last].Role == ai.RoleTool {
		last--
	}
	if last < 0 || req.Messages[last].Role != ai.RoleModel {
		return nil, nil
	}
	s := newStep(req.Messages[:last], req.Messages[last])
	for _, m := range req.Messages[last+1:] {
		if m.Metadata["resumed"] == nil {
			s.put(m.Content)
			continue
		}
		// of ai.WithToolResponses and ai.WithToolRestarts
		if err := s.take(ctx, t, s.reopen(m.Content)); err != nil {
			return nil, err
		}
		req.Messages = s.conversation()
	}
	if slices.Contains(s.restarted, true) { // no other call is made in the place of one that is gone
		return s, nil
	}
	for _, c := range t.State().History().Pending() { // not those of another agent
		if s.has(t, c) {
			return s, nil
		}
	}
	return nil, nil
}

// has reports whether a call is an open one of the step.
func (s *step) has(t *loop.Turn, c state.ToolCall) bool {
	return slices.ContainsFunc(s.open(), func(p *ai.Part) bool { return keyOf(t.State(), p) == c.Key })
}

// elsewhere reports whether calls are left that are not in the step, which may be
// nil.
func (s *step) elsewhere(t *loop.Turn) bool {
	return slices.ContainsFunc(t.Pending(), func(c state.ToolCall) bool { return s == nil || !s.has(t, c) })
}

// isIdle reports whether all open calls of the step wait.
func (s *step) isIdle(t *loop.Turn) bool {
	return !slices.Contains(s.restarted, true) && !slices.ContainsFunc(t.Pending(), func(c state.ToolCall) bool {
		return s.has(t, c)
	})
}

// stepOf returns the last step of a conversation in which a call waits, or nil.
func stepOf(t *loop.Turn, msgs []*ai.Message) *step {
	waiting := t.Suspended()
	for i, m := range slices.Backward(msgs) {
		if m.Role != ai.RoleModel {
			continue
		}
		s := newStep(msgs[:i], m)
		for _, next := range msgs[i+1:] {
			if next.Role == ai.RoleTool {
				s.put(next.Content)
			}
		}
		for _, p := range s.open() {
			if slices.ContainsFunc(waiting, func(c state.ToolCall) bool { return keyOf(t.State(), p) == c.Key }) {
				return s
			}
		}
	}
	return nil
}

// take adds the results of calls that Genkit has made, or a person has answered.
func (s *step) take(ctx context.Context, t *loop.Turn, parts []*ai.Part) error {
	msgs, err := Messages(&ai.Message{Role: ai.RoleTool, Content: parts})
	if err != nil {
		return err
	}
	var results []state.ToolResultMessage
	for _, m := range msgs {
		if r, ok := m.(state.ToolResultMessage); ok {
			results = append(results, inside.WithKey(r, s.keyOf(t.State(), r.Call().ID)))
		}
	}
	if len(results) == 0 {
		return nil
	}
	if err := t.State().History().Answer(results...); err != nil {
		return fmt.Errorf("genkitstate: record results: %w", err)
	}
	s.put(parts)
	return t.Commit(ctx)
}

// keyOf returns the key of the call with a ref.
func (s *step) keyOf(st *state.State, ref string) string {
	for _, p := range s.message.Content {
		if p.IsToolRequest() && p.ToolRequest.Ref == ref {
			return keyOf(st, p)
		}
	}
	return inside.KeyOfID(st, ref)
}

// reopen returns the results without those of calls that a person has restarted.
// These stay open, with the inputs that have replaced theirs.
func (s *step) reopen(results []*ai.Part) (rest []*ai.Part) {
	message := *s.message
	message.Content = slices.Clone(message.Content)
	for _, r := range results {
		input, ok := restartedInput(r)
		if !ok {
			rest = append(rest, r)
			continue
		}
		for i, p := range message.Content {
			if !p.IsToolRequest() || callKey(p) != callKey(r) {
				continue
			}
			if s.restarted[i] = true; input != nil {
				s.edited[i] = true
				call, request := *p, *p.ToolRequest
				request.Input, call.ToolRequest = input, &request
				message.Content[i] = &call
			}
		}
	}
	s.message = &message
	return rest
}

// put adds results to the step. If calls have one name and no ids, the first of
// them gets the first result.
func (s *step) put(results []*ai.Part) {
	for _, r := range results {
		for i, p := range s.message.Content {
			if p.IsToolRequest() && s.results[i] == nil && callKey(p) == callKey(r) {
				s.results[i] = r
				break
			}
		}
	}
}

// open returns the calls without a result.
func (s *step) open() (open []*ai.Part) {
	for i, p := range s.message.Content {
		if p.IsToolRequest() && s.results[i] == nil {
			open = append(open, p)
		}
	}
	return open
}

// callKey identifies the call of a part within its step.
func callKey(p *ai.Part) string {
	switch {
	case p.IsToolRequest():
		return cmp.Or(p.ToolRequest.Ref, p.ToolRequest.Name)
	case p.IsToolResponse():
		return cmp.Or(p.ToolResponse.Ref, p.ToolResponse.Name)
	}
	return ""
}

// conversation returns the conversation with the step.
func (s *step) conversation() []*ai.Message {
	results := slices.DeleteFunc(slices.Clone(s.results), func(p *ai.Part) bool { return p == nil })
	return append(slices.Clone(s.before), s.message, &ai.Message{Role: ai.RoleTool, Content: results})
}

// leave returns the response that leaves calls to Genkit. Those that have been
// made are in its request, as a step of their own: a response that Genkit
// interrupts is resumed with valid messages.
func (s *step) leave(resp *ai.ModelResponse, left []*ai.Part) *ai.ModelResponse {
	rest, made := *s.message, *s.message
	rest.Content = left
	made.Content = slices.DeleteFunc(slices.Clone(s.message.Content), func(p *ai.Part) bool {
		return slices.Contains(left, p)
	})
	req := *resp.Request
	req.Messages = (&step{before: s.before, message: &made, results: s.results}).conversation()
	if !slices.ContainsFunc(made.Content, (*ai.Part).IsToolRequest) {
		rest, req.Messages = *s.message, s.before
	}
	resp.Request, resp.Message = &req, &rest
	return resp
}
