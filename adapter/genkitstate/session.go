package genkitstate

import (
	"context"

	"github.com/firebase/genkit/go/core/x/session"

	"github.com/agentstate/state"
)

// Session returns a context with a session that shows the fields that st may
// read to the templates of prompts, as {{@state.name}}. Each rendering shows the
// values of that moment. Secrets are masked, also where other fields repeat
// them. The conversation and references to Go values are left out.
//
// The session is for reading: what its UpdateState is given is kept in the
// session and not in the state.
func Session(ctx context.Context, st *state.State) context.Context {
	s, _ := session.New(ctx, session.WithInitialState[any](fields{st})) // only a store can fail
	return session.NewContext(ctx, s)
}

// fields is the state of a session. A session copies its state by way of JSON
// whenever it is asked for it.
type fields struct{ st *state.State }

func (f fields) MarshalJSON() ([]byte, error) {
	st := f.st.Snapshot() // one moment
	values := map[string]any{}
	for _, info := range st.Fields() {
		switch {
		case !info.Set || info.Name == state.Messages.Name:
		case info.Secret:
			values[info.Name] = state.Masked{}
		default:
			if value, err := state.GetAs[state.JSON](st, info.Name); err == nil { // not of a reference
				values[info.Name] = value
			}
		}
	}
	text, err := state.JSONOf(values)
	return []byte(st.Redact(string(text))), err
}
