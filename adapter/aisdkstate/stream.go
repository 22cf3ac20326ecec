package aisdkstate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp"
	"github.com/agentstate/state/internal/pagehttp/chat"
	"github.com/agentstate/state/workspace/page"
)

// stream streams the answer to a message.
type stream struct {
	*call
	out    *pagehttp.Writer
	thread string
	turn   string // the question
	target string // the message that the stream ends with: the question, or a decision about a call of its answer

	page   page.Page
	fields map[string]state.JSON // that the client has, nil at first
	sent   map[string]part       // what was sent of parts, by their keys
	open   part                  // the text or thought that is open
	step   string                // the item of the last step
}

func (s *stream) send(typ string, members ...any) {
	chunk := map[string]any{"type": typ}
	for i := 0; i < len(members); i += 2 {
		chunk[members[i].(string)] = members[i+1]
	}
	s.out.SendJSON("", chunk)
}

// serve streams the answer. The client has what has says of it.
func (s *stream) serve(has *message) {
	s.W.Header().Set("x-vercel-ai-ui-message-stream", "v1")
	id := answerID(s.Chat, s.Chat+s.Branch(s.thread), s.turn)
	if has != nil {
		id = has.ID
		for _, p := range has.Parts {
			s.sent[p.key], s.step = p, p.item
		}
	}
	s.send("start", "messageId", id)
	for c, err := range pagehttp.Each(s.out, s.Pages.Follow(s.out.Context, s.thread, "")) {
		if err != nil {
			s.send("error", "errorText", "the answer cannot be followed")
			break
		}
		s.page.Apply(c)
		if c.Restart != "" {
			s.restart(c.Restart)
		}
		if c.Delta != nil {
			s.delta(c.Delta)
			continue
		}
		s.showFields()
		answer := s.answer(id)
		if s.show(answer); !s.goesOn(answer) {
			break
		}
	}
}

