package main

import (
	"embed"
	"io/fs"
	"net/http"

	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
)

//go:embed page
var page embed.FS

// views are the two pages of the desk, and the agents with whose rights they read,
// write and decide: "/" is that of the customer, "/staff/" that of an employee, who
// looks at the chats of the customer.
var views = map[string]string{"/": "customer", "/staff/": "employee"}

// who returns whose chats a request is about. This is the place for the sign-in of a
// program, which also says who is an employee: here, whoever opens a page is trusted.
func who(agent string) statehttp.Who { return statehttp.Who{User: "ann", Agent: agent} }

// may lets customers chat, and employees decide. What fields they may edit, the fields
// say; and that customers may not decide about a refund, the tool says as well.
func may(_ *http.Request, who statehttp.Who, action statehttp.Action, _ string) error {
	isEmployee := who.Agent == "employee"
	switch action {
	case statehttp.ActionRead, statehttp.ActionEdit:
		return nil
	case statehttp.ActionDecide:
		if isEmployee {
			return nil
		}
	case statehttp.ActionSend, statehttp.ActionStop, statehttp.ActionRetry, statehttp.ActionDiscard, statehttp.ActionRename, statehttp.ActionNote, statehttp.ActionUpload:
		if !isEmployee {
			return nil
		}
	}
	return statehttp.ErrForbidden
}

// routes serves the pages, and beside each of them what it asks for.
func routes(m *workspace.Manager) (http.Handler, error) {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for at, agent := range views {
		api, err := statehttp.New(m, &statehttp.Options{
			Who:    func(*http.Request, string) (statehttp.Who, error) { return who(agent), nil },
			May:    may,
			Titles: true,
			Files:  at + "api/files/",
		})
		if err != nil {
			return nil, err
		}
		mux.Handle(at+"api/", http.StripPrefix(at+"api", api))
		mux.Handle(at, http.StripPrefix(at, http.FileServerFS(files)))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	}), nil
}
