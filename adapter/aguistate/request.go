package aguistate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp/chat"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// handOver hands over what the request brings: the messages of the user, what they
// have decided, and what they have changed in the state. It reports whether there was
// something that is said.
func (s *stream) handOver(now, base *page.Page) (said bool, err error) {
	ctx := context.WithoutCancel(s.R.Context()) // what the client says counts also if it has gone
	if s.in.asks("stop") {
		return false, s.stop(ctx, now)
	}
	inputs := s.said(now, base)
	if said = len(inputs) > 0; !said {
		inputs = []page.Input{{ID: s.in.RunID}}
	}
	first := &inputs[0]
	s.edited = s.edits(base)
	first.Fields = s.edited
	if first.Decisions, err = s.decisions(now); err == nil {
		err = s.MaySend(*first)
	}
	retries := !said && s.in.asks("retry")
	if retries {
		err = errors.Join(err, s.May(statehttp.ActionRetry))
	}
	switch {
	case err != nil:
		return said, err
	case retries:
		return false, s.retry(ctx, now)
	case !said && len(first.Decisions) == 0 && len(first.Fields) == 0:
		return false, nil
	}
	for _, in := range inputs {
		in.Tools = s.tools()
		out, err := s.Pages.Send(ctx, s.thread, in)
		if err != nil {
			return said, err
		}
		s.thread, s.target = out.Thread, out.ID
	}
	return said, nil
}

// stop ends the run that is under way.
func (s *stream) stop(ctx context.Context, now *page.Page) error {
	if err := s.May(statehttp.ActionStop); err != nil {
		return err
	}
	runs, _ := chat.Running(now)
	s.target = runs.ID
	return s.Pages.Stop(ctx, s.thread, "")
}

// retry handles the last message again if that has failed.
func (s *stream) retry(ctx context.Context, now *page.Page) error {
	if n := len(s.in.Messages); n > 0 && chat.TurnOf(now, s.in.Messages[n-1].ID).State == page.TurnFailed {
		s.target = s.in.Messages[n-1].ID
		return s.Manager.Retry(ctx, s.thread, s.target)
	}
	return nil
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
	known := func(id string) bool {
		_, ok := s.wanted(id)
		return ok || chat.TurnOf(now, id).ID == id
	}
	var sent []*message // without what is no part of a conversation
	for _, m := range s.in.Messages {
		if m.Role != "reasoning" && m.Role != "activity" && !m.isInstruction() {
			sent = append(sent, m)
		}
	}
	n := len(sent)
	for n > 0 && sent[n-1].Role == "user" && !known(sent[n-1].ID) {
		n--
	}
	if n == len(sent) {
		return s.again(sent, now, base)
	}
	for _, m := range sent[n:] {
		content, err := m.Content.said(s.Pages)
		if err != nil {
			continue // read has tried
		}
		list = append(list, page.Input{ID: m.ID, Content: content})
	}
	front := ""
	for _, m := range slices.Backward(sent[:n]) {
		if known(m.ID) {
			front = m.ID
			break
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
			content, err := last.Content.said(s.Pages)
			if err != nil {
				return nil
			}
			return []page.Input{{ID: last.ID, Content: content}}
		case i+1 < len(now.Items):
			if _, seen := behind(base, last.ID); seen {
				return []page.Input{{ID: chat.ID(last.ID, s.in.RunID), Replaces: last.ID}}
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
		isBehind = isBehind || slices.ContainsFunc(appendItem(nil, item), func(m *message) bool { return m.ID == id })
	}
	return "", found
}

// decisions reads the decisions about calls that wait. Those about calls that others
// have decided are left out.
func (s *stream) decisions(now *page.Page) (list []tool.Decision, err error) {
	waits := map[string]bool{}         // of all calls, by their keys
	results := map[string]*page.Call{} // that the client is to give, by the ids that it knows
	for _, item := range now.Items {
		for _, p := range item.Parts {
			if p.Call != nil {
				waits[p.Call.Key] = false
			}
		}
	}
	for item, p := range chat.Waiting(now) {
		waits[p.Call.Key] = true
		if p.Call.State == page.CallClient {
			results[callID(item, p)] = p.Call
		}
	}
	for _, m := range s.in.Messages {
		call := results[m.ToolCallID]
		if m.Role != "tool" || call == nil {
			continue
		}
		answer := tool.AnswerWith(call.Key, state.JSONText(m.Content.text))
		if m.Error != "" {
			answer.Result, answer.Failed = state.JSONText(m.Error), true
		}
		list = append(list, answer)
	}
	for _, r := range s.in.Resume {
		isWaiting, known := waits[r.InterruptID]
		if !known {
			return nil, invalid("no call has the id %q", r.InterruptID)
		}
		decision, err := r.decision()
		if err != nil {
			return nil, err
		}
		if isWaiting {
			list = append(list, decision)
		}
	}
	return list, nil
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