// answer returns the message that the stream is about, or nil.
func (s *stream) answer(id string) *message {
	for _, m := range messagesOf(s.Chat, &s.page) {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// showFields sends the fields if they have changed.
func (s *stream) showFields() {
	if s.fields == nil || !maps.Equal(s.fields, s.page.Fields) {
		s.fields = s.page.Fields
		s.send("data-state", "data", s.fields, "transient", true)
	}
}

// delta sends a piece of an answer of the turn.
func (s *stream) delta(d *page.Delta) {
	at := slices.IndexFunc(s.page.Pending, func(i *page.Item) bool { return i.ID == d.Item })
	if at < 0 || s.page.Pending[at].Turn != s.turn {
		return
	}
	item := s.page.Pending[at]
	for _, p := range item.Parts {
		if p.ID == d.Part {
			s.showPart(partOf(item, p))
		}
	}
}

// restart takes back what was sent of an answer that begins anew.
func (s *stream) restart(item string) {
	if s.step != item {
		return
	}
	s.open = part{}
	maps.DeleteFunc(s.sent, func(_ string, p part) bool { return p.item == item && p.Type != "step-start" })
	s.send("reset-step")
}

// show sends what has changed of a message.
func (s *stream) show(m *message) {
	if m == nil {
		return
	}
	for _, p := range m.Parts {
		was := s.sent[p.key]
		if p.item == s.step && p.State == "done" && (!strings.HasPrefix(p.Text, was.Text) || was.State == "done" && p.Text != was.Text) {
			s.restart(p.item) // it was stored with another text, or more of one that is closed
		}
	}
	for _, p := range m.Parts {
		s.showPart(p)
	}
}

// showPart sends what has changed of a part, in its step.
func (s *stream) showPart(p part) {
	was, known := s.sent[p.key]
	ended := was.State == "done" || was.State == "input-available" && p.State == "input-streaming"
	if ended || known && was.State == p.State && was.Text == p.Text {
		return
	}
	if !known && p.item != s.step {
		s.close()
		s.endCalls()
		s.send("start-step")
		s.step, s.sent[p.item] = p.item, part{Type: "step-start", item: p.item}
	}
	s.sent[p.key] = p
	switch p.Type {
	case "step-start":
	case "text", "reasoning":
		s.showText(p, was)
	case "file":
		s.send("file", "url", p.URL, "mediaType", p.MediaType)
	case "source-url":
		s.send("source-url", "sourceId", p.SourceID, "url", p.URL, "title", p.Title)
	default:
		s.showCall(p, was)
	}
}

func (s *stream) showText(p, was part) {
	if s.open.key != p.key {
		s.close()
		s.open = p
		s.send(p.Type+"-start", "id", p.key)
	}
	if rest, ok := strings.CutPrefix(p.Text, was.Text); ok && rest != "" {
		s.send(p.Type+"-delta", "id", p.key, "delta", rest)
	}
	if p.State == "done" {
		s.close()
	}
}

// close ends the text or thought that is open.
func (s *stream) close() {
	if key := s.open.key; key != "" {
		s.send(s.open.Type+"-end", "id", key)
		ended := s.sent[key]
		ended.State = "done"
		s.sent[key], s.open = ended, part{}
	}
}

// endCalls says that the arguments of the calls of the last step are complete, for which
// a client looks in the step that is open. The next answer may begin before they are
// stored.
func (s *stream) endCalls() {
	for _, key := range slices.Sorted(maps.Keys(s.sent)) {
		p := s.sent[key]
		if p.item == s.step && p.State == "input-streaming" && json.Valid([]byte(p.Text)) {
			p.State, p.Input = "input-available", json.RawMessage(p.Text)
			s.showPart(p)
		}
	}
}

func (s *stream) showCall(p, of part) {
	was := of.State
	s.close()
	name := strings.TrimPrefix(p.Type, "tool-")
	if p.State == "input-streaming" {
		if was == "" {
			s.send("tool-input-start", "toolCallId", p.CallID, "toolName", name)
		}
		if rest, ok := strings.CutPrefix(p.Text, of.Text); ok && rest != "" {
			s.send("tool-input-delta", "toolCallId", p.CallID, "inputTextDelta", rest)
		}
		return
	}
	if was == "" || was == "input-streaming" {
		s.send("tool-input-available", "toolCallId", p.CallID, "toolName", name, "input", p.Input)
	}
	switch p.State {
	case "approval-requested":
		s.send("tool-approval-request", "approvalId", p.Approval.ID, "toolCallId", p.CallID, "reason", p.Approval.Request)
	case "output-available":
		s.send("tool-output-available", "toolCallId", p.CallID, "output", p.Output)
	case "output-error":
		s.send("tool-output-error", "toolCallId", p.CallID, "errorText", p.ErrorText)
	case "output-denied":
		if was == "" || was == "input-streaming" || was == "input-available" { // a client denies only what it was asked
			s.send("tool-approval-request", "approvalId", p.Approval.ID, "toolCallId", p.CallID)
		}
		s.send("tool-approval-response", "approvalId", p.Approval.ID, "approved", false, "reason", p.Approval.Reason)
		s.send("tool-output-denied", "toolCallId", p.CallID)
	}
}

// finishes are the reasons of clients for how an answer has ended.
var finishes = map[state.Stop]string{
	"": "stop", state.StopLength: "length", state.StopFiltered: "content-filter", state.StopRefused: "content-filter", state.StopInterrupted: "interrupted",
}

// goesOn reports whether the answer goes on. If not, it ends the stream.
func (s *stream) goesOn(m *message) bool {
	turn, meta := chat.TurnOf(&s.page, s.target), &metadata{}
	if m != nil {
		meta = m.Metadata
	}
	if chat.GoesOn(turn) {
		return true
	}
	s.close()
	switch turn.State {
	case page.TurnFailed:
		s.send("error", "errorText", turn.Reason)
		return false
	case page.TurnStopped, page.TurnDropped:
		s.send("message-metadata", "messageMetadata", meta)
		s.send("abort", "reason", turn.Reason)
		return false
	}
	reason := cmp.Or(finishes[meta.Stop], "other")
	if m != nil && slices.ContainsFunc(m.Parts, func(p part) bool { return p.State == "approval-requested" || p.State == "input-available" }) {
		reason = "tool-calls"
	}
	if s.step != "" {
		s.send("finish-step")
	}
	s.send("finish", "finishReason", reason, "messageMetadata", meta)
	s.out.Send("", []byte("[DONE]"))
	return false
}

// rawOf returns the JSON of a value that has one.
func rawOf(v any) json.RawMessage {
	data, _ := json.Marshal(v)
	return data
}
