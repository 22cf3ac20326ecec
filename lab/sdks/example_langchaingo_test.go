package sdks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
)

// A model of langchaingo works on a State: the transport sends the conversation
// and records the answers, and the loop makes the calls.
func Example_langchaingo() {
	server := httptest.NewServer(http.HandlerFunc(refundingModel))
	defer server.Close()
	refunded := &state.Field[int]{Name: "refunded", Owner: "billing", Handler: state.Sum[int]()}
	st := state.New(state.MustSchema(refunded, state.Team{"billing": nil}))
	refund := tool.Must(tool.New("refund", "Refund an amount.", func(_ context.Context, in struct {
		Amount int `json:"amount"`
	}) (int, error) {
		return in.Amount, nil
	}, tool.To(refunded, "")))

	client := &http.Client{Transport: &wire.Transport{}}
	llm, err := openai.New(openai.WithBaseURL(server.URL+"/v1"), openai.WithToken("key"), openai.WithModel("m"), openai.WithHTTPClient(client))
	if err != nil {
		panic(err)
	}
	ask := func(ctx context.Context, _ *loop.Turn) error { // the transport adds the conversation and the tools
		_, err := llm.GenerateContent(ctx, []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "You refund.")})
		return err
	}
	loop := &loop.Loop{Agents: map[string]loop.Agent{"billing": {Ask: ask, Tools: []*tool.Tool{refund}}}}

	fmt.Println(state.Messages.Set(st, []state.Message{state.UserText("Refund 30.")}))
	fmt.Println(loop.Run(context.Background(), st))
	for _, m := range state.Messages.GetOr(st, nil) {
		fmt.Println(m)
	}
	fmt.Println(refunded.GetOr(st, 0))
	// Output:
	// <nil>
	// Done. <nil>
	// text "user": "Refund 30."
	// tool_call "assistant": "refund" id "c1"
	// tool_result "refund" id "c1": "30"
	// text "assistant": "Done."
	// 30
}

// refundingModel calls the tool, and says "Done." when it has the result.
func refundingModel(w http.ResponseWriter, req *http.Request) {
	message := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"refund","arguments":"{\"amount\":30}"}}]}`
	if body, err := io.ReadAll(req.Body); err == nil && strings.Contains(string(body), `"role":"tool"`) {
		message = `{"role":"assistant","content":"Done."}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":%s}]}`, message)
}
