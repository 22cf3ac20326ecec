package genkitstate_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core/x/session"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
)

// Templates see what the agent may read at that moment, and no secret.
func TestSession(t *testing.T) {
	client := &state.Field[chan int]{Name: "client", Read: state.Public, Write: state.Public, Ephemeral: true, NoCopy: true}
	token := &state.Field[string]{Name: "token", Read: state.Public, Secret: true}
	hidden := &state.Field[string]{Name: "hidden"}
	trip := &state.Field[map[string]any]{Name: "trip", Read: state.Public}
	note := &state.Field[string]{Name: "note", Read: state.Public}
	unset := &state.Field[int]{Name: "unset", Read: state.Public}
	st := state.New(state.MustSchema(client, token, hidden, trip, note, unset, state.Team{"clerk": nil}))
	must(client.Set(st, make(chan int)))
	must(token.Set(st, "tok-123456"))
	must(hidden.Set(st, "hidden"))
	must(trip.Set(st, map[string]any{"to": "Rome"}))
	must(state.Messages.Set(st, []state.Message{state.UserText("Hi.")}))
	ctx := genkitstate.Session(t.Context(), st.As("clerk"))

	must(note.Set(st, "uses tok-123456")) // after the session was made
	want := map[string]any{
		"token": "[SECRET]", "trip": map[string]any{"to": "Rome"}, "note": "uses [SECRET]",
	}
	if got := session.StateFromContext(ctx); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	g := genkit.Init(t.Context())
	prompt := genkit.DefinePrompt(g, "p",
		ai.WithSystem("{{@state.trip.to}}|{{@state.token}}|{{@state.note}}|{{@state.hidden}}|{{@state.unset}}|"))
	render := func(ctx context.Context) string {
		rendered, err := prompt.Render(ctx, nil)
		must(err)
		return rendered.Messages[0].Text()
	}
	if got := render(ctx); got != "Rome|[SECRET]|uses [SECRET]|||" {
		t.Errorf("the prompt is %s", got)
	}
	must(trip.Set(st, map[string]any{"to": "Oslo"}))
	if got := render(ctx); got != "Oslo|[SECRET]|uses [SECRET]|||" {
		t.Errorf("the prompt is %s", got)
	}
}

// Genkit v1.4.0 renders each message of ai.WithMessages as a template in
// Execute, and takes no middleware from DefinePrompt. The README says so.
func TestGenkitRendersMessages(t *testing.T) {
	b := newBench(t, ai.NewModelTextMessage("Hi."))
	must(approved.Set(b.host, true))
	prompt := genkit.DefinePrompt(b.g, "p", ai.WithModel(b.model), ai.WithMiddleware(genkitstate.Middleware(tools, nil)))
	_, err := prompt.Execute(genkitstate.Session(t.Context(), b.st), ai.WithMessages(ai.NewUserTextMessage("{{@state.approved}}")))
	if err != nil || b.sent[0].Messages[0].Text() != "true" {
		t.Errorf("Genkit has changed: %v, %v", err, b.sent)
	}
}
