// Package genkitstate gives agents of Genkit a state: tools with injected
// fields and rights, steps whose results do not depend on timing, a conversation
// that survives the process, and sessions that lose no write.
//
// The state travels in the context, with the rights of an agent. [Middleware]
// makes the calls of tools itself, a message of the model at a time, and records
// them in the history of the state:
//
//	ctx = state.NewContext(ctx, st.As("billing"))
//	messages, err := genkitstate.From(state.Messages.GetOr(st, nil)...)
//	…
//	resp, err := genkit.Generate(ctx, g,
//		ai.WithMessages(messages...),
//		ai.WithTools(genkitstate.Tools(refund, search)...),
//		ai.WithMiddleware(genkitstate.Middleware([]*tool.Tool{refund, search}, nil)))
//
// In a run of package workspace, each step is committed: after the death of the
// process, another one continues with the conversation as far as it came.
//
// [Session] shows the fields to prompt templates as {{@state.name}}. [NewStore]
// keeps Genkit's own sessions in a store, and refuses a save that would undo
// another one. [Format] translates messages, in both directions and without
// loss.
package genkitstate
