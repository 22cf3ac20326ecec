package otelstate

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// StartCall implements [tool.Tracer].
func (t *Tracer) StartCall(ctx context.Context, c tool.CallInfo) context.Context {
	conversation := t.conversationIn(ctx)
	start := conversation.startOf(called{c.Tool, c.Agent, operationTool})
	s := t.start(ctx, start.name, conversation, start.opts)
	if s.IsRecording() {
		redact := redactorIn(ctx, c.Redact)
		attrs := text(nil, keyToolCall, fault.ClipTo(redact(c.Call.ID), maxName))
		attrs = text(attrs, keyCallKey, c.Call.Key)
		if c.Batch > 0 {
			attrs = append(attrs, attribute.Int(keyBatch, c.Batch))
		}
		if t.opts.Content {
			attrs = append(attrs, attribute.String(keyToolArguments, fault.ClipTo(redact(string(c.Call.Input)), maxContent)))
		}
		s.SetAttributes(attrs...)
	}
	return s
}

// EndCall implements [tool.Tracer]. A suspended call has not failed.
func (t *Tracer) EndCall(ctx context.Context, c tool.CallInfo, r tool.Result) {
	s := t.spanOf(ctx)
	if s == nil {
		return
	}
	err := r.Err
	if errors.Is(err, tool.ErrSuspended) {
		err = nil
	}
	t.instruments.toolDuration.record(s, s.took(), func() metric.MeasurementOption {
		return metric.WithAttributes(text([]attribute.KeyValue{attribute.String(keyTool, toolName(c.Tool))},
			keyErrorType, errorType(err))...)
	})
	if !s.IsRecording() {
		s.Span.End()
		return
	}
	redact := redactorIn(ctx, c.Redact)
	if t.opts.Content && r.Message.Raw() != "" {
		s.SetAttributes(attribute.String(keyToolResult, fault.ClipTo(redact(r.Message.Text()), maxContent)))
	}
	s.end(err, redact)
}

// Agent starts the span of an agent that acts, such as one pass of a loop that
// calls a model and tools. Only the program knows which agent acts. The agent
// is that of st. end ends the span, with the error of the agent if it has
// failed; it must be called once.
func (t *Tracer) Agent(ctx context.Context, st *state.State) (agent context.Context, end func(error)) {
	conversation := t.conversationIn(ctx)
	start := conversation.startOf(called{nil, st.Agent(), operationAgent})
	s := t.start(ctx, start.name, conversation, start.opts)
	return s, func(err error) { s.end(err, redactorIn(s, secretsOf(st))) }
}

// conversationIn returns the conversation of the span in ctx.
func (t *Tracer) conversationIn(ctx context.Context) *conversation {
	if s := t.spanOf(ctx); s != nil {
		return s.conversation
	}
	return t.nobody
}

// secretsOf returns a function that masks all secrets of a state.
func secretsOf(st *state.State) func(string) string {
	return func(text string) string { return inside.HostRedactor(st).Redact(text) }
}

// redactorIn returns a function that masks what redact masks, unless it is nil,
// and the secrets of the run and of the state in ctx.
func redactorIn(ctx context.Context, redact func(string) string) func(string) string {
	return func(text string) string {
		if redact != nil {
			text = redact(text)
		}
		if run, ok := workspace.FromContext(ctx); ok {
			text = run.Redact(text)
		}
		if st, ok := state.FromContext(ctx); ok {
			text = inside.HostRedactor(st).Redact(text)
		}
		return text
	}
}
