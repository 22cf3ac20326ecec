package otelstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/workspace/work"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// linksOf returns the spans to which a run with a link has links.
func linksOf(t *testing.T, opts otelstate.Options, texts ...string) []trace.SpanContext {
	e := newTelemetry(t, opts)
	op := work.Operation{Kind: work.OpRun, Links: texts}
	e.End(e.Start(t.Context(), op), op)
	var list []trace.SpanContext
	for _, link := range e.spans()[0].Links() {
		list = append(list, link.SpanContext)
	}
	return list
}

func TestLinks(t *testing.T) {
	for _, text := range []string{"", "x", "00-00-00-00", "traceparent=x", "%zz=1", "a;b=c"} {
		require.Empty(t, linksOf(t, otelstate.Options{}, text), "%q names no span", text)
	}
	links := linksOf(t, otelstate.Options{}, "x", parent)
	require.Len(t, links, 1)
	require.Equal(t, "b7ad6b7169203331", links[0].SpanID().String())
}

// What Inject returns is the header of a request, whatever the context carries.
func TestInject(t *testing.T) {
	e := newTelemetry(t, otelstate.Options{})
	require.Empty(t, e.Inject(t.Context()), "no span")
	ctx, span := e.traces.Tracer("program").Start(t.Context(), "x")
	defer span.End()
	member, err := baggage.NewMember("user", "ann")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	text := e.Inject(baggage.ContextWithBaggage(ctx, bag))
	require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, text, "baggage is not stored")
	require.Equal(t, span.SpanContext().SpanID(), linksOf(t, otelstate.Options{}, text)[0].SpanID())
}
