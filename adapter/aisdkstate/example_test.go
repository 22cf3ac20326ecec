package aisdkstate_test

import (
	"errors"
	"net/http"

	"github.com/agentstate/state/adapter/aisdkstate"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
)

// session says who asks, by the cookie of a program, and the agent with whose rights
// the page reads and decides.
func session(r *http.Request, _ string) (statehttp.Who, error) {
	c, err := r.Cookie("user") // stands for a session
	if err != nil || c.Value == "" {
		return statehttp.Who{}, errors.New("no session")
	}
	return statehttp.Who{User: c.Value, Agent: "ui"}, nil
}

// A program mounts the Handler where its pages look for it, and that of package statehttp
// for what other tabs do.
func Example() {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	serve := func(m *workspace.Manager) {
		h, err := aisdkstate.New(m, &aisdkstate.Options{Who: session})
		check(err)
		http.Handle("/api/chat/", http.StripPrefix("/api/chat", h))
		pages, err := statehttp.New(m, &statehttp.Options{Who: session})
		check(err)
		http.Handle("/api/", http.StripPrefix("/api", pages))
	}
	_ = serve
}
