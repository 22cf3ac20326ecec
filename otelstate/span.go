package otelstate

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/internal/fault"
)

// span is a context that carries a span of this package. It is one object, so
// that a span which is not recorded costs little.
type span struct {
	context.Context // with the trace.Span
	trace.Span
	tracer       *Tracer
	began        time.Time
	conversation *conversation
	run          *span // the one of the run that it is in; nil if there is none
}

// spanKey is the key of the innermost span of a Tracer.
type spanKey struct{ tracer *Tracer }

func (s *span) Value(key any) any {
	if k, ok := key.(spanKey); ok && k.tracer == s.tracer {
		return s
	}
	return s.Context.Value(key)
}

// spanOf returns the innermost span of the Tracer in ctx, or nil.
func (t *Tracer) spanOf(ctx context.Context) *span {
	s, _ := ctx.Value(spanKey{t}).(*span)
	return s
}

// start starts a span. Its run is that of its parent.
func (t *Tracer) start(ctx context.Context, name string, c *conversation, opts []trace.SpanStartOption) *span {
	s := &span{tracer: t, began: time.Now(), conversation: c}
	if parent := t.spanOf(ctx); parent != nil {
		s.run = parent.run
	}
	s.Context, s.Span = t.tracer.Start(ctx, name, opts...)
	return s
}

// end ends the span. redact masks the text of the error; if it is nil, the
// span has no text.
func (s *span) end(err error, redact func(string) string) {
	if err != nil && s.IsRecording() {
		s.SetAttributes(attribute.String(keyErrorType, errorType(err)))
		description := ""
		if s.tracer.opts.Content && redact != nil {
			description = fault.ClipTo(redact(err.Error()), maxContent)
		}
		s.SetStatus(codes.Error, description)
	}
	s.Span.End()
}

// took returns the seconds since the span began.
func (s *span) took() float64 { return time.Since(s.began).Seconds() }
