package tool

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
)

// Result is the result of one call.
type Result struct {
	// Message answers the call: with what the function returned, or with
	// [state.ToolError] and the text of Err. The model reads it.
	Message state.ToolResultMessage
	// Err is the reason why the call failed, or nil. The To options of a failed
	// call have written nothing. What a stateful tool wrote itself stays.
	Err error
}

// Run makes the calls of one step, which are those of one message of the model,
// and returns a result for each, in the order of the calls.
//
// The calls are made in the batches of [Plan], and those of one batch at the
// same time. A batch reads the state as it is when the batch starts. When all
// calls of the batch have returned, their outputs are written in the order of
// the calls. Each call is one transaction, whose cause is the call's ID.
//
// A call fails on its own if its tool does not exist or exists twice, if its
// arguments are bad, if a field is missing, if the function returns an error or
// panics, or if st refuses an output. Calls that wait for it are made
// regardless. A nil tool does not exist.
//
// When ctx ends, Run writes the outputs of the calls that have returned. The
// others fail with an error that is ctx.Err(). Run does not wait for functions
// that are still running: the goroutine of such a function ends when the
// function returns, and its result is dropped. A stateful function should look
// at its context before it writes.
//
// Others may use st at the same time, and Run may be called concurrently.
func Run(ctx context.Context, st *state.State, tools []*Tool, calls []state.ToolCall) []Result {
	box := newToolbox(tools)
	toolOf := box.toolsOf(calls)
	results := make([]Result, len(calls))
	for i, call := range calls {
		if toolOf[i] == nil {
			results[i] = failedCall(call, box.missingTool(call.Name))
		}
	}
	for _, batch := range planBatches(toolOf) {
		for n, o := range runBatch(ctx, st, toolOf, calls, batch) {
			i := batch[n]
			results[i] = finishCall(st, toolOf[i], calls[i], o)
		}
	}
	return results
}

// outcome is what a call returned.
type outcome struct {
	out state.JSON
	err error
}

// runBatch makes the calls of a batch at the same time. It returns the outcome
// of each when all have returned or ctx has ended.
func runBatch(
	ctx context.Context, st *state.State, toolOf []*Tool, calls []state.ToolCall, batch []int,
) []outcome {
	outcomes := make([]outcome, len(batch))
	if err := ctx.Err(); err != nil {
		for n, i := range batch {
			outcomes[n].err = fmt.Errorf("tool %q: not called: %w", calls[i].Name, err)
		}
		return outcomes
	}
	type numbered struct {
		n int
		outcome
	}
	returned := make(chan numbered, len(batch)) // a call that returns late finds room and ends
	start := st.Snapshot()
	for n, i := range batch {
		go func() {
			// The function may end its goroutine; then this outcome is sent.
			o := outcome{err: fmt.Errorf("tool %q: the function did not return", calls[i].Name)}
			defer func() { returned <- numbered{n, o} }()
			o.out, o.err = startCall(ctx, st, start, toolOf[i], calls[i])
		}()
	}
	finished := make([]bool, len(batch))
	take := func(o numbered) { outcomes[o.n], finished[o.n] = o.outcome, true }
	for range batch {
		select {
		case o := <-returned:
			take(o)
			continue
		case <-ctx.Done():
		}
		for len(returned) > 0 {
			take(<-returned)
		}
		for n, i := range batch {
			if !finished[n] {
				outcomes[n].err = fmt.Errorf("tool %q: not finished: %w", calls[i].Name, ctx.Err())
			}
		}
		break
	}
	return outcomes
}

// startCall calls the function of a tool with the fields of start.
func startCall(
	ctx context.Context, st, start *state.State, t *Tool, call state.ToolCall,
) (state.JSON, error) {
	return t.recoverPanic(func() (state.JSON, error) {
		input, err := t.prepare(start, call.Input)
		if err != nil {
			return "", err
		}
		return t.invoke(ctx, st.WithCause(call.ID), input)
	})
}

// finishCall writes the outputs of a call that did not fail, and makes its
// result.
func finishCall(st *state.State, t *Tool, call state.ToolCall, o outcome) Result {
	if o.err == nil {
		_, o.err = t.recoverPanic(func() (state.JSON, error) {
			return "", t.writeOutputs(st.WithCause(call.ID), o.out)
		})
	}
	if o.err != nil {
		return failedCall(call, o.err)
	}
	return Result{Message: state.ToolResult(call, o.out)}
}

func failedCall(call state.ToolCall, err error) Result {
	return Result{Message: state.ToolError(call, err.Error()), Err: err}
}
