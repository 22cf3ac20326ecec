package aguistate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// input is what a client asks for: a RunAgentInput. What the server does not take
// from a client is not read.
type input struct {
	ThreadID        string       `json:"threadId"`
	RunID           string       `json:"runId"`
	ProtocolVersion string       `json:"protocolVersion"`
	State           object       `json:"state"`
	Messages        []message    `json:"messages"`
	Tools           []clientTool `json:"tools"`
	Resume          []resumption `json:"resume"`
	ForwardedProps  object       `json:"forwardedProps"`
}

// object is the state of a client, or nil if it is no object.
type object map[string]json.RawMessage

func (o *object) UnmarshalJSON(data []byte) error {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(data, &members) == nil {
		*o = members
	}
	return nil
}

// clientTool is a tool that the page has.
type clientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON Schema
}

// resumption is the answer to an interrupt.
type resumption struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload"`
}

const (
	maxID    = 256  // bytes of the id of a message, a thread and a run
	maxAdded = 1000 // messages that a client has, and its thread has not
)

// readInput reads the body of a request.
func readInput(data []byte) (*input, error) {
	in := &input{}
	if err := json.Unmarshal(data, in); err != nil {
		return nil, invalid("the body is no RunAgentInput: %v", err)
	}
	if in.RunID == "" {
		return nil, invalid("the body is no RunAgentInput: it has no runId")
	}
	in.Messages = slices.DeleteFunc(in.Messages, func(m message) bool {
		return m.Role == "reasoning" || m.Role == "activity" // are the client's own
	})
	ids, seen := []string{in.ThreadID, in.RunID}, map[string]bool{}
	for i := range in.Messages {
		m := &in.Messages[i]
		if seen[m.ID] {
			return nil, invalid("two messages have the id %.*q", maxID, m.ID)
		}
		ids, seen[m.ID] = append(ids, m.ID), true
		if err := m.normalize(); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		if len(id) > maxID {
			return nil, invalid("an id is longer than %d bytes", maxID)
		}
	}
	return in, nil
}

// isNew reports whether the client knows version 1 of the protocol.
func (in *input) isNew() bool {
	return in.ProtocolVersion != "" && !strings.HasPrefix(in.ProtocolVersion, "0.")
}

// wantsAnswer reports whether a client without a new message of the user waits for
// the end of a run: it has decided, or its tools have answered.
func (in *input) wantsAnswer() bool {
	return len(in.Resume) > 0 || len(in.Messages) > 0 && in.Messages[len(in.Messages)-1].Role == "tool"
}

// wantsFollow reports whether a client without a new message asks to be told of all
// runs, as long as its request is open. What is built on the clients of the protocol
// does not: it takes a run for under way until its request ends.
func (in *input) wantsFollow() bool { return string(in.ForwardedProps["follow"]) == "true" }

// normalize gives a message of a client the form that those of views have.
func (m *message) normalize() error {
	if m.ID == "" {
		return invalid("a message has no id")
	}
	if m.Role == "user" && m.hasParts() {
		said, err := m.userMessage()
		if err != nil {
			return err
		}
		m.Content, _ = contentOf(said.(state.TextMessage), func(s string) string { return s })
	} else if len(m.Content) > 0 && !m.hasParts() {
		m.Content = quote(m.text())
	}
	return nil
}

// added returns the messages of the user at the end that a view does not know. All
// others are the server's, or were sent before.
func (in *input) added(v *workspace.View, c *conversation) []message {
	n := len(in.Messages)
	for n > 0 {
		m := &in.Messages[n-1]
		isInstruction := m.Role == "system" || m.Role == "developer"
		if !isInstruction && (m.Role != "user" || c.has(m.ID) || ended(v, m.ID)) {
			break
		}
		n--
	}
	return slices.DeleteFunc(slices.Clone(in.Messages[n:]), func(m message) bool { return m.Role != "user" })
}

// ended reports whether a view knows that the handling of a message has ended.
func ended(v *workspace.View, id string) bool {
	return slices.ContainsFunc(v.Ended, func(e workspace.EndedMessage) bool { return e.ID == id }) ||
		slices.ContainsFunc(v.DeadLetters, func(d workspace.DeadLetter) bool { return d.Message.ID == id })
}

// ErrInvalid is the error of a request that no client of the protocol sends.
var ErrInvalid = errors.New("aguistate: invalid request")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
