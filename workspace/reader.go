package workspace

import (
	"maps"
	"slices"

	"github.com/agentstate/state"
)

// reader is the handle of an agent that a workspace is shown to.
type reader struct{ *state.State }

func (r reader) mayReadField(name string) bool { return inside.MayRead(r.State, name) }

// mayReadSaid reports whether the agent may read the conversation.
func (r reader) mayReadSaid() bool { return r.mayReadField(state.Messages.Name) }

// message returns what the agent may read of a message that waits or has failed,
// which is a part of the conversation.
func (r reader) message(m Message) Message {
	if !r.mayReadSaid() {
		return Message{ID: m.ID}
	}
	m.Fields = maps.Clone(m.Fields)
	maps.DeleteFunc(m.Fields, func(field string, _ state.JSON) bool { return !r.mayReadField(field) })
	return m
}

// mayRead reports whether the agent may read an event, and takes out of it what it
// may not. What followers share stays as it is.
func (r reader) mayRead(e *Event) bool {
	said := r.mayReadSaid()
	if e.Title, e.Bytes = "", 0; !said {
		e.Suspended, e.Reply, e.Outcome.Reply = 0, "", ""
	}
	e.Effects = slices.DeleteFunc(slices.Clone(e.Effects), func(x state.Effect) bool {
		return x.Part == state.EffectPartHistory || !r.mayReadField(x.Field)
	})
	switch e.Kind {
	case EventChange:
		return len(e.Effects) > 0
	case EventDelta, EventThought, EventInput, EventReply:
		return said
	}
	return true
}
