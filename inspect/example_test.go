package inspect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

var (
	exampleOrder  = &state.Field[string]{Name: "order_id", Owner: "support", Read: state.Public}
	exampleCard   = &state.Field[string]{Name: "card", Owner: "support", Secret: true}
	exampleSchema = state.MustSchema(state.Team{"support": nil}, exampleOrder, exampleCard)
)

// mount serves the pages below /debug/state/.
func mount(mux *http.ServeMux, m *workspace.Manager) (*inspect.Handler, error) {
	h, err := inspect.New(m, &inspect.Options{Title: "desk"})
	if err != nil {
		return nil, err
	}
	mux.Handle("/debug/state/", http.StripPrefix("/debug/state", h))
	return h, nil
}

// For the staff, who have logged in: they may change what they see.
func mountForStaff(mux *http.ServeMux, m *workspace.Manager, loggedIn func(http.Handler) http.Handler) (*inspect.Handler, error) {
	h, err := inspect.New(m, &inspect.Options{
		Hosts: []string{"desk.example.com"},
		Authorize: inspect.Trusted(inspect.Access{
			Read: true, Write: true, Actor: "staff",
		}),
	})
	if err != nil {
		return nil, err
	}
	mux.Handle("/admin/state/", http.StripPrefix("/admin/state", loggedIn(h)))
	return h, nil
}

func Example() {
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Schema: exampleSchema})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	err = m.Update(ctx, "ann", func(w *workspace.Workspace) error {
		if err := exampleOrder.Set(w.State(), "#W1"); err != nil {
			return err
		}
		return exampleCard.Set(w.State(), "4242-4242-4242")
	})
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	_, err = mount(mux, m)
	if err != nil {
		panic(err)
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()

	_, err = mountForStaff(mux, m, func(next http.Handler) http.Handler { return next })
	if err != nil {
		panic(err)
	}

	r := httptest.NewRequest("GET", "http://localhost/debug/state/workspace/state?user=ann", nil)
	r.RemoteAddr = "127.0.0.1:40000"
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "#W1"), strings.Contains(w.Body.String(), "4242"))
	// Output: 200 true false
}
