// Package einostate lets agents and graphs of eino
// (github.com/cloudwego/eino) work on a state: their tools read and write
// fields with the rights of their agent, agents and nodes that run at the same
// time lose no write, and what a run has done is in a durable workspace.
//
//	billing, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
//		Name: "billing", Model: model,
//		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: einostate.Tools(search, refund)}},
//		Handlers:    []adk.ChatModelAgentMiddleware{einostate.Middleware("billing", nil)},
//	})
//	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: billing, CheckPointStore: einostate.Checkpoints()})
//	manager, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema, Run: einostate.Handle(runner, nil)})
//
// An agent finds its state in the context, where [state.NewContext] or a run of
// a workspace puts it. [Middleware] gives the agent its rights, records what the
// model says and what the tools return, and commits each step. [Parallel] and
// [Branches] give each agent or node a branch of the state, and join the
// branches in a fixed order.
package einostate
