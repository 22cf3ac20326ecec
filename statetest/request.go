package statetest

import (
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// Request is what an agent asked a [Model]. Its messages and settings do not
// change.
type Request struct {
	// Agent is the agent that asks, "" if it is not known. Over HTTP it is that
	// of the State in the context of the request.
	Agent string

	// Messages is the conversation with the system prompt.
	Messages []state.Message

	// Settings is an object of the other members of the body, without the tools.
	// It is "" from [Model.Next].
	Settings state.JSON

	Format *provider.Format
}

// asked is a request with what only the Model needs of it.
type asked struct {
	Request
	overHTTP bool
	tools    []provider.Tool
	body     string // as it was sent over HTTP
}

// said returns all that the request says to the model.
func (a asked) said() string {
	if a.overHTTP {
		return a.body
	}
	var b strings.Builder
	for i, m := range a.Messages {
		if m == nil {
			continue // it is refused
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(string(m.Raw()))
	}
	return b.String()
}

// equal reports whether two requests ask the same.
func (r Request) equal(other Request) bool {
	return r.Agent == other.Agent && r.Format == other.Format && sameJSON(r.Settings, other.Settings) &&
		slices.EqualFunc(r.Messages, other.Messages, func(a, b state.Message) bool { return a.Equal(b) })
}

func sameJSON(a, b state.JSON) bool { return a == b || a.Equal(b) }

// reads reports whether a message of the request has the text: in a string, or
// spelled as in its JSON.
func (r Request) reads(text string) bool {
	return slices.ContainsFunc(r.Messages, func(m state.Message) bool {
		raw := []byte(m.Raw())
		return strings.Contains(string(raw), text) || stringHas(raw, text)
	})
}

// stringHas reports whether a string in a JSON value contains the text.
func stringHas(value []byte, text string) bool {
	switch jsontext.Kind(value) {
	case "string":
		return strings.Contains(jsontext.Unquote(value), text)
	case "array":
		elements, _ := jsontext.Elements(value) // checked with the message
		return slices.ContainsFunc(elements, func(element []byte) bool { return stringHas(element, text) })
	case "object":
		members, _ := jsontext.Members(value) // checked with the message
		return slices.ContainsFunc(members, func(m jsontext.Member) bool { return stringHas(m.Value, text) })
	}
	return false
}
