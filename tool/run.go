package tool

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/agentstate/state"
)

// Result is what became of one call.
type Result struct {
	// Message answers the call: with what the function returned, or with
	// [state.ToolError] and the text of Err. The model reads it.
	Message state.ToolResultMessage
	// Err says why the call failed. Nothing of a failed call was written
	// through its To options; what a stateful tool wrote itself stays.
	Err error
}

// Run makes the calls of one step, which are those of one message of the model,
// and returns a result for each, in the order of the calls.
//
// The calls are made in the batches of [Plan], those of a batch at the same
// time. A batch reads the state as it is when it starts. When all its calls have
// returned, their outputs are written in the order of the calls, each call as
// one transaction whose cause is the call's ID.
//
// A tool that does not exist, or twice, bad arguments, a missing field, an error
// or a panic of the function and an output that st does not take fail that call
// only; calls that wait for it are made all the same. A nil tool does not exist.
//
// When ctx ends, Run writes the outputs of the calls that have returned and
// fails the others, with an error that is ctx.Err(). It does not wait for
// functions that go on: such a goroutine ends when its function does, and what
// the function returns then is dropped. A stateful function should look at
// its context before it writes.
//
// st may be used by others meanwhile, and Run may be called many times at once.
func Run(ctx context.Context, st *state.State, tools []*Tool, calls []state.ToolCall) []Result {
	box := newToolbox(tools)
	picked := box.pick(calls)
	results := make([]Result, len(calls))
	for i, call := range calls {
		if picked[i] == nil {
			results[i] = failure(call, box.missing(call.Name))
		}
	}
	for _, batch := range schedule(picked) {
		returned := runBatch(ctx, st, picked, calls, batch)
		for _, i := range batch {
			results[i] = conclude(st, picked[i], calls[i], returned[i])
		}
	}
	return results
}

// outcome is what a call returned.
type outcome struct {
	call int // its index
	out  state.JSON
	err  error
}

// runBatch makes the calls of a batch at the same time and returns what they
// returned, until ctx ends.
func runBatch(ctx context.Context, st *state.State, tools []*Tool, calls []state.ToolCall, batch []int) map[int]outcome {
	outcomes := make(map[int]outcome, len(batch))
	if err := ctx.Err(); err != nil {
		for _, i := range batch {
			outcomes[i] = outcome{i, "", fmt.Errorf("tool %q: not called: %w", calls[i].Name, err)}
		}
		return outcomes
	}
	start := st.Snapshot()
	// There is room for all, so that nobody who comes late is stuck.
	returned := make(chan outcome, len(batch))
	for _, i := range batch {
		go func() {
			// Sent by defer, for a function may end its goroutine.
			o := outcome{i, "", fmt.Errorf("tool %q: the function did not return", calls[i].Name)}
			defer func() { returned <- o }()
			o.out, o.err = attempt(tools[i], func() (state.JSON, error) {
				in, err := tools[i].prepare(start, calls[i].Input)
				if err != nil {
					return "", err
				}
				return tools[i].invoke(ctx, st.WithCause(calls[i].ID), in)
			})
		}()
	}
	for len(outcomes) < len(batch) {
		select {
		case o := <-returned:
			outcomes[o.call] = o
			continue
		case <-ctx.Done():
		}
		for len(returned) > 0 {
			o := <-returned
			outcomes[o.call] = o
		}
		for _, i := range batch {
			if _, ok := outcomes[i]; !ok {
				outcomes[i] = outcome{i, "", fmt.Errorf("tool %q: not finished: %w", calls[i].Name, ctx.Err())}
			}
		}
	}
	return outcomes
}

// conclude writes what a call returned and makes its result.
func conclude(st *state.State, t *Tool, call state.ToolCall, o outcome) Result {
	if o.err == nil {
		_, o.err = attempt(t, func() (state.JSON, error) {
			return "", t.merge(st.WithCause(call.ID), o.out)
		})
	}
	if o.err != nil {
		return failure(call, o.err)
	}
	return Result{Message: state.ToolResult(call, o.out)}
}

// attempt calls fn, which may run methods of the types of parameters and
// fields. A panic in one of them is an error as well.
func attempt(t *Tool, fn func() (state.JSON, error)) (out state.JSON, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = "", &PanicError{Tool: t.Name(), Value: p, Stack: debug.Stack()}
		}
	}()
	return fn()
}

func failure(call state.ToolCall, err error) Result {
	return Result{Message: state.ToolError(call, err.Error()), Err: err}
}

// toolbox finds tools by name.
type toolbox struct {
	tools map[string]*Tool // nil for a name that several have
	names []string         // in the order of the tools
}

func newToolbox(tools []*Tool) toolbox {
	box := toolbox{tools: make(map[string]*Tool, len(tools))}
	for _, t := range tools {
		if t == nil || t.Name() == "" {
			continue
		}
		if _, twice := box.tools[t.Name()]; twice {
			box.tools[t.Name()] = nil
			continue
		}
		box.tools[t.Name()] = t
		box.names = append(box.names, t.Name())
	}
	return box
}

// pick returns the tool of each call, or nil if it has none.
func (box toolbox) pick(calls []state.ToolCall) []*Tool {
	picked := make([]*Tool, len(calls))
	for i, call := range calls {
		picked[i] = box.tools[call.Name]
	}
	return picked
}

// missing says why there is no tool of a name.
func (box toolbox) missing(name string) error {
	if _, twice := box.tools[name]; twice {
		return fmt.Errorf("there are several tools %q", name)
	}
	known := "none"
	if len(box.names) > 0 {
		known = strings.Join(box.names, ", ")
	}
	return fmt.Errorf("tool %q not found; there are %s", name, known)
}
