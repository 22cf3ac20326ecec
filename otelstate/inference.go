package otelstate

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/provider"
)

// Inference makes the span and the metrics of a call of a model, where there
// is no workspace: a run reports the results of its history by itself. ctx is
// that of the agent. The span lasts from StartedAt to CreatedAt. A result
// without StartedAt becomes an event of the span in ctx, because the client of
// the model may have a span of its own.
func (t *Tracer) Inference(ctx context.Context, r state.InferenceResult) {
	t.inference(ctx, trace.SpanFromContext(ctx), t.conversationIn(ctx), &r, redactorIn(ctx, nil))
}

// endInference is Inference for a result that an operation reports.
func (t *Tracer) endInference(s *span, r *state.InferenceResult, redact func(string) string) {
	if redact == nil {
		return // its secrets are not known
	}
	ctx, parent := context.Context(s), s.Span
	if s.run != nil {
		ctx, parent = s.run, s.run.Span
	}
	t.inference(ctx, parent, s.conversation, r, redact)
}

// inference makes the span of a result, or an event of the parent.
func (t *Tracer) inference(
	ctx context.Context, parent trace.Span, c *conversation, r *state.InferenceResult, redact func(string) string,
) {
	// A span without a parent is up to the sampler, a child of one that is not
	// recorded is not recorded.
	timed := !r.StartedAt.IsZero() && !r.CreatedAt.IsZero()
	records := parent.IsRecording() || timed && !parent.SpanContext().IsValid() && t.spanOf(ctx) == nil
	m := &t.instruments
	measures := m.tokens.Enabled(ctx) || timed && m.inferenceDuration.Enabled(ctx)
	if !records && !measures {
		return
	}
	call := t.read(r, redact)
	if measures {
		t.measureInference(ctx, call, r, timed)
	}
	if !records {
		return
	}
	if !timed {
		parent.AddEvent(eventResponse, trace.WithAttributes(append(call.start(c), t.attributes(call, r, redact)...)...))
		return
	}
	name := operationChat
	if call.Model != "" {
		name += " " + call.Model
	}
	_, s := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(r.StartedAt),
		trace.WithAttributes(call.start(c)...))
	if s.IsRecording() {
		s.SetAttributes(t.attributes(call, r, redact)...)
	}
	ended := r.CreatedAt
	if ended.Before(r.StartedAt) {
		ended = r.StartedAt
	}
	s.End(trace.WithTimestamp(ended))
}

// modelCall is what a response says, without secrets.
type modelCall struct {
	provider.Summary
	provider, agent string
}

// read reads the response of a result.
func (t *Tracer) read(r *state.InferenceResult, redact func(string) string) modelCall {
	said, _ := provider.Summarize(r.Raw) // nothing, if it is not known
	if r.Usage != (state.Usage{}) {
		said.Usage = r.Usage
	}
	call := modelCall{Summary: said, provider: t.opts.Provider, agent: r.Agent}
	clip := func(text string) string { return fault.ClipTo(redact(text), maxName) }
	call.Model, call.ID, call.StopReason = clip(said.Model), clip(said.ID), clip(said.StopReason)
	switch said.Format {
	case provider.OpenAI, provider.OpenAIResponses:
		call.provider = providerOpenAI
	case provider.Anthropic:
		call.provider = providerAnthropic
	case provider.Gemini:
		call.provider = providerGemini
	}
	if call.StopReason == "tool" {
		call.StopReason = "tool_call"
	}
	switch reason, ok := finishReasons[r.Stop]; {
	case ok:
		call.StopReason = reason
	case r.Stop == state.StopUnknown:
		call.StopReason = fault.ClipTo(redact(r.StopWord), maxName)
	case r.Stop != "":
		call.StopReason = string(r.Stop)
	}
	return call
}

// finishReasons are the words that the conventions have for how an answer ended.
var finishReasons = map[state.Stop]string{
	state.StopEnd: "stop", state.StopCalls: "tool_call", state.StopLength: "length",
	state.StopFiltered: "content_filter", state.StopFailed: "error",
}

// start returns the attributes that a sampler gets.
func (call modelCall) start(c *conversation) []attribute.KeyValue {
	attrs := append([]attribute.KeyValue{attribute.String(keyOperation, operationChat)}, c.attrs...)
	return text(text(attrs, keyProvider, call.provider), keyAgent, call.agent)
}

// attributes returns the further attributes of a call.
func (t *Tracer) attributes(call modelCall, r *state.InferenceResult, redact func(string) string) []attribute.KeyValue {
	attrs := text(text(nil, keyModel, call.Model), keyResponse, call.ID)
	if call.StopReason != "" {
		attrs = append(attrs, attribute.StringSlice(keyFinishReasons, []string{call.StopReason}))
	}
	for _, n := range []struct {
		key   string
		count int
	}{
		{keyInputTokens, call.Usage.Input}, {keyOutputTokens, call.Usage.Output}, {keyCacheRead, call.Usage.CacheRead},
		{keyCacheWrite, call.Usage.CacheWrite}, {keyReasoning, call.Usage.Reasoning},
	} {
		if n.count > 0 {
			attrs = append(attrs, attribute.Int(n.key, n.count))
		}
	}
	if t.opts.Content {
		attrs = text(attrs, keyInputMessages, inputMessages(r, redact))
		attrs = text(attrs, keyOutputMessages, outputMessages(r, call.StopReason, redact))
	}
	return attrs
}

func (t *Tracer) measureInference(ctx context.Context, call modelCall, r *state.InferenceResult, timed bool) {
	m := &t.instruments
	attrs := func(more ...attribute.KeyValue) metric.MeasurementOption {
		name := call.provider
		if name == "" {
			name = other
		}
		list := append([]attribute.KeyValue{
			attribute.String(keyOperation, operationChat), attribute.String(keyProvider, name),
		}, more...)
		return metric.WithAttributes(text(list, keyModel, m.models.limit(call.Model, maxModels))...)
	}
	if timed {
		took := max(0, r.CreatedAt.Sub(r.StartedAt).Seconds())
		m.inferenceDuration.record(ctx, took, func() metric.MeasurementOption { return attrs() })
	}
	for _, n := range []struct {
		kind  string
		count int
	}{{tokensInput, call.Usage.Input}, {tokensOutput, call.Usage.Output}} {
		if n.count > 0 {
			m.tokens.record(ctx, int64(n.count), func() metric.MeasurementOption {
				return attrs(attribute.String(keyTokenType, n.kind))
			})
		}
	}
}
