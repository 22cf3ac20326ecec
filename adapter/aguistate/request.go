package aguistate

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// handOver hands over what the request brings: the messages of the user, what they
// have decided, and what they have changed in the state. It reports whether there was
// something that is said.
func (s *stream) handOver(now, base *page.Page) (said bool, err error) {
	ctx := context.WithoutCancel(s.r.Context()) // what the client says counts also if it has gone
	if s.in.asks("stop") {
		return false, s.stop(ctx, now)
	}
	inputs := s.said(now, base)
	said = len(inputs) > 0
	first := page.Input{ID: s.in.RunID}
	if said {
		first = inputs[0]
	}
	s.edited = s.edits(base)
	first.Fields = s.edited
	if first.Decisions, err = s.decisions(now); err != nil {
		return said, err
	}
	for action, does := range map[statehttp.Action]bool{
		statehttp.ActionSend: said, statehttp.ActionDecide: len(first.Decisions) > 0, statehttp.ActionEdit: len(first.Fields) > 0, statehttp.ActionRetry: s.in.asks("retry"),
	} {
		if does {
			err = errors.Join(err, s.may(action))
		}
	}
	switch {
	case err != nil:
		return said, err
	case !said && s.in.asks("retry"):
		return false, s.retry(ctx, now)
	case !said && len(first.Decisions) == 0 && len(first.Fields) == 0:
		return false, nil
	}
	for _, in := range append([]page.Input{first}, inputs[min(1, len(inputs)):]...) {
		in.Tools = s.tools()
		out, err := s.pages.Send(ctx, s.thread, in)
		if err != nil {
			return said, err
		}
		s.thread, s.target = out.Thread, out.ID
	}
	return said, nil
}

// stop ends the run that is under way.
func (s *stream) stop(ctx context.Context, now *page.Page) error {
	if err := s.may(statehttp.ActionStop); err != nil {
		return err
	}
	if at := slices.IndexFunc(now.Turns, func(t page.Turn) bool { return t.State == page.TurnRunning }); at >= 0 {
		s.target = now.Turns[at].ID
	}
	return s.pages.Stop(ctx, s.thread, "")
}

// retry handles the last message again if that has failed.
func (s *stream) retry(ctx context.Context, now *page.Page) error {
	for _, t := range now.Turns {
		if t.State == page.TurnFailed && s.isLast(t.ID) {
			s.target = t.ID
			return s.manager.Retry(ctx, s.thread, t.ID)
		}
	}
	return nil
}

// isLast reports whether the message of an id is the last one of the client.
func (s *stream) isLast(id string) bool {
	n := len(s.in.Messages)
	return n > 0 && s.in.Messages[n-1].ID == id
}

// tools returns those of the page.
func (s *stream) tools() (list []workspace.ClientTool) {
	for _, t := range s.in.Tools {
		schema := state.JSON(t.Parameters)
		if schema == "null" { // of version 0.0
			schema = ""
		}
		list = append(list, workspace.ClientTool{Name: t.Name, Description: t.Description, Schema: schema})
	}
	return list
}

// said returns what the user says: the messages at the end that the thread does not
// know. If the client has dropped what it had seen behind the message in front of
// them, the first of them stands in the place of the next message of the user. A last
// message that is known is said once more if the client has dropped its answer, or
// has another text.
func (s *stream) said(now, base *page.Page) (list []page.Input) {
	if len(s.in.Messages) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, m := range messagesOf(now) {
		known[m.ID] = true
	}
	for _, t := range now.Turns {
		known[t.ID] = true
	}
	var sent []*message // without what is no part of a conversation
	for _, m := range s.in.Messages {
		if m.Role != "reasoning" && m.Role != "activity" && !m.isInstruction() {
			sent = append(sent, m)
		}
	}
	n := len(sent)
	for n > 0 && sent[n-1].Role == "user" && !known[sent[n-1].ID] {
		n--
	}
	if n == len(sent) {
		return s.again(sent, now, base)
	}
	for _, m := range sent[n:] {
		content, err := m.Content.said(s.pages)
		if err != nil {
			continue // read has tried
		}
		list = append(list, page.Input{ID: m.ID, Content: content})
	}
	front := ""
	for _, m := range sent[:n] {
		if known[m.ID] {
			front = m.ID
		}
	}
	if n == 0 || front != "" {
		if _, seen := behind(base, front); seen {
			list[0].Replaces, _ = behind(now, front)
		}
	}
	return list
}

