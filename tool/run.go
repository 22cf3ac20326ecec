package tool

import (
	"context"
	"fmt"

	"github.com/agentstate/state"
)

// maxParallel is how many functions Run calls at the same time. The model
// chooses how many calls a step has.
const maxParallel = 128

// Run makes the calls of one step, which are those of one message of the model,
// and returns their results, in the order of the calls. It is [BeginStep],
// all calls in batches, and [Step.End]. Only suspended calls have no result.
//
// The calls of a batch are made at the same time, at most 128 of them. They
// read the state as it is when the batch begins. Outputs are written batch by
// batch and within a batch in the order of the calls. Each call is one
// transaction, whose cause is the call's ID.
//
// The batches follow from what the tools declare with From and To, and from the
// order of the calls:
//
//   - A call that reads a field comes after all calls that write it, wherever
//     they are in the step. Calls that write the same field may share a batch.
//   - Calls that wait for each other are a cycle. The first of them is made before
//     the others. The rule then applies again to the calls that remain.
//   - A stateful tool may read and write anything. It is alone in its batch, after
//     all calls in front of it and before all calls behind it. Neighbours that are
//     annotated as ReadOnly and have no outputs share one.
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
// The error is that of BeginStep, for a mistake of the program. No function has been
// called then. Everything that goes wrong with a call is the Err of its Result.
//
// Others may use st at the same time, and Run may be called concurrently.
func Run(ctx context.Context, st *state.State, tools []*Tool, calls []state.ToolCall) ([]Result, error) {
	s, err := BeginStep(ctx, st, tools, calls)
	if err != nil {
		return nil, err
	}
	s.Run(ctx)
	return s.End(), nil
}

// Run makes all calls of a step of which none has been made.
func (s *Step) Run(ctx context.Context) {
	s.untried = true
	var batches [][]int
	if ctx != nil { // else no function is called
		batches = plan(s.calls)
	}
	s.order = s.order[:0]
	s.batches = len(batches)
	for b, batch := range batches {
		for _, i := range batch {
			s.calls[i].batch = b + 1
			s.order = append(s.order, &s.calls[i])
		}
	}
	for i := range s.calls {
		if c := &s.calls[i]; c.tool == nil || ctx == nil {
			_, _ = s.Call(ctx, i)
		}
	}
	for _, batch := range batches {
		s.runBatch(ctx, batch)
	}
}

// runBatch makes the calls of a batch at the same time. It returns when all
// have returned or ctx has ended.
func (s *Step) runBatch(ctx context.Context, batch []int) {
	start := s.st.Snapshot()
	returned := make(chan struct{}, len(batch)) // a call that returns late finds room and ends
	running := 0
	await := func() (ended bool) {
		select {
		case <-returned:
			running--
		case <-ctx.Done():
		}
		return ctx.Err() != nil
	}
	for _, i := range batch {
		if ctx.Err() != nil || running == maxParallel && await() {
			break
		}
		running++
		go func() {
			defer func() { returned <- struct{}{} }() // the function may end its goroutine
			_, _ = s.make(ctx, &s.calls[i], start)
		}()
	}
	for running > 0 && !await() {
	}
	s.giveUp(ctx, batch)
}

// giveUp fails the calls of a batch that have not returned when ctx has ended.
func (s *Step) giveUp(ctx context.Context, batch []int) {
	type abandonedCall struct {
		trace  *callTrace
		result Result
	}
	var abandoned []abandonedCall // of which a Tracer is told without the lock
	s.mu.Lock()
	for _, i := range batch {
		switch c := &s.calls[i]; c.phase {
		case pending:
			s.fail(c, notCalled(c, ctx))
		case running:
			s.fail(c, fmt.Errorf("tool %q: not finished: %w", c.Name, ctx.Err()))
			if c.trace != nil {
				abandoned = append(abandoned, abandonedCall{c.trace, c.result})
				c.trace = nil
			}
		}
	}
	s.mu.Unlock()
	for _, a := range abandoned {
		a.trace.end(a.result)
	}
}

// Answer makes the calls of one step as [Run] does, and adds the results to the
// history of st in one version, as [state.History.Answer] does. It returns the
// results, in the order of the calls. Suspended calls have none, and stay open.
//
//	err := st.History().Append(state.InferenceResult{Output: output}) // what the model has said
//	results, err := tool.Answer(ctx, st, tools, st.History().Pending())
//
// With [state.History.Pending], a process that goes on where another one has
// stopped makes the calls that have been left, in the same way.
//
// The error is that of Run, or that of History.Answer, such as
// [state.ErrUnknownCall] if the calls are not in the history and
// [state.ErrAnswered] if they have a result. No function has been called then. If
// another program answers a call meanwhile, the results are returned with the
// error.
func Answer(ctx context.Context, st *state.State, tools []*Tool, calls []state.ToolCall) ([]Result, error) {
	if err := inside.CheckAnswers(st, calls); err != nil {
		return nil, err
	}
	results, err := Run(ctx, st, tools, calls)
	if err != nil {
		return nil, err
	}
	return addResults(st, results)
}

// Answer is [Step.End], and adds the results to the history of the state of the
// step, as the function [Answer] does.
func (s *Step) Answer() ([]Result, error) { return addResults(s.st, s.End()) }

func addResults(st *state.State, results []Result) ([]Result, error) {
	messages := make([]state.ToolResultMessage, len(results))
	for i, r := range results {
		messages[i] = r.Message
	}
	return results, st.History().Answer(messages...)
}
