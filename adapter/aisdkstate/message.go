package aisdkstate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/pagehttp/chat"
	"github.com/agentstate/state/workspace/page"
)

// message is a UIMessage.
type message struct {
	ID       string    `json:"id"`
	Role     string    `json:"role"`
	Parts    []part    `json:"parts"`
	Metadata *metadata `json:"metadata,omitempty"`
}

// metadata is that of an answer, or of a question whose handling has failed.
type metadata struct {
	Failed string      `json:"failed,omitempty"` // why
	Agent  string      `json:"agent,omitempty"`  // that has answered last
	Stop   state.Stop  `json:"stop,omitempty"`   // if the model has not said all, or is not asked again
	Usage  state.Usage `json:"usage,omitzero"`   // of all answers of models
}

// part is a part of a UIMessage.
type part struct {
	Type string `json:"type"`
	key  string // tells the parts of a chat apart
	item string // of the item that it is of

	Text      string          `json:"text,omitempty"`
	State     string          `json:"state,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	URL       string          `json:"url,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	SourceID  string          `json:"sourceId,omitempty"`
	Title     string          `json:"title,omitempty"`
	CallID    string          `json:"toolCallId,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	ErrorText string          `json:"errorText,omitempty"`
	Approval  *approval       `json:"approval,omitempty"`
}

// approval is that of a tool part.
type approval struct {
	ID       string `json:"id"` // the key of the call
	Request  string `json:"requestReason,omitempty"`
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// messagesOf returns the messages of a page of a chat with a name.
func messagesOf(name string, p *page.Page) []*message {
	list, answers := []*message{}, map[string]*message{}
	for _, item := range slices.Concat(p.Items, p.Pending) {
		switch item.Role {
		case "user":
			m := &message{ID: item.ID, Role: "user", Parts: make([]part, 0, len(item.Parts))}
			for _, p := range item.Parts {
				m.Parts = append(m.Parts, partOf(item, p))
			}
			list = append(list, m)
		case "assistant":
			id := answerID(name, p.Thread, cmp.Or(item.Turn, item.ID))
			m := answers[id]
			if m == nil {
				m = &message{ID: id, Role: "assistant", Metadata: &metadata{}, Parts: make([]part, 0, len(item.Parts)+1)}
				list, answers[id] = append(list, m), m
			}
			m.add(item)
		}
	}
	for _, t := range p.Turns {
		switch m := answers[answerID(name, p.Thread, questionOf(t))]; {
		case m != nil && t.State == page.TurnEnded:
			m.Metadata.Stop = t.Stop
		case t.State == page.TurnFailed:
			if at := slices.IndexFunc(list, func(m *message) bool { return m.ID == questionOf(t) }); at >= 0 {
				list[at].Metadata = &metadata{Failed: chat.TurnOf(p, t.ID).Reason}
			}
		}
	}
	return list
}

// answerID returns the id of the message with the answers to a question. It ends with
// the branch.
func answerID(chat, thread, question string) string {
	return "answer-" + question + strings.TrimPrefix(thread, chat)
}

// asShown returns what a client has of a message, which may be old, in the words of
// the server.
func (m *message) asShown(client *message) *message {
	has := &message{ID: m.ID, Role: m.Role}
	for i, p := range m.Parts {
		if i >= len(client.Parts) || client.Parts[i].Type != p.Type {
			break
		}
		if p.CallID != "" {
			p.State = client.Parts[i].State
			if p.State == "approval-responded" {
				p.State = "approval-requested"
			}
		}
		has.Parts = append(has.Parts, p)
	}
	return has
}

// add adds an answer as a step.
func (m *message) add(item *page.Item) {
	m.Parts = append(m.Parts, part{Type: "step-start", key: item.ID, item: item.ID})
	for _, p := range item.Parts {
		m.Parts = append(m.Parts, partOf(item, p))
	}
	u, of := &m.Metadata.Usage, item.Usage
	u.Input, u.Output, u.CacheRead = u.Input+of.Input, u.Output+of.Output, u.CacheRead+of.CacheRead
	u.CacheWrite, u.Reasoning = u.CacheWrite+of.CacheWrite, u.Reasoning+of.Reasoning
	if item.Agent != "" {
		m.Metadata.Agent = item.Agent
	}
	if m.Metadata.Stop = item.Stop; item.Stop == state.StopEnd || item.Stop == state.StopCalls {
		m.Metadata.Stop = ""
	}
}

// keyOf tells the parts of a chat apart. That of a call is its id for a client.
func keyOf(item *page.Item, p page.Part) string { return item.ID + "." + p.ID }

// partOf translates a part.
func partOf(item *page.Item, p page.Part) part {
	out := part{key: keyOf(item, p), item: item.ID, Text: p.Text}
	if out.State = "done"; item.Open {
		out.State = "streaming"
	}
	switch p.Kind {
	case page.Text:
		out.Type = "text"
	case page.Thought:
		out.Type = "reasoning"
	case page.MediaPart:
		out.Type, out.MediaType, out.URL, out.Filename, out.State = "file", p.Media.Type, p.Media.URL, p.Media.Name, ""
	case page.CitationPart:
		out.Type, out.SourceID, out.URL, out.Title, out.State = "source-url", out.key, p.Citation.URL, p.Citation.Title, ""
	case page.CallPart:
		out.addCall(p)
	}
	return out
}

// The reasons of calls that were not made.
const (
	failedText  = "The call has failed."
	expiredText = "Nobody has decided in time."
)

func (p *part) addCall(of page.Part) {
	c := of.Call
	p.Type, p.CallID, p.Input, p.Text = "tool-"+c.Name, p.key, json.RawMessage(c.Input), ""
	decided := func(approved bool, reason string) *approval {
		return &approval{ID: c.Key, Approved: &approved, Reason: reason}
	}
	if c.By != "" {
		p.Approval = decided(true, "")
	}
	switch c.State {
	case page.CallWaiting:
		p.State, p.Approval = "approval-requested", &approval{ID: c.Key, Request: c.Reason}
	case page.CallDone:
		p.State, p.Output = "output-available", json.RawMessage(c.Output)
	case page.CallFailed:
		p.State, p.ErrorText = "output-error", cmp.Or(c.Output.Text(), failedText)
	case page.CallRefused:
		p.State, p.Approval = "output-denied", decided(false, c.Reason)
	case page.CallExpired:
		p.State, p.Approval = "output-denied", decided(false, expiredText)
	default:
		if p.State = "input-available"; c.Input == "" {
			p.State, p.Text = "input-streaming", of.Text
		}
	}
}
