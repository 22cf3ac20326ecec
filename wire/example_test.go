package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// A client sends instructions only. The conversation comes from the State in the
// context of the request, and the answer is recorded in it. Any SDK takes the
// http.Client; what it sends is written out here.
func Example() {
	server := startModel()
	defer server.Close()
	client := &http.Client{Transport: &wire.Transport{
		Context: wire.Fields,
	}}

	order := &state.Field[string]{Name: "order"}
	st := state.New(state.MustSchema(order))
	fmt.Println(order.Set(st, "#17"))
	fmt.Println(st.UserSays("Where is my order?"))

	ctx := state.NewContext(context.Background(), st)
	fmt.Println(send(ctx, client, server.URL, `{"model":"m","messages":[{"role":"system","content":"Be brief."}]}`))

	for _, m := range state.Messages.GetOr(st, nil) {
		fmt.Println(m)
	}
	result, _ := st.History().Last()
	fmt.Println(len(result.Prompt), len(result.History), len(result.Output), result.Raw != "")
	// Output:
	// <nil>
	// <nil>
	// the model got
	//   system: "Be brief."
	//   user: "Where is my order?\n\n<context>\n- order (string) = \"#17\"\n</context>"
	// <nil>
	// text "user": "Where is my order?"
	// text "assistant": "It is on its way."
	// 1 1 1 true
}

// The calls for a title, and others that are no part of the conversation, are
// made in the context of OutsideConversation. They are recorded, but the
// conversation stays as it is.
func ExampleOutsideConversation() {
	server := startModel()
	defer server.Close()
	client := &http.Client{Transport: &wire.Transport{}}
	st := state.New(nil)
	fmt.Println(st.UserSays("Where is my order?"))

	ctx := wire.OutsideConversation(state.NewContext(context.Background(), st))
	fmt.Println(send(ctx, client, server.URL, `{"model":"m","messages":[{"role":"user","content":"A title, please."}]}`))
	fmt.Println(len(state.Messages.GetOr(st, nil)), st.History().Len())
	// Output:
	// <nil>
	// the model got
	//   user: "A title, please."
	// <nil>
	// 1 1
}

// In a workspace, the contexts of runs carry the State. What is remembered about the
// user is in the system prompt, its fields stand behind the conversation, and calls
// that wait for a person are said to wait.
func Example_workspace() {
	transport := &wire.Transport{
		Redact:  true,
		Window:  &transcript.Window{Target: 60_000},
		Cache:   true,
		Context: wire.Fields,
	}
	client := &http.Client{Transport: transport} // for the SDK that Options.Run uses
	fmt.Println(client.Transport == transport)
	// Output: true
}

// startModel starts a server that stands for a provider.
func startModel() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
			panic(err)
		}
		fmt.Println("the model got")
		for _, m := range body.Messages {
			fmt.Printf("  %s: %q\n", m.Role, m.Content)
		}
		fmt.Fprint(w, `{"id":"1","choices":[{"message":{"role":"assistant","content":"It is on its way."},"finish_reason":"stop"}]}`)
	}))
}

// send stands for an SDK.
func send(ctx context.Context, client *http.Client, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
