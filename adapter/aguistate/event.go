package aguistate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
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
	StepName        string          `json:"stepName,omitempty"`
	Delta           any             `json:"delta,omitempty"`   // a string, or operations of a patch
	Content         any             `json:"content,omitempty"` // a string, which may be empty
	Snapshot        json.RawMessage `json:"snapshot,omitempty"`
	Messages        any             `json:"messages,omitempty"` // a list, which may be empty
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
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message,omitempty"`
	ToolCallID     string          `json:"toolCallId"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	ExpiresAt      string          `json:"expiresAt,omitempty"`
	Metadata       map[string]any  `json:"metadata,omitempty"`
}

// writer sends events to one client. After an error, it sends nothing.
type writer struct {
	out     http.ResponseWriter
	control *http.ResponseController
	batch   bytes.Buffer // of what was sent since the last flush
	err     error
}

func newWriter(w http.ResponseWriter) *writer {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	return &writer{out: w, control: http.NewResponseController(w)}
}

func (w *writer) send(e event) {
	w.batch.WriteString("data: ")
	w.batch.Write(encode(e))
	w.batch.WriteString("\n\n")
}

// flush passes on what was sent. A client that does not take it in time is given
// up.
func (w *writer) flush() error {
	if w.err == nil && w.batch.Len() > 0 {
		_ = w.control.SetWriteDeadline(time.Now().Add(patience)) // not each server has one
		if _, w.err = w.out.Write(w.batch.Bytes()); w.err == nil {
			w.err = w.control.Flush()
		}
	}
	if w.batch.Reset(); w.batch.Cap() > maxBatch {
		w.batch = bytes.Buffer{}
	}
	return w.err
}

// alive tells proxies and the server that the stream is in use. It is no event.
func (w *writer) alive() error {
	w.batch.WriteString(":\n\n")
	return w.flush()
}

const (
	patience     = 10 * time.Second // for a client that takes nothing
	bodyPatience = 30 * time.Second // for the body of a request
	maxBatch     = 64 << 10         // what a stream keeps of its buffer
)
