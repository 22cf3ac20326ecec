package genkitstate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core/x/session"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
)

// The tests of this file show what Genkit v1.4.0 does alone, and what it does
// with the adapter.

const rounds = 100

type cart struct{ Items []string }

type item struct {
	Name string `json:"name"`
}

// outcome is what a round leaves: the cart, and the items in the order in which
// the conversation has the results.
type outcome struct{ Cart, Results []string }

// shop asks a model that puts an apple and a pear into the cart with two calls
// of one message, and returns the order of the results that it is sent.
func shop(ctx context.Context, t *testing.T, opts ...ai.GenerateOption) (results []string) {
	t.Helper()
	g := genkit.Init(ctx)
	model := define(g, func(_ context.Context, req *ai.ModelRequest) (*ai.Message, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role != ai.RoleTool {
			return ai.NewModelMessage(request("add", "c1", `{"name":"apple"}`), request("add", "c2", `{"name":"pear"}`)), nil
		}
		for _, p := range last.Content {
			results = append(results, p.ToolResponse.Output.(string))
		}
		return ai.NewModelTextMessage("Done."), nil
	})
	if _, err := genkit.Generate(ctx, g, append(opts, ai.WithModel(model), ai.WithPrompt("An apple and a pear."))...); err != nil {
		t.Fatal(err)
	}
	return results
}

// request returns a call.
func request(name, ref, input string) *ai.Part {
	var in any
	must(state.JSON(input).Decode(&in))
	return ai.NewToolRequestPart(&ai.ToolRequest{Name: name, Ref: ref, Input: in})
}

// meet returns a function that returns when both calls have called it.
func meet() func() {
	met := make(chan struct{})
	return func() {
		select {
		case met <- struct{}{}:
		case <-met:
		}
	}
}

// The tools of Genkit's own sample of sessions read the state and update it.
// Two calls of one message lose an item in every round if they meet in between,
// as calls do that send a request there. Their results are in the order of time.
func TestGenkitLosesUpdates(t *testing.T) {
	ordered := 0
	lost := adaptertest.Rounds(rounds, 2, func() int {
		s, err := session.New(t.Context(), session.WithInitialState(cart{}))
		must(err)
		together := meet()
		add := ai.NewTool("add", "Adds an item.", func(ctx *ai.ToolContext, in item) (string, error) {
			s := session.FromContext[cart](ctx)
			c := s.State()
			together()
			c.Items = append(c.Items, in.Name)
			return in.Name, s.UpdateState(ctx, c)
		})
		results := shop(session.NewContext(t.Context(), s), t, ai.WithTools(add))
		if results[0] == "apple" {
			ordered++
		}
		return len(s.State().Items)
	})
	t.Logf("Genkit lost an item in %d of %d rounds; results were in the order of the calls in %d", lost, rounds, ordered)
	if lost != rounds {
		t.Error("Genkit has changed: say so in the README")
	}
}

func TestNoUpdateIsLost(t *testing.T) {
	items := &state.Field[[]string]{Name: "items"}
	want := outcome{[]string{"apple", "pear"}, []string{"apple", "pear"}}
	lost := adaptertest.Rounds(rounds, want, func() outcome {
		st := state.New(state.MustSchema(items))
		pear := make(chan struct{})
		tools := []*tool.Tool{tool.Must(tool.New("add", "Adds an item.", func(_ context.Context, in item) (string, error) {
			if in.Name == "pear" {
				close(pear)
			}
			<-pear // the first call is the slower one
			return in.Name, nil
		}, tool.ToFunc(items, "", func(name string) ([]string, error) { return []string{name}, nil })))}
		results := shop(state.NewContext(t.Context(), st), t, ai.WithTools(genkitstate.Tools(tools...)...),
			ai.WithMiddleware(genkitstate.Middleware(tools, nil)))
		return outcome{items.GetOr(st, nil), results}
	})
	if lost != 0 {
		t.Errorf("%d of %d rounds had another outcome", lost, rounds)
	}
}

// twoRequests lets two requests load a session, and each save what it makes of
// it.
func twoRequests(t *testing.T, open func() session.Store[cart]) (errs [2]error, got []string) {
	t.Helper()
	_, err := session.New(t.Context(), session.WithID[cart]("ann"), session.WithStore(open()))
	must(err)
	var requests [2]*session.Session[cart]
	for i := range requests {
		requests[i], err = session.Load(t.Context(), open(), "ann")
		must(err)
	}
	for i, name := range []string{"apple", "pear"} {
		c := requests[i].State()
		c.Items = append(c.Items, name)
		errs[i] = requests[i].UpdateState(t.Context(), c)
	}
	s, err := session.Load(t.Context(), open(), "ann")
	must(err)
	return errs, s.State().Items
}

func TestGenkitLosesRequests(t *testing.T) {
	shared := session.NewInMemoryStore[cart]()
	errs, got := twoRequests(t, func() session.Store[cart] { return shared })
	if errors.Join(errs[:]...) != nil || !slices.Equal(got, []string{"pear"}) {
		t.Errorf("Genkit has changed: errors %v, items %q", errs, got)
	}
}

func TestStaleSaveIsRefused(t *testing.T) {
	forEachStore(t, func(t *testing.T, db store.Store) {
		errs, got := twoRequests(t, func() session.Store[cart] { return genkitstate.NewStore[cart](db) })
		if errs[0] != nil || !errors.Is(errs[1], store.ErrConflict) || !slices.Equal(got, []string{"apple"}) {
			t.Errorf("errors %v, items %q", errs, got)
		}
	})
}

func forEachStore(t *testing.T, test func(t *testing.T, db store.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, store.NewMemory()) })
	t.Run("SQLite", func(t *testing.T) {
		db, err := sqlitestore.Open(t.Context(), t.TempDir()+"/sessions.db", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		test(t, db)
	})
}
