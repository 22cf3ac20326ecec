package otelstate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/otelstate"
)

// telemetry keeps what a Tracer exports.
type telemetry struct {
	*otelstate.Tracer
	traces  *sdktrace.TracerProvider
	metrics *metric.MeterProvider
	reader  *metric.ManualReader

	mu      sync.Mutex
	started []sdktrace.ReadOnlySpan
	ended   []sdktrace.ReadOnlySpan
}

func newTelemetry(t testing.TB, opts otelstate.Options) *telemetry {
	t.Helper()
	e := &telemetry{reader: metric.NewManualReader()}
	e.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e))
	e.metrics = metric.NewMeterProvider(metric.WithReader(e.reader))
	opts.TracerProvider, opts.MeterProvider = e.traces, e.metrics
	var err error
	e.Tracer, err = otelstate.New(&opts)
	require.NoError(t, err)
	return e
}

// OnStart and OnEnd make it a span processor.
func (e *telemetry) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = append(e.started, s)
}

func (e *telemetry) OnEnd(s sdktrace.ReadOnlySpan) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = append(e.ended, s)
}

func (e *telemetry) Shutdown(context.Context) error   { return nil }
func (e *telemetry) ForceFlush(context.Context) error { return nil }

// spans returns the spans that have ended, in the order in which they began.
func (e *telemetry) spans() []sdktrace.ReadOnlySpan {
	e.mu.Lock()
	defer e.mu.Unlock()
	ended := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, s := range e.ended {
		ended[s.SpanContext().SpanID()] = s
	}
	var list []sdktrace.ReadOnlySpan
	for _, s := range e.started {
		if s, ok := ended[s.SpanContext().SpanID()]; ok {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b sdktrace.ReadOnlySpan) int { // calls begin at the same time
		if strings.HasPrefix(a.Name(), "execute_tool") && strings.HasPrefix(b.Name(), "execute_tool") {
			return strings.Compare(a.Name(), b.Name())
		}
		return 0
	})
	return list
}

// unended returns the spans that have not ended exactly once.
func (e *telemetry) unended() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ends := map[trace.SpanID]int{}
	for _, s := range e.ended {
		ends[s.SpanContext().SpanID()]++
	}
	var list []string
	for _, s := range e.started {
		if n := ends[s.SpanContext().SpanID()]; n != 1 {
			list = append(list, fmt.Sprintf("%s has ended %d times", s.Name(), n))
		}
	}
	return list
}

// tree returns the spans of several processes as an indented list.
func tree(processes ...*telemetry) string {
	type place struct {
		span    sdktrace.ReadOnlySpan
		process int
	}
	var all []place
	names := map[trace.SpanID]string{}
	for i, e := range processes {
		for _, s := range e.spans() {
			all = append(all, place{s, i})
			names[s.SpanContext().SpanID()] = fmt.Sprintf("%s of process %d", s.Name(), i+1)
		}
	}
	var b strings.Builder
	var write func(parent trace.SpanID, process int, indent string)
	write = func(parent trace.SpanID, process int, indent string) {
		for _, p := range all {
			if p.process != process || p.span.Parent().SpanID() != parent {
				continue
			}
			b.WriteString(indent + describe(p.span, names, indent) + "\n")
			write(p.span.SpanContext().SpanID(), process, indent+"  ")
		}
	}
	for i := range processes {
		if len(processes) > 1 {
			fmt.Fprintf(&b, "process %d\n", i+1)
		}
		write(trace.SpanID{}, i, "")
	}
	return b.String()
}

func describe(s sdktrace.ReadOnlySpan, names map[trace.SpanID]string, indent string) string {
	line := s.Name()
	if s.SpanKind() != trace.SpanKindInternal {
		line += " " + strings.ToUpper(s.SpanKind().String())
	}
	line += show(s.Attributes())
	if status := s.Status(); status.Code == codes.Error {
		line += " ERROR"
		if status.Description != "" {
			line += fmt.Sprintf("(%s)", status.Description)
		}
	}
	for _, link := range s.Links() {
		line += fmt.Sprintf(" link=[%s]", names[link.SpanContext.SpanID()])
	}
	for _, event := range s.Events() {
		line += "\n" + indent + "  * " + event.Name + show(event.Attributes)
	}
	return line
}

// volatile are the attributes with values that differ from run to run, and the
// conversation.
var volatile = []string{"agentstate.run.id", "agentstate.tool.call.key", "agentstate.run.waited", "agentstate.bytes", "gen_ai.conversation.id", "agentstate.heartbeat.left"}

// show returns the attributes in their order, those that are volatile without
// their values.
func show(attrs []attribute.KeyValue) string {
	var parts []string
	for _, a := range attrs {
		name := strings.TrimPrefix(strings.TrimPrefix(string(a.Key), "agentstate."), "gen_ai.")
		if slices.Contains(volatile, string(a.Key)) {
			parts = append(parts, name)
			continue
		}
		parts = append(parts, name+"="+a.Value.String())
	}
	sort.Strings(parts)
	if len(parts) == 0 {
		return ""
	}
	return " {" + strings.Join(parts, " ") + "}"
}

// series returns the series of all metrics, with the counts of histograms and
// the sums of counters.
func (e *telemetry) series(t testing.TB) []string {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, e.reader.Collect(context.Background(), &data))
	var list []string
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			add := func(set attribute.Set, n any) {
				list = append(list, fmt.Sprintf("%s%s %v", m.Name, show(set.ToSlice()), n))
			}
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, fmt.Sprint("n=", p.Count))
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, fmt.Sprint("n=", p.Count))
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(p.Attributes, p.Value)
				}
			default:
				t.Fatalf("%s: %T", m.Name, d)
			}
		}
	}
	sort.Strings(list)
	return list
}

// sum returns the sum of a counter, over all attributes.
func (e *telemetry) sum(t testing.TB, name string) (sum int64) {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, e.reader.Collect(context.Background(), &data))
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if d, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name {
				for _, p := range d.DataPoints {
					sum += p.Value
				}
			}
		}
	}
	return sum
}

// everything returns all that was exported, as text: the spans as JSON and in
// Go's syntax, and the metrics.
func (e *telemetry) everything(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	for _, s := range e.spans() {
		attrs := [][]attribute.KeyValue{s.Attributes(), s.Resource().Attributes()}
		for _, event := range s.Events() {
			attrs = append(attrs, event.Attributes)
			b.WriteString(event.Name + "\n")
		}
		for _, link := range s.Links() {
			attrs = append(attrs, link.Attributes)
			b.WriteString(link.SpanContext.TraceState().String() + "\n")
		}
		b.WriteString(s.Name() + "\n" + s.Status().Description + "\n" + s.SpanContext().TraceState().String() + "\n")
		for _, a := range slices.Concat(attrs...) {
			b.WriteString(string(a.Key) + "=" + a.Value.String() + "\n")
			text, err := json.Marshal(a)
			require.NoError(t, err)
			b.Write(append(text, '\n'))
		}
	}
	var data metricdata.ResourceMetrics
	require.NoError(t, e.reader.Collect(context.Background(), &data))
	fmt.Fprintf(&b, "%+v\n", data)
	return b.String()
}
