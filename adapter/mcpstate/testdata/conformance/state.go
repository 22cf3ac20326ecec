package main

import (
	"context"
	"flag"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

var file = flag.String("file", "", "if set, the state is a workspace in this file")

// addState puts a state behind each feature of the SDK's own server for
// conformance tests.
func addState(ctx context.Context, server *mcp.Server) {
	st := state.New(nil)
	if err := st.KV().Set("order", "#W1"); err != nil {
		log.Fatal(err)
	}
	states := mcpstate.Memory(st, nil)
	if *file != "" {
		db, err := sqlitestore.Open(ctx, *file, nil)
		if err != nil {
			log.Fatal(err)
		}
		m, err := workspace.Open(ctx, db, nil)
		if err != nil {
			log.Fatal(err)
		}
		states = mcpstate.Workspaces(m, func(mcp.Request) (user, agent string, err error) { return "ann", "", nil })
	}
	mcpstate.AddTools(server, states, tool.Must(tool.New("state_look_up", "Look up a topic.",
		func(_ context.Context, in struct {
			Topic string `json:"topic"`
		}) (string, error) {
			return in.Topic, nil
		})))
	mcpstate.AddFields(server, states)
}
