package otelstate

import (
	"context"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is the member of a W3C trace context that names a span.
const traceparent = "traceparent"

// Inject returns a text that links to the span of ctx: the traceparent of the
// W3C trace context, or what the Propagator writes in the form of a URL query
// if that is more. A program that sets Message.Trace itself may set it to the
// traceparent header of a request.
func (t *Tracer) Inject(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	t.opts.Propagator.Inject(ctx, carrier)
	if parent, ok := carrier[traceparent]; ok && len(carrier) == 1 {
		return parent
	}
	query := url.Values{}
	for key, value := range carrier {
		query.Set(key, value)
	}
	return query.Encode()
}

// links returns links to the spans that texts of Inject name. It leaves out
// texts that name none.
func (t *Tracer) links(texts []string) []trace.Link {
	var links []trace.Link
	for _, text := range texts {
		carrier := propagation.MapCarrier{traceparent: text}
		if strings.Contains(text, "=") {
			carrier = propagation.MapCarrier{}
			query, _ := url.ParseQuery(text) // what it can read
			for key := range query {
				carrier[key] = query.Get(key)
			}
		}
		ctx := t.opts.Propagator.Extract(context.Background(), carrier)
		if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
			links = append(links, trace.Link{SpanContext: sc})
		}
	}
	return links
}
