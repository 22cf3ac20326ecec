package mcpstate_test

import (
	"context"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// scenario has the team of all adapters, with the tools of a server that knows
// nothing of states.
var scenario = adaptertest.Adapter{
	Open: func(ctx context.Context, file string) (store.Store, error) {
		return sqlitestore.Open(ctx, file, nil)
	},
	Answer:  adaptertest.Plain(importTools),
	Derives: true,
}

func TestScenario(t *testing.T)       { adaptertest.Run(t, scenario) }
func TestScenarioKilled(t *testing.T) { adaptertest.Killed(t, scenario) }

// importTools returns the tools of an agent. approve waits for a person, which
// the host of the state has to know, and is therefore no tool of the server.
func importTools(ctx context.Context, _ *workspace.Run, d *adaptertest.Desk, agent string) ([]*tool.Tool, error) {
	isLocal := func(t *tool.Tool) bool { return t.Name() == "approve" }
	srv := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcpstate.AddTools(srv, mcpstate.Memory(state.New(nil), nil), slices.DeleteFunc(d.Unbound(agent), isLocal)...)
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := srv.Connect(ctx, theirs, nil); err != nil {
		return nil, err
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "1"}, nil).Connect(ctx, ours, nil)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { session.Close() })
	tools, err := mcpstate.Import(ctx, session, &mcpstate.ImportOptions{
		Bind: func(t *mcp.Tool) []tool.Option { return adaptertest.Bindings(t.Name) },
	})
	if err != nil || agent != "billing" {
		return tools, err
	}
	return append(tools, d.Tools(agent)[0]), nil
}
