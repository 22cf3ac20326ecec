package statetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
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

func sameJSON(a, b state.JSON) bool { return a == b || a.Equal(b) }

// reads reports whether a message of the request has the text: in a string, or
// spelled as in its JSON.
func (r Request) reads(text string) bool {
	return slices.ContainsFunc(r.Messages, func(m state.Message) bool {
		return strings.Contains(string(m.Raw()), text) || strings.Contains(fmt.Sprint(spelledTree(m.Raw())), text)
	})
}
