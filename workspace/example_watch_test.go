package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A handler of server-sent events shows a browser what happens until the
// message that it has sent is handled.
func ExampleManager_Watch() {
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Run: func(_ context.Context, run *workspace.Run) error {
			run.SetReply("Hello " + run.UserID() + "!")
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		user := r.FormValue("user") // a real handler authenticates the user
		w.Header().Set("Content-Type", "text/event-stream")
		for e, err := range m.Watch(r.Context(), user).AsHost() {
			data, jsonErr := json.Marshal(e)
			if err != nil || jsonErr != nil {
				return
			}
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Kind, data)
			http.NewResponseController(w).Flush()
			if e.Kind == workspace.EventSummary && e.Seq == 0 {
				m.Submit(ctx, user, workspace.Message{ID: "1", Content: state.UserText("Hello!")})
			}
			if e.Kind == workspace.EventEnded {
				return
			}
		}
	}
	page := httptest.NewRecorder()
	serve(page, httptest.NewRequest("GET", "/?user=ann", nil))
	for line := range strings.Lines(page.Body.String()) {
		if kind, ok := strings.CutPrefix(line, "event: "); ok && kind != "summary\n" {
			fmt.Print(kind)
		}
	}
	fmt.Println(m.Close())
	// Output:
	// started
	// reply
	// ended
	// <nil>
}

// Await waits for a message that another process may handle.
func ExampleManager_Await() {
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Run: func(_ context.Context, run *workspace.Run) error {
			run.SetReply("Hello!")
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	_, err = m.Submit(ctx, "ann", workspace.Message{ID: "1", Content: state.UserText("Hello!")})
	if err != nil {
		panic(err)
	}
	out, err := m.Await(ctx, "ann", "1")
	fmt.Println(out.Status, out.Reply, err)
	_, err = m.Await(ctx, "ann", "2")
	fmt.Println(err)
	fmt.Println(m.Close())
	// Output:
	// done Hello! <nil>
	// workspace: await for "ann": workspace: not found: message "2": it was not accepted, or has ended long ago
	// <nil>
}

// Check shows which workspaces a new version of a schema does not fit.
func ExampleManager_Check() {
	ctx := context.Background()
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(&state.Field[string]{Name: "age"}),
	})
	if err != nil {
		panic(err)
	}
	err = m.Update(ctx, "ann", func(w *workspace.Workspace) error { return w.State().KV().Set("age", "forty") })
	if err != nil {
		panic(err)
	}
	next := state.MustSchema(&state.Field[int]{Name: "age"})
	for user, err := range m.Check(ctx, next) {
		fmt.Println(user, err)
	}
	// Output:
	// ann workspace: check for "ann": workspace: content does not fit the schema: workspace: content: state: import: "age": want integer, got string
}
