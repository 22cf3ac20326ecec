// Observe is a support desk whose spans and metrics go to standard output, one
// line of JSON for each span and one for all metrics. A second process, here a
// second Manager, handles the message that the first one has left: its spans
// are linked to those of the first one.
//
//	go run .
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/agentstate/state"
	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var (
	orders = &state.Field[string]{Name: "orders", Read: state.Public, Write: state.Public}
	token  = &state.Field[string]{Name: "token", Secret: true, Read: state.Public}
	schema = state.MustSchema(state.Team{"support": {}}, orders, token)
)

type lookup struct {
	Order string `json:"order"`
}

var tools = []*tool.Tool{
	tool.Must(tool.New("find_order", "Finds an order.", func(_ context.Context, in lookup) (string, error) {
		return "order " + in.Order + " is in transit", nil
	}, tool.To(orders, ""))),
	tool.Must(tool.New("refund", "Refunds an order.", func(context.Context, lookup) (string, error) {
		return "", errors.New("the shop is closed")
	})),
}

// run runs the desk and writes spans and metrics.
func run(ctx context.Context, out io.Writer) error {
	spans, err := stdouttrace.New(stdouttrace.WithWriter(out))
	if err != nil {
		return err
	}
	numbers, err := stdoutmetric.New(stdoutmetric.WithWriter(out))
	if err != nil {
		return err
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)) // a program uses WithBatcher
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(numbers)))
	tracer, err := otelstate.New(&otelstate.Options{TracerProvider: traces, MeterProvider: meters, Workflow: "desk"})
	if err != nil {
		return err
	}
	db := store.NewMemory()
	if err := first(ctx, tracer, db); err != nil {
		return err
	}
	if err := second(ctx, tracer, db); err != nil {
		return err
	}
	return errors.Join(meters.Shutdown(ctx), traces.Shutdown(ctx))
}

// first handles one message, and ends while another one waits.
func first(ctx context.Context, tracer *otelstate.Tracer, db store.Store) error {
	begun := make(chan bool, 1)
	m, err := workspace.Open(ctx, db, &workspace.Options{
		Schema: schema, Tracer: tracer,
		Run: func(ctx context.Context, run *workspace.Run) error {
			if run.Message().ID == "1" {
				return answer(ctx, tracer, run)
			}
			begun <- true
			<-ctx.Done()
			return context.Cause(ctx)
		},
	})
	if err != nil {
		return err
	}
	stop, err := tracer.Register(m)
	if err != nil {
		return err
	}
	if _, err := m.Handle(ctx, "ann", message("1", "Where is my order W1?")); err != nil {
		return err
	}
	for _, id := range []string{"2", "3"} {
		if _, err := m.Submit(ctx, "ann", message(id, "And order W"+id+"?")); err != nil {
			return err
		}
	}
	<-begun
	if err := m.Close(); !errors.Is(err, workspace.ErrBusy) { // it cuts off the run of message 2
		return fmt.Errorf("observe: close with a run under way: %w", err)
	}
	return stop()
}

// second handles what the first process has left.
func second(ctx context.Context, tracer *otelstate.Tracer, db store.Store) error {
	m, err := workspace.Open(ctx, db, &workspace.Options{
		Schema: schema, Tracer: tracer,
		Run: func(ctx context.Context, run *workspace.Run) error { return answer(ctx, tracer, run) },
	})
	if err != nil {
		return err
	}
	for _, id := range []string{"2", "3"} {
		if _, err := m.Await(ctx, "ann", id); err != nil {
			return errors.Join(err, m.Close())
		}
	}
	return m.Close()
}

func message(id, text string) workspace.Message {
	return workspace.Message{ID: id, Content: state.UserText(text)}
}

// response is what the model answers.
const response = `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"finish_reason":"tool_calls",
"message":{"role":"assistant","content":null}}],"usage":{"prompt_tokens":71,"completion_tokens":46,"total_tokens":117}}`

// answer is the loop of the agent, with a model that always calls both tools.
func answer(ctx context.Context, tracer *otelstate.Tracer, run *workspace.Run) (err error) {
	if err := token.Set(run.State(), "tok-4711-abc"); err != nil { // never exported
		return err
	}
	st := run.State().As("support")
	ctx, end := tracer.Agent(ctx, st)
	defer func() { end(err) }()
	calls := []state.ToolCall{
		{ID: "call-1", Name: "find_order", Input: `{"order":"W1"}`},
		{ID: "call-2", Name: "refund", Input: `{"order":"W1"}`},
	}
	began := time.Now()
	result := state.InferenceResult{
		Agent: "support", Raw: response, StartedAt: began, CreatedAt: began.Add(20 * time.Millisecond),
		Output: []state.Message{state.ToolCalls(calls...)},
	}
	if err := run.State().History().Append(result); err != nil {
		return err
	}
	_, err = tool.Answer(ctx, st, tools, calls)
	return err
}