// again returns the last message of the client, which is known, if it is said again.
func (s *stream) again(sent []*message, now, base *page.Page) []page.Input {
	if len(sent) == 0 || sent[len(sent)-1].Role != "user" || len(s.in.Resume) > 0 {
		return nil
	}
	last := sent[len(sent)-1]
	for i, item := range now.Items {
		switch {
		case item.ID != last.ID:
		case !contentOf(item.Parts).equal(last.Content):
			content, err := last.Content.said(s.pages)
			if err != nil {
				return nil
			}
			return []page.Input{{ID: last.ID, Content: content}}
		case i+1 < len(now.Items):
			if _, seen := behind(base, last.ID); seen {
				sum := sha256.Sum256([]byte(s.in.RunID))
				return []page.Input{{ID: last.ID + "-" + base64.RawURLEncoding.EncodeToString(sum[:6]), Replaces: last.ID}}
			}
		}
	}
	return nil
}

// behind returns the next message of a user behind one in a conversation, or the first
// one for "", and whether there is anything behind it.
func behind(p *page.Page, id string) (next string, found bool) {
	if p == nil {
		return "", false
	}
	isBehind := id == ""
	for _, item := range p.Items {
		if isBehind {
			if found = true; item.Role == "user" {
				return item.ID, true
			}
		}
		isBehind = isBehind || slices.ContainsFunc(messagesOfItem(item), func(m *message) bool { return m.ID == id })
	}
	return "", found
}

// decisions reads the decisions about calls that wait. Those about calls that others
// have decided are left out.
func (s *stream) decisions(now *page.Page) (list []tool.Decision, err error) {
	calls := map[string]*page.Call{} // by their ids and their keys
	for _, item := range now.Items {
		for _, p := range item.Parts {
			if p.Call != nil {
				calls[callID(item, p)], calls[p.Call.Key] = p.Call, p.Call
			}
		}
	}
	for _, m := range s.in.Messages {
		call := calls[m.ToolCallID]
		if m.Role != "tool" || call == nil || call.State != page.CallClient || isDecided(now, call) {
			continue
		}
		answer := tool.AnswerWith(call.Key, state.JSONText(m.Content.text))
		if m.Error != "" {
			answer.Result, answer.Failed = state.JSONText(m.Error), true
		}
		list = append(list, answer)
	}
	for _, r := range s.in.Resume {
		call := calls[r.InterruptID]
		if call == nil || call.Key != r.InterruptID {
			return nil, invalid("no call has the id %q", r.InterruptID)
		}
		decision, err := r.decision()
		if err != nil {
			return nil, err
		}
		if (call.State == page.CallWaiting || call.State == page.CallClient) && !isDecided(now, call) {
			list = append(list, decision)
		}
	}
	return list, nil
}

// isDecided reports whether a message that waits decides about a call.
func isDecided(now *page.Page, call *page.Call) bool {
	return slices.ContainsFunc(now.Turns, func(t page.Turn) bool { return slices.Contains(t.Decides, call.Key) })
}

// decision reads the answer to an interrupt, whose id is the key of a call.
func (r *resumption) decision() (tool.Decision, error) {
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
		return tool.Refuse(r.InterruptID, ""), nil
	case r.Status != "resolved" || len(r.Payload) == 0:
		return tool.Decision{}, invalid("the answer to %q has no payload", r.InterruptID)
	case answer.Approved == nil:
		return tool.AnswerWith(r.InterruptID, state.JSON(r.Payload)), nil
	case string(answer.EditedArgs) == "null":
		answer.EditedArgs = nil
	}
	return tool.ApproveWith(r.InterruptID, state.JSON(answer.EditedArgs)), nil
}
