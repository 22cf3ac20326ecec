package otelstate_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

var (
	text     = workspacetest.Text
	whenBusy = workspacetest.WhenBusy
	open     = workspacetest.Open
	visits   = workspacetest.Visits
	token    = workspacetest.Token
)

// Responses of the providers.
const (
	chatResponse = `{"id":"c1","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":71,"completion_tokens":46,"total_tokens":117,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":30}}}`
	messagesResponse = `{"id":"m1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"a"}],"stop_reason":"tool_use",` +
		`"usage":{"input_tokens":5,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":7}}`
	geminiResponse = `{"responseId":"g1","modelVersion":"gemini-3","candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}],` +
		`"usageMetadata":{"promptTokenCount":22,"candidatesTokenCount":9,"totalTokenCount":31}}`
)

var orders = &state.Field[string]{Name: "orders", Read: state.Public, Write: state.Public}

var deskSchema = state.MustSchema(state.Team{"support": {}}, workspacetest.Visits, workspacetest.Token, orders)

type orderIn struct {
	Order string `json:"order"`
}

// deskTools are a tool that works and one that fails.
var deskTools = []*tool.Tool{
	tool.Must(tool.New("search", "", func(_ context.Context, in orderIn) (string, error) { return "found " + in.Order, nil })),
	tool.Must(tool.New("refund", "", func(context.Context, orderIn) (string, error) { return "", errors.New("the shop is closed") })),
}

// desk handles messages by their ids.
func desk(e *telemetry, ttl time.Duration) func(ctx context.Context, run *workspace.Run) error {
	return func(ctx context.Context, run *workspace.Run) error {
		answered := func(raw string, started time.Time) {
			_ = run.State().History().Append(state.InferenceResult{
				Agent: "support", Input: "question", Output: []state.Message{state.AssistantText("answer")}, Raw: raw,
				StartedAt: started, CreatedAt: time.Now(),
			})
		}
		switch id := run.Message().ID; {
		case id == "tools":
			st := run.State().As("support")
			agent, end := e.Agent(ctx, st)
			began := time.Now()
			time.Sleep(time.Second)
			answered(messagesResponse, began)
			must(tool.Run(agent, st, deskTools, []state.ToolCall{
				{ID: "c1", Name: "search", Input: `{"order":"W1"}`},
				{ID: "c2", Name: "refund", Input: `{"order":"W1"}`},
				{ID: "c3", Name: "made_up", Input: `{}`},
			}))
			end(nil)
			if err := run.Commit(ctx); err != nil {
				return err
			}
			answered(geminiResponse, time.Time{})
			time.Sleep(ttl / 10) // while another message is queued
		case id == "fails":
			answered(chatResponse, time.Now())
			return errors.New("broken")
		case id == "waits", id == "dies" && run.Attempt() == 0:
			_ = visits.Set(run.State(), 1)
			_ = run.Commit(ctx)
			<-ctx.Done()
			return context.Cause(ctx)
		case id == "retries" && run.Attempt() == 0:
			return workspace.RetryAfter(errors.New("busy"), time.Millisecond)
		}
		return nil
	}
}

// The spans and metrics of a desk are exactly these.
func TestDesk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, ttl := store.NewMemory(), 30*time.Second
		first, second := newTelemetry(t, otelstate.Options{Workflow: "desk"}), newTelemetry(t, otelstate.Options{Workflow: "desk"})
		process, kill := workspacetest.AsProcess(db)
		m := open(t, process, workspace.Options{Schema: deskSchema, TTL: ttl, Run: desk(first, ttl), Tracer: first.Tracer})
		stop, err := first.Register(m)
		require.NoError(t, err)
		submit := func(msg workspace.Message) {
			t.Helper()
			_, err := m.Submit(t.Context(), "ann", msg)
			require.NoError(t, err)
			synctest.Wait()
		}
		// A request of the program is the parent of Handle, not of what is queued.
		ctx, request := first.traces.Tracer("program").Start(t.Context(), "GET /", trace.WithSpanKind(trace.SpanKindServer))
		go func() {
			_, _ = m.Handle(ctx, "ann", text("tools"))
			request.End()
		}()
		synctest.Wait()
		submit(text("queued"))
		submit(whenBusy(workspace.BusyReject, text("rejected")))
		require.NoError(t, m.Wait(t.Context()))
		submit(text("queued")) // a duplicate
		_, err = m.Handle(t.Context(), "ann", text("fails"))
		require.Error(t, err)
		_, err = m.Handle(t.Context(), "ann", text("retries"))
		require.NoError(t, err)
		submit(text("waits"))
		submit(whenBusy(workspace.BusyInterrupt, text("interrupts")))
		require.NoError(t, m.Wait(t.Context()))
		require.NoError(t, m.Discard(t.Context(), "ann", "fails"))
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }))
		submit(text("dies"))
		require.Contains(t, first.series(t), "agentstate.runs.active 1")
		kill()

		other := open(t, db, workspace.Options{Schema: deskSchema, TTL: ttl, Run: desk(second, ttl), Tracer: second.Tracer})
		require.NoError(t, workspacetest.Settle(t.Context(), other))
		_, err = other.Reset(t.Context(), "ann")
		require.NoError(t, err)
		_ = m.Close()
		require.NoError(t, other.Close())
		require.NoError(t, stop())
		require.Empty(t, first.unended())
		require.Empty(t, second.unended())
		requireFile(t, "desk_spans.txt", tree(first, second))
		requireFile(t, "desk_metrics.txt", strings.Join(first.series(t), "\n")+"\n\n"+strings.Join(second.series(t), "\n")+"\n")
	})
}

var update = flag.Bool("update", false, "write the files of testdata")

// requireFile requires the text of a file of testdata.
func requireFile(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")), "%s", name)
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
