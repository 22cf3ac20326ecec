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
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
)

// A model of langchaingo works on a State: the transport sends the conversation
// and records the answers, and the turn makes the calls.
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

	client := &http.Client{Transport: &wire.Transport{Converse: true}}
	llm, err := openai.New(openai.WithBaseURL(server.URL+"/v1"), openai.WithToken("key"), openai.WithModel("m"), openai.WithHTTPClient(client))
	if err != nil {
		panic(err)
	}
	answer := func(ctx context.Context, said string) (string, error) {
		turn, err := tool.NewTurn(ctx, "billing", refund)
		if err != nil {
			return "", err
		}
		if err := turn.Hear(state.UserText(said)); err != nil {
			return "", err
		}
		ctx = turn.Context(ctx) // the transport has the rights of the agent
		for {
			if _, err := turn.Run(ctx, turn.Pending()...); err != nil { // also what an earlier process has left
				return "", err
			}
			out, err := llm.GenerateContent(ctx, []llms.MessageContent{
				llms.TextParts(llms.ChatMessageTypeSystem, "You refund."),
			}, llms.WithTools(functions(turn.Tools())))
			if err != nil {
				return "", err
			}
			if len(turn.Pending()) == 0 {
				return out.Choices[0].Content, nil
			}
		}
	}

	fmt.Println(answer(state.NewContext(context.Background(), st), "Refund 30."))
	for _, m := range state.Messages.Or(st, nil) {
		fmt.Println(m)
	}
	fmt.Println(refunded.Or(st, 0))
	// Output:
	// Done. <nil>
	// text "user": "Refund 30."
	// tool_call "assistant": "refund" id "c1"
	// tool_result "refund" id "c1": "30"
	// text "assistant": "Done."
	// 30
}

// functions are tools as langchaingo has them.
func functions(tools []*tool.Tool) (list []llms.Tool) {
	for _, t := range tools {
		list = append(list, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
			Name: t.Name(), Description: t.Description(), Parameters: t.Schema(),
		}})
	}
	return list
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
