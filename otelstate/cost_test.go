package otelstate_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// idleProviders record nothing.
func idleProviders() map[string]trace.TracerProvider {
	return map[string]trace.TracerProvider{
		"no-op":         tracenoop.NewTracerProvider(),
		"never sampled": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())),
	}
}

func newIdle(t testing.TB, provider trace.TracerProvider) *otelstate.Tracer {
	t.Helper()
	tracer, err := otelstate.New(&otelstate.Options{TracerProvider: provider, MeterProvider: metricnoop.NewMeterProvider()})
	require.NoError(t, err)
	return tracer
}

// A span that is not recorded costs two allocations: its context and that of
// the TracerProvider. One more or less is the provider's: a provider that
// samples nothing makes a span all the same.
func TestIdleSpansAreCheap(t *testing.T) {
	read := tool.Must(tool.New("read", "", func(context.Context, struct{}) (string, error) { return "", nil }))
	results := []state.InferenceResult{{Raw: chatResponse, StartedAt: time.Now(), CreatedAt: time.Now()}, {Raw: chatResponse}}
	masks := func(text string) string { return text }
	for name, provider := range idleProviders() {
		t.Run(name, func(t *testing.T) {
			tracer, plain := newIdle(t, provider), provider.Tracer("plain")
			run := tracer.Start(t.Context(), work.Operation{Kind: work.OpRun, UserID: "ann"})
			own := testing.AllocsPerRun(1000, func() {
				_, span := plain.Start(run, "plain", trace.WithAttributes())
				span.End()
			})
			for what, do := range map[string]func(){
				"commit": func() {
					op := work.Operation{Kind: work.OpCommit, UserID: "ann", Version: 7, Effects: 3, Tries: 2, Conflicts: 1, Results: results, Redact: masks}
					tracer.End(tracer.Start(run, op), op)
				},
				"run": func() {
					op := work.Operation{Kind: work.OpRun, UserID: "ann", Ended: work.EndingFinished}
					tracer.End(tracer.Start(run, op), op)
				},
				"handle": func() {
					op := work.Operation{Kind: work.OpHandle, UserID: "ann", Status: workspace.StatusDone}
					tracer.End(tracer.Start(run, op), op)
				},
				"tool": func() {
					c := tool.CallInfo{Tool: read, Agent: "support", Redact: masks}
					tracer.EndCall(tracer.StartCall(run, c), c, tool.Result{})
				},
			} {
				n := testing.AllocsPerRun(1000, do)
				t.Logf("%s: %v allocations, %v of them of a plain span", what, n, own)
				require.LessOrEqual(t, n-own, 2.0, what)
			}
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				op := work.Operation{Kind: work.OpHeartbeat, Left: 1, TTL: 10}
				tracer.End(tracer.Start(run, op), op)
			}), "a heartbeat")
		})
	}
}

// BenchmarkGoal measures rows of the speed goals.
func BenchmarkGoal(b *testing.B) {
	b.Run("otel-span/baseline", func(b *testing.B) {
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(discard{})).Tracer("plain")
		ctx, _ := tracer.Start(b.Context(), "run")
		b.ReportAllocs()
		for b.Loop() {
			_, span := tracer.Start(ctx, "agentstate.commit", trace.WithAttributes(attribute.String("gen_ai.conversation.id", "ann")))
			span.SetAttributes(
				attribute.Int("agentstate.version", 7), attribute.Int("agentstate.effects", 3),
				attribute.Int("agentstate.bytes", 1000), attribute.Int("agentstate.tries", 1),
			)
			span.End()
		}
	})
	b.Run("otel-span/subject", func(b *testing.B) {
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(discard{}))
		tracer := newIdle(b, provider)
		run := tracer.Start(b.Context(), work.Operation{Kind: work.OpRun, UserID: "ann"})
		op := work.Operation{Kind: work.OpCommit, UserID: "ann", Version: 7, Effects: 3, Bytes: 1000, Tries: 1}
		b.ReportAllocs()
		for b.Loop() {
			tracer.End(tracer.Start(run, op), op)
		}
	})
	b.Run("otel-commit/subject", benchmarkCommit)
}

// discard is an exporter that exports nothing.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// benchmarkCommit measures commits on SQLite with everything recorded, in turns
// with commits without a Tracer, because a disk is slow at times. The metric is
// the ratio of their medians.
func benchmarkCommit(b *testing.B) {
	e := newTelemetry(b, otelstate.Options{})
	commit := func(tracer work.Tracer, file string) func() time.Duration {
		db, err := sqlitestore.Open(b.Context(), filepath.Join(b.TempDir(), file), nil)
		require.NoError(b, err)
		b.Cleanup(func() { _ = db.Close() })
		_, runs := workspacetest.Hold(b, db, workspace.Options{Tracer: tracer})
		run := runs.Begin(b, "ann", text("1"))
		return func() time.Duration {
			began := time.Now()
			if err := visits.Set(run.State(), 1); err != nil {
				b.Fatal(err)
			}
			if err := run.Commit(run.Context()); err != nil {
				b.Fatal(err)
			}
			return time.Since(began)
		}
	}
	traced, plain := commit(e.Tracer, "traced.db"), commit(nil, "plain.db")
	var with, without []time.Duration
	for b.Loop() {
		for range 10 {
			without, with = append(without, plain()), append(with, traced())
		}
	}
	slices.Sort(with)
	slices.Sort(without)
	b.ReportMetric(float64(with[len(with)/2])/float64(without[len(without)/2]), "traced/plain")
}

// Recording costs memory for what is exported, and not for what has happened.
func TestTracerForgets(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := newIdle(t, sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	m := open(t, store.NewMemory(), workspace.Options{Tracer: tracer, Run: workspacetest.Visit})
	for i := range 1000 {
		_, err := m.Handle(t.Context(), "user"+time.Duration(i).String(), text("1"))
		require.NoError(t, err)
	}
	conversations := map[string]bool{}
	for _, s := range exporter.GetSpans() {
		for _, a := range s.Attributes {
			if a.Key == "gen_ai.conversation.id" {
				conversations[a.Value.AsString()] = true
			}
		}
	}
	require.Len(t, conversations, 1000, "also beyond those that are remembered")
}
