package otelstate_test

import (
	"context"
	"fmt"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agentstate/state"
	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// The spans of a message: its handling, the run, an agent and the call of a tool.
func ExampleNew() {
	ctx := context.Background()
	exporter := tracetest.NewInMemoryExporter()
	tracer, err := otelstate.New(&otelstate.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)),
		Workflow:       "desk",
	})
	if err != nil {
		panic(err)
	}
	type in struct{ Order string }
	search := tool.Must(tool.New("search", "", func(_ context.Context, in in) (string, error) { return "in transit", nil }))
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(state.Team{"support": {}}), Tracer: tracer,
		Run: func(ctx context.Context, run *workspace.Run) error {
			st := run.State().As("support")
			ctx, end := tracer.Agent(ctx, st)
			tool.Run(ctx, st, []*tool.Tool{search}, []state.ToolCall{{ID: "c1", Name: "search", Input: `{"Order":"W1"}`}})
			end(nil)
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	_, err = m.Handle(ctx, "ann", workspace.Message{Content: state.UserText("Where is my order?")})
	fmt.Println(err, m.Close())

	// The innermost span ends first.
	for _, span := range exporter.GetSpans() {
		if !strings.HasPrefix(span.Name, "agentstate.co") { // commits and the like
			fmt.Println(span.Name)
		}
	}
	// Output:
	// <nil> <nil>
	// execute_tool search
	// invoke_agent support
	// invoke_workflow desk
	// agentstate.handle
}
