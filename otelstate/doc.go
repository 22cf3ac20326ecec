// Package otelstate makes OpenTelemetry spans and metrics of what workspaces,
// tools and models do.
//
//	tracer, err := otelstate.New(nil) // with the global providers
//	m, err := workspace.Open(ctx, db, &workspace.Options{Tracer: tracer, …})
//	stop, err := tracer.Register(m)
//
// A run is a span invoke_workflow, a call of a tool execute_tool, and a call of
// a model chat, by the semantic conventions for generative AI, version 1.41.0.
// Other names begin with agentstate. Links, which travel with the message, connect
// its spans in several processes: a run that another process continues hours later
// is no child of the first one.
//
// A span never contains a secret, an id of a user or a text of a message, an
// argument or an error, unless [Options.Content] is set. Secrets of the state
// are then masked in texts, whatever an agent may read, and in runs those of
// the memory as well.
//
// An SDK may make spans of its own, as anthropic-sdk-go does since 1.81: a call of a
// model then has two. Turn those of the SDK off, with option.WithoutOpenTelemetry()
// there. Options.Content and the masks do not hold for them.
package otelstate
