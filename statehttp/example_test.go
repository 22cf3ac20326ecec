package statehttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A page sends a message, and reads the thread. The program says who asks.
func Example() {
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Run: func(_ context.Context, run *workspace.Run) error {
			return state.Messages.Set(run.State(), []state.Message{state.AssistantText("Hello, Ann!")})
		},
	})
	if err != nil {
		panic(err)
	}
	h, err := statehttp.New(m, &statehttp.Options{
		Who: func(*http.Request, string) (statehttp.Who, error) { // a program looks at the session
			return statehttp.Who{User: "ann", Agent: "ui"}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	srv := httptest.NewServer(http.StripPrefix("/api", h))
	defer srv.Close()
	resp, err := http.Post(srv.URL+"/api/threads/1/messages", "application/json", strings.NewReader(`{"id":"m1","text":"Hello!"}`))
	if err != nil {
		panic(err)
	}
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body), m.Wait(ctx))
	resp, err = http.Get(srv.URL + "/api/threads/1")
	if err != nil {
		panic(err)
	}
	body, _ = io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, strings.Contains(string(body), "Hello, Ann!"), m.Close())
	// Output:
	// 200 {"thread":"1","id":"m1","status":"started"} <nil>
	// 200 true <nil>
}
