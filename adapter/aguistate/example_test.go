package aguistate_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/aguistate"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A page sends what the user says, and reads what comes of it.
func Example() {
	ask := func(ctx context.Context, t *loop.Turn) error {
		return t.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("Hello, Ann!")}})
	}
	m, err := workspace.Open(context.Background(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(state.Team{"desk": {"ui"}}),
		Run:    workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"": {Ask: ask}}}),
	})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	session := func(r *http.Request, thread string) (statehttp.Who, error) { // reads a cookie
		return statehttp.Who{User: "ann", Agent: "ui"}, nil
	}

	h, err := aguistate.New(m, &aguistate.Options{Who: session})
	http.Handle("/agent", h)
	if err != nil {
		panic(err)
	}

	srv := httptest.NewServer(h)
	defer srv.Close()
	resp, err := http.Post(srv.URL, "application/json", strings.NewReader(
		`{"threadId":"1","runId":"1","messages":[{"id":"a","role":"user","content":"Hi!"}]}`))
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "MESSAGE") || strings.Contains(lines.Text(), "RUN") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// data: {"type":"RUN_STARTED","threadId":"1","runId":"1"}
	// data: {"type":"TEXT_MESSAGE_START","messageId":"2-DM1wRIPm","role":"assistant"}
	// data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"2-DM1wRIPm","delta":"Hello, Ann!"}
	// data: {"type":"TEXT_MESSAGE_END","messageId":"2-DM1wRIPm"}
	// data: {"type":"RUN_FINISHED","threadId":"1","runId":"1"}
}
