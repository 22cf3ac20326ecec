package mcpstate_test

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// A model at the other end of a connection can refund to a card that it never
// sees. Another one, with the rights of a guest, cannot.
func Example() {
	ctx := context.Background()
	card := &state.Field[string]{Name: "card", Owner: "billing", Secret: true}
	refunded := &state.Field[float64]{
		Name: "refunded", Owner: "billing", Read: state.Public, Handler: state.Sum[float64](),
	}
	type payment struct {
		Amount float64 `json:"amount"`
		Card   string  `json:"card"`
	}
	refund := tool.Must(tool.New("refund", "Refund an amount.",
		func(_ context.Context, in payment) (payment, error) { return in, nil },
		tool.From(card, "card"), tool.To(refunded, "amount")))

	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(card, refunded, state.Team{"billing": {"guest"}}),
	})
	must(err)
	defer m.Close()
	must(m.Update(ctx, "ann", func(w *workspace.Workspace) error { return card.Set(w.State(), "4242-4242") }))

	// connect returns a client with the rights of an agent. Over HTTP, who reads
	// the token of the request.
	connect := func(agent string) *mcp.ClientSession {
		who := func(mcp.Request) (string, string, error) { return "ann", agent, nil }
		states := mcpstate.Workspaces(m, who)
		srv := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
		mcpstate.AddTools(srv, states, refund)
		mcpstate.AddFields(srv, states)
		theirs, ours := mcp.NewInMemoryTransports()
		_, err := srv.Connect(ctx, ours, nil)
		must(err)
		s, err := mcp.NewClient(&mcp.Implementation{Name: "model", Version: "1"}, nil).Connect(ctx, theirs, nil)
		must(err)
		return s
	}
	for _, agent := range []string{"billing", "guest"} {
		s := connect(agent)
		for t, err := range s.Tools(ctx, nil) {
			must(err)
			schema, err := state.JSONOf(t.InputSchema)
			must(err)
			fmt.Println(agent, "sees", t.Name, schema)
		}
		result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "refund", Arguments: map[string]any{"amount": 30}})
		must(err)
		fmt.Println(agent, "reads", result.Content[0].(*mcp.TextContent).Text)
		field, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: mcpstate.URI("ann", "refunded")})
		must(err)
		fmt.Println(agent, "reads", field.Contents[0].URI, field.Contents[0].Text)
		must(s.Close())
	}
	// Output:
	// billing sees refund {"additionalProperties":false,"properties":{"amount":{"type":"number"}},"required":["amount"],"type":"object"}
	// billing reads {"amount":30,"card":"[SECRET]"}
	// billing reads state://ann/refunded 30
	// guest reads unknown tool refund
	// guest reads state://ann/refunded 30
}
