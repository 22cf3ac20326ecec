package otelstate_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

func TestMain(m *testing.M) { os.Exit(worker.Main(m, workOnFile)) }

// fileTask is the task of a process that opens a file.
type fileTask struct {
	File string
	Role string // "sends", "hangs" or "finishes"
}

// startedSpan is what a process prints when a span starts: it may be killed
// before the span ends.
type startedSpan struct {
	Name, Trace, Span string
	Parent            string
	Links             []string // their spans
}

// printer is a span processor that prints.
type printer struct{}

func (printer) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	line := startedSpan{Name: s.Name(), Trace: s.SpanContext().TraceID().String(), Span: s.SpanContext().SpanID().String()}
	if s.Parent().IsValid() {
		line.Parent = s.Parent().SpanID().String()
	}
	for _, link := range s.Links() {
		line.Links = append(line.Links, link.SpanContext.SpanID().String())
	}
	_ = worker.Print(line)
}
func (printer) OnEnd(sdktrace.ReadOnlySpan)      {}
func (printer) Shutdown(context.Context) error   { return nil }
func (printer) ForceFlush(context.Context) error { return nil }

// workOnFile is a process.
func workOnFile(task fileTask) error {
	ctx := context.Background()
	tracer, err := otelstate.New(&otelstate.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(printer{}))})
	if err != nil {
		return err
	}
	db, err := sqlitestore.Open(ctx, task.File, nil)
	if err != nil {
		return err
	}
	opts := &workspace.Options{
		Schema: workspacetest.Schema, TTL: time.Second, Tracer: tracer,
		Run: func(ctx context.Context, run *workspace.Run) error {
			if task.Role == "sends" {
				<-ctx.Done() // the first message, while the second one is queued
				return context.Cause(ctx)
			}
			if task.Role == "finishes" || run.Message().ID == "1" {
				return nil
			}
			if err := visits.Set(run.State(), 1); err != nil {
				return err
			}
			if err := run.Commit(ctx); err != nil {
				return err
			}
			if err := worker.Print(startedSpan{Name: "committed"}); err != nil {
				return err
			}
			select {} // until it is killed
		},
	}
	m, err := workspace.Open(ctx, db, opts)
	if err != nil {
		return err
	}
	if task.Role == "sends" {
		for _, id := range []string{"1", "2"} {
			if _, err := m.Submit(ctx, "ann", text(id)); err != nil {
				return err
			}
		}
		return m.Close()
	}
	if err := m.Recover(ctx); err != nil {
		return err
	}
	if err := m.Wait(ctx); err != nil {
		return err
	}
	return m.Close()
}

// A message that one process has queued, another one has begun to handle until
// it was killed, and a third one has handled has three traces, each of which is
// linked to those before.
func TestThreeProcessesAreLinked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "desk.db")
	begin := func(role string) *worker.Process {
		p, err := worker.Start(t.Context(), fileTask{file, role})
		require.NoError(t, err)
		t.Cleanup(p.Stop)
		return p
	}
	// rest returns the spans until the output of a process ends.
	rest := func(p *worker.Process, until string) (spans []startedSpan) {
		t.Helper()
		for {
			var s startedSpan
			ok, err := p.Read(&s)
			require.NoError(t, err)
			if !ok || s.Name == until {
				require.Equal(t, until == "", !ok, "%v", spans)
				return spans
			}
			spans = append(spans, s)
		}
	}
	// last returns the last span with a name.
	last := func(spans []startedSpan, name string) startedSpan {
		t.Helper()
		spans = slices.DeleteFunc(slices.Clone(spans), func(s startedSpan) bool { return s.Name != name })
		require.NotEmpty(t, spans, name)
		return spans[len(spans)-1]
	}

	sender := begin("sends")
	spans := rest(sender, "")
	require.NoError(t, sender.Wait())
	sent := last(spans, "agentstate.handle")
	require.Empty(t, sent.Links)

	killed := begin("hangs")
	spans = rest(killed, "committed")
	first, commit := last(spans, "invoke_workflow"), last(spans, "agentstate.commit")
	killed.Stop()
	require.Equal(t, []string{sent.Span}, first.Links)
	require.Equal(t, []string{first.Trace, first.Span}, []string{commit.Trace, commit.Parent})

	third := begin("finishes")
	spans = rest(third, "")
	require.NoError(t, third.Wait())
	second := last(spans, "invoke_workflow")
	require.Equal(t, []string{sent.Span, first.Span}, second.Links)
	require.Empty(t, first.Parent)
	require.Empty(t, second.Parent)
	traces := []string{sent.Trace, first.Trace, second.Trace}
	slices.Sort(traces)
	require.Len(t, slices.Compact(traces), 3, "hours may lie between them")
}
