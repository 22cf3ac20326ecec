// Package einostate lets agents of eino (github.com/cloudwego/eino) work on a
// state: their tools read and write fields with the rights of their agent, and
// what a run has done is in a durable workspace.
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
// a workspace puts it. Agents that run at the same time need a branch each; see
// the example of [state.State.Join].
package einostate
