package genkitstate_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core/x/session"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/store"
)

// What Genkit's tests demand of its store in memory, the only one in v1.4.0. It
// has no suite for others. A save that creates or replaces what was not seen
// is the difference.
func TestStore(t *testing.T) {
	type nested struct {
		cart
		Prices map[string]float64
		Last   *cart
	}
	forEachStore(t, func(t *testing.T, db store.Store) {
		ctx := t.Context()
		s := genkitstate.NewStore[nested](db)
		if data, err := s.Get(ctx, "none"); data != nil || err != nil {
			t.Errorf("a session that does not exist: %v, %v", data, err)
		}
		var missing *session.NotFoundError
		if _, err := session.Load(ctx, s, "none"); !errors.As(err, &missing) {
			t.Errorf("Load of a session that does not exist: %v", err)
		}

		want := nested{cart{[]string{"apple"}}, map[string]float64{"apple": 0.5}, &cart{[]string{"<pear>"}}}
		created, err := session.New(ctx, session.WithID[nested]("ann"), session.WithStore(s), session.WithInitialState(want))
		if err != nil {
			t.Fatal(err)
		}
		require := func(want nested) {
			t.Helper()
			data, err := genkitstate.NewStore[nested](db).Get(ctx, "ann")
			if err != nil || data.ID != "ann" || !reflect.DeepEqual(data.State, want) {
				t.Errorf("got %v, %v, want %v", data, err, want)
			}
		}
		require(want)
		copied, err := s.Get(ctx, "ann")
		must(err)
		copied.State.Items[0] = "changed"
		require(want)

		for i := range 3 { // one request may save again and again
			want.Items = append(want.Items, fmt.Sprint(i))
			if err := created.UpdateState(ctx, want); err != nil {
				t.Fatal(err)
			}
			require(want)
		}
		_, err = session.New(ctx, session.WithID[nested]("ann"), session.WithStore(genkitstate.NewStore[nested](db)))
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("a session that exists was created: %v", err)
		}
		for _, id := range []string{strings.Repeat("x", store.MaxKey), "\xff"} {
			if _, err := s.Get(ctx, id); !errors.Is(err, store.ErrInvalidKey) {
				t.Errorf("Get: %v", err)
			}
			if err := s.Save(ctx, id, &session.Data[nested]{}); !errors.Is(err, store.ErrInvalidKey) {
				t.Errorf("Save: %v", err)
			}
		}
	})
}

// A session that was deleted, or is damaged, is not saved over.
func TestStoreChangedBesides(t *testing.T) {
	forEachStore(t, func(t *testing.T, db store.Store) {
		ctx := t.Context()
		s := genkitstate.NewStore[cart](db)
		must(s.Save(ctx, "ann", &session.Data[cart]{ID: "ann"}))
		must(store.Delete(ctx, db, "genkit:session:ann", store.Always))
		if err := s.Save(ctx, "ann", &session.Data[cart]{ID: "ann"}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a deleted session was saved: %v", err)
		}
		if data, err := s.Get(ctx, "ann"); data != nil || err != nil {
			t.Errorf("a deleted session: %v, %v", data, err)
		}
		must(s.Save(ctx, "ann", &session.Data[cart]{ID: "ann"})) // it is known now that there is none

		_, err := store.Put(ctx, db, "genkit:session:ann", []byte("{"), store.Always)
		must(err)
		if _, err := s.Get(ctx, "ann"); err == nil {
			t.Error("a damaged session was loaded")
		}
		if err := s.Save(ctx, "ann", &session.Data[cart]{ID: "ann"}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a damaged session was saved over: %v", err)
		}
	})
}

// One store may be used by many goroutines: each save counts.
func TestStoreIsConcurrent(t *testing.T) {
	forEachStore(t, func(t *testing.T, db store.Store) {
		s := genkitstate.NewStore[int](db)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for k := range 10 {
					if err := s.Save(t.Context(), "shared", &session.Data[int]{ID: "shared", State: k}); err != nil {
						t.Error(err)
					}
					own := fmt.Sprint(i)
					if err := s.Save(t.Context(), own, &session.Data[int]{ID: own, State: k}); err != nil {
						t.Error(err)
					}
					if data, err := s.Get(t.Context(), own); err != nil || data.State != k {
						t.Errorf("got %v, %v, want %d", data, err, k)
					}
				}
			})
		}
		wg.Wait()
	})
}

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
