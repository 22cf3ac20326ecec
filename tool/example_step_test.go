package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// A framework makes the calls of a message itself, here the last one first. The
// notes are in the order of the calls nevertheless.
func ExampleBeginStep() {
	notes := &state.Field[[]string]{Name: "notes"}
	st := state.New(state.MustSchema(notes))
	look := tool.Must(tool.New("look", "Look something up.",
		func(_ context.Context, in struct {
			Word string `json:"word"`
		}) (string, error) {
			return strings.ToUpper(in.Word), nil
		},
		tool.To(notes, "")))
	calls := []state.ToolCall{
		{ID: "c1", Name: "look", Input: `{"word":"rain"}`},
		{ID: "c2", Name: "look", Input: `{"ward":"Spain"}`},
		{ID: "c3", Name: "look", Input: `{"word":"plain"}`},
	}
	ctx := context.Background()
	_ = st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}})

	step, err := tool.BeginStep(ctx, st, []*tool.Tool{look}, calls)
	if err != nil {
		panic(err)
	}
	for _, i := range []int{2, 1, 0} { // or concurrently, or not all of them
		r, err := step.Call(ctx, i)
		if err != nil {
			continue // the call has no result: it waits for a person
		}
		fmt.Println(r.Message.Text()) // what the model reads, also if r.Err is not nil
	}
	if _, err := step.Answer(); err != nil { // in the order of the calls
		fmt.Println(err)
	}

	fmt.Println(notes.GetOr(st, nil), state.ListLen(st, state.Messages))
	// Output:
	// PLAIN
	// tool "look": bad arguments:
	// - "ward": is unknown, there are "word"
	// - "word": want string, got nothing
	// RAIN
	// [RAIN PLAIN] 4
}

// The second call waits for a person. The first has its result, and what it
// wrote is stored. When the person has decided, the call is made in a step of
// its own, with the same id.
func ExampleSuspend() {
	var (
		approved = &state.Field[bool]{Name: "approved"}
		log      = &state.Field[[]string]{Name: "log"}
	)
	st := state.New(state.MustSchema(approved, log))
	ctx, history := context.Background(), st.History()

	errApproval := errors.New("a person must approve the refund")
	refund := tool.Must(tool.New("refund", "Refund an amount.",
		func(_ context.Context, in struct {
			Amount   int  `json:"amount"`
			Approved bool `json:"approved,omitempty"`
		}) (string, error) {
			if in.Amount > 100 && !in.Approved {
				return "", tool.Suspend(errApproval)
			}
			return fmt.Sprintf("refunded %d", in.Amount), nil
		},
		tool.From(approved, "approved"), tool.To(log, "")))

	calls := []state.ToolCall{
		{ID: "c1", Name: "refund", Input: `{"amount":20}`},
		{ID: "c2", Name: "refund", Input: `{"amount":500}`},
	}
	_ = history.Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}})
	step, err := tool.BeginStep(ctx, st, []*tool.Tool{refund}, calls)
	if err != nil {
		panic(err)
	}
	for i, call := range calls {
		_, err := step.Call(ctx, i)
		fmt.Println(call.ID, err, errors.Is(err, tool.ErrSuspended), errors.Is(err, errApproval))
	}
	for _, r := range step.End() {
		fmt.Println(r.Index, r.Message.Text(), history.Answer(r.Message))
	}
	fmt.Println(log.GetOr(st, nil))

	_ = approved.Set(st, true) // days later, in another process
	results, err := tool.Answer(ctx, st, []*tool.Tool{refund}, history.Pending())
	fmt.Println(results[0].Message.Text(), err)
	fmt.Println(log.GetOr(st, nil))
	// Output:
	// c1 <nil> false false
	// c2 tool "refund": a person must approve the refund true true
	// 0 refunded 20 <nil>
	// [refunded 20]
	// refunded 500 <nil>
	// [refunded 20 refunded 500]
}

// The key of the call is one for what must be done once.
func ExampleCallOf() {
	pay := tool.Must(tool.New("pay", "Pay an amount.",
		func(ctx context.Context, in struct {
			Amount int `json:"amount"`
		}) (string, error) {
			call, _ := tool.CallOf(ctx)
			return fmt.Sprintf("paid %d with key %s for %s", in.Amount, call.Key, call.Agent), nil
		}))
	st := state.New(nil).As("billing")
	said := state.ToolCalls(state.ToolCall{ID: "c1", Name: "pay", Input: `{"amount":5}`})
	_ = st.History().Append(state.InferenceResult{Output: []state.Message{said}}) // draws the key
	calls := st.History().Pending()
	results, err := tool.Answer(context.Background(), st, []*tool.Tool{pay}, calls)
	if err != nil {
		panic(err)
	}
	for _, r := range results {
		fmt.Println(strings.Replace(r.Message.Text(), calls[0].Key, "KEY", 1))
	}
	// Output: paid 5 with key KEY for billing
}
