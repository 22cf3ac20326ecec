// Package mcpstate serves tools and fields of a state over the Model Context
// Protocol, with the official SDK for Go, and makes the tools of MCP servers
// tools of a state.
//
// A server has a [States], which says whose state a request works on and with
// the rights of which agent. [Memory] has one state, [Workspaces] one for each
// user:
//
//	states := mcpstate.Workspaces(manager, who)
//	srv := mcp.NewServer(impl, nil)
//	mcpstate.AddTools(srv, states, refund, search) // a client sees those that its agent may use
//	mcpstate.AddFields(srv, states)                // fields are resources
//
// [Import] makes the tools of a server tools for [tool.Run].
package mcpstate
