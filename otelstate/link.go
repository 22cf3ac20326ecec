package otelstate

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is the member of a W3C trace context that names a span.
const traceparent = "traceparent"

// Inject returns a text that links to the span of ctx: the traceparent of the
// W3C trace context. A program that sets Message.Trace itself may set it to the
// traceparent header of a request. It carries no baggage, which may contain
// anything and would be stored with the message.
func (t *Tracer) Inject(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// links returns links to the spans that texts of Inject name. It leaves out
// texts that name none.
func links(texts []string) []trace.Link {
	var links []trace.Link
	for _, text := range texts {
		ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: text})
		if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
			links = append(links, trace.Link{SpanContext: sc})
		}
	}
	return links
}
