package aguistate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// input is what a client asks for: a RunAgentInput. What the server does not take
// from a client is not read.
type input struct {
	ThreadID        string       `json:"threadId"`
	RunID           string       `json:"runId"`
	ProtocolVersion string       `json:"protocolVersion"`
	State           object       `json:"state"`
	Messages        []*message   `json:"messages"`
	Tools           []clientTool `json:"tools"`
	Resume          []resumption `json:"resume"`
	ForwardedProps  object       `json:"forwardedProps"`
}

// object is a JSON object, or nil for something else.
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
	ids, seen := []string{in.ThreadID, in.RunID}, make(map[string]bool, len(in.Messages))
	for _, m := range in.Messages {
		switch {
		case m == nil || m.ID == "":
			return nil, invalid("a message has no id")
		case seen[m.ID]:
			return nil, invalid("two messages have the id %.*q", maxID, m.ID)
		}
		ids, seen[m.ID] = append(ids, m.ID), true
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

// asks reports whether the client asks for something that the protocol has no word
// for. "follow" tells of all runs, as long as the request is open: what is built on
// the clients of the protocol does not ask for it, as it takes a run for under way
// until its request ends. "stop" ends the run that is under way, and "retry" handles
// the last message again if that has failed.
func (in *input) asks(what string) bool { return string(in.ForwardedProps[what]) == "true" }

// ErrInvalid is the error of a request that no client of the protocol sends.
var ErrInvalid = errors.New("aguistate: invalid request")

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
