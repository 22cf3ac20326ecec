package aguistate

import (
	"encoding/json"

	"github.com/agentstate/state/internal/jsontext"
)

// event is an event of any type. Members that its type does not have are left
// out: a client refuses null.
type event struct {
	Type            string          `json:"type"`
	ThreadID        string          `json:"threadId,omitempty"`
	RunID           string          `json:"runId,omitempty"`
	ProtocolVersion string          `json:"protocolVersion,omitempty"`
	MessageID       string          `json:"messageId,omitempty"`
	Role            string          `json:"role,omitempty"`
	Name            string          `json:"name,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	ToolCallName    string          `json:"toolCallName,omitempty"`
	ParentMessageID string          `json:"parentMessageId,omitempty"`
	Delta           any             `json:"delta,omitempty"`   // a string, or operations of a patch
	Content         any             `json:"content,omitempty"` // a string, which may be empty
	Snapshot        json.RawMessage `json:"snapshot,omitempty"`
	Outcome         *outcome        `json:"outcome,omitempty"`
	Message         string          `json:"message,omitempty"`
	Code            string          `json:"code,omitempty"`
}

// operation is one of a patch, as RFC 6902 has them.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// outcome says how a run has ended that has not failed.
type outcome struct {
	Type       string      `json:"type"`
	Interrupts []interrupt `json:"interrupts,omitempty"`
	Pending    []string    `json:"pendingToolCallIds,omitempty"`
}

// interrupt is a call that waits for a person.
type interrupt struct {
	ID             string          `json:"id"` // the key of the call
	Reason         string          `json:"reason"`
	Message        string          `json:"message,omitempty"`
	ToolCallID     string          `json:"toolCallId"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	ExpiresAt      string          `json:"expiresAt,omitempty"`
	Metadata       map[string]any  `json:"metadata,omitempty"`
}

func (s *stream) send(events ...event) {
	for _, e := range events {
		s.out.SendJSON("", e)
	}
}

// sendMessages sends a snapshot of messages.
func (s *stream) sendMessages(list []*message) {
	size := 64
	for _, m := range list {
		size += len(m.ID) + len(m.Content.text) + 64
	}
	data := append(make([]byte, 0, size), `{"type":"MESSAGES_SNAPSHOT","messages":[`...)
	for i, m := range list {
		if m.Role == roleCall {
			continue
		}
		if i > 0 {
			data = append(data, ',')
		}
		var calls []toolCall
		for _, c := range list[i+1:] {
			if c.Role != roleCall {
				break
			}
			calls = append(calls, toolCall{c.ID, "function", functionCall{c.Name, c.Content.text}})
		}
		data = m.appendJSON(data, calls)
	}
	s.out.Send("", append(data, "]}"...))
}

// appendJSON appends the JSON of a message. encoding/json takes several times as long,
// which is most of the time until the page of a long thread is there.
func (m *message) appendJSON(data []byte, calls []toolCall) []byte {
	add := func(name, text string) {
		data = jsontext.AppendQuote(jsontext.AppendName(data, name), text)
	}
	data = append(data, '{')
	add("id", m.ID)
	add("role", m.Role)
	if m.Name != "" {
		add("name", m.Name)
	}
	if m.Content.parts == nil {
		add("content", m.Content.text)
	} else {
		data = jsontext.AppendMember(data, "content", encode(m.Content.shown()))
	}
	if calls != nil {
		data = jsontext.AppendMember(data, "toolCalls", encode(calls))
	}
	if m.ToolCallID != "" {
		add("toolCallId", m.ToolCallID)
	}
	return append(data, '}')
}

// encode returns the JSON of a value whose type has one.
func encode(v any) json.RawMessage {
	data, _ := jsontext.Marshal(v)
	return data
}
