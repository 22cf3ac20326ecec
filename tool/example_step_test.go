package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// An agent loop that makes the calls of a step itself, as frameworks do: here
// all at the same time. The notes are in the order of the calls nevertheless.
func ExampleBegin() {
	notes := &state.Field[[]string]{Name: "notes"}
	st := state.New(state.MustSchema(notes))
	look := tool.Must(tool.New("look", "Look something up.",
		func(_ context.Context, in struct {
			Word string `json:"word"`
		}) (string, error) {
			return strings.ToUpper(in.Word), nil
		},
		tool.To(notes, "")))
	tools := []*tool.Tool{look}
	model := scriptedModel(
		state.ToolCalls(
			state.ToolCall{ID: "c1", Name: "look", Input: `{"word":"rain"}`},
			state.ToolCall{ID: "c2", Name: "look", Input: `{"word":"plain"}`}),
		state.AssistantText("The rain stays mainly in the plain."))

	ctx, history := context.Background(), st.History()
	for {
		answer := model(state.Messages.Or(st, nil))
		if err := history.Append(state.InferenceResult{Output: []state.Message{answer}}); err != nil {
			fmt.Println(err)
		}
		asked, ok := answer.(state.ToolCallMessage)
		if !ok {
			break
		}
		step := tool.Begin(ctx, st, tools, asked.Calls())
		var calls sync.WaitGroup
		for i := range asked.Calls() {
			calls.Go(func() { _, _ = step.Call(ctx, i) }) // its result is in End, too
		}
		calls.Wait()
		for _, r := range step.End() {
			if err := history.Answer(r.Message); err != nil {
				fmt.Println(err)
			}
		}
	}

	fmt.Println(notes.Or(st, nil))
	for _, m := range state.Messages.Or(st, nil) {
		fmt.Println(m)
	}
	// Output:
	// [RAIN PLAIN]
	// tool_call "assistant": "look" id "c1" "look" id "c2"
	// tool_result "look" id "c1": "RAIN"
	// tool_result "look" id "c2": "PLAIN"
	// text "assistant": "The rain stays mainly in the plain."
}

// scriptedModel returns a model that gives these answers, one after the other.
func scriptedModel(answers ...state.Message) func([]state.Message) state.Message {
	return func([]state.Message) state.Message {
		answer := answers[0]
		answers = answers[1:]
		return answer
	}
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
	step := tool.Begin(ctx, st, []*tool.Tool{refund}, calls)
	for i, call := range calls {
		_, err := step.Call(ctx, i)
		fmt.Println(call.ID, err, errors.Is(err, tool.ErrSuspended), errors.Is(err, errApproval))
	}
	for _, r := range step.End() {
		fmt.Println(r.Index, r.Message.Text(), history.Answer(r.Message))
	}
	fmt.Println(log.Or(st, nil))

	_ = approved.Set(st, true) // days later, in another process
	for _, r := range tool.Run(ctx, st, []*tool.Tool{refund}, calls[1:]) {
		fmt.Println(r.Message.Text(), history.Answer(r.Message))
	}
	fmt.Println(log.Or(st, nil))
	// Output:
	// c1 <nil> false false
	// c2 tool "refund": a person must approve the refund true true
	// 0 refunded 20 <nil>
	// [refunded 20]
	// refunded 500 <nil>
	// [refunded 20 refunded 500]
}

// The id of the call is a key for what must be done once, together with
// something that is unique to the conversation.
func ExampleCallOf() {
	pay := tool.Must(tool.New("pay", "Pay an amount.",
		func(ctx context.Context, in struct {
			Amount int `json:"amount"`
		}) (string, error) {
			call, _ := tool.CallOf(ctx)
			return fmt.Sprintf("paid %d with key run-7/%s for %s", in.Amount, call.ID, call.Agent), nil
		}))
	st := state.New(nil).As("billing")
	calls := []state.ToolCall{{ID: "c1", Name: "pay", Input: `{"amount":5}`}}
	for _, r := range tool.Run(context.Background(), st, []*tool.Tool{pay}, calls) {
		fmt.Println(r.Message.Text())
	}
	// Output: paid 5 with key run-7/c1 for billing
}
