package genkitstate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// What a caller holds is not changed by an input that replaces that of a call. A
// message of which no call was made is in no conversation but the response.
func TestRestartedInputs(t *testing.T) {
	b := newBench(t, ai.NewModelMessage(request("pay", "c1", `{"amount":6}`), request("pay", "c2", `{"amount":7}`)),
		ai.NewModelTextMessage("Done."))
	must(state.Messages.Set(b.st, []state.Message{state.UserText("Go.")}))
	resp := b.generate(ai.WithPrompt("Go."))
	if n := len(resp.Request.Messages); n != 1 {
		t.Errorf("the request has %d messages", n)
	}
	pay := genkitstate.Tools(tools...)[1].(ai.Tool)
	must(approved.Set(b.host, true))
	held, err := genkitstate.From(state.Messages.GetOr(b.st, nil)...)
	must(err)
	first, second := resp.Interrupts()[0], resp.Interrupts()[1]
	b.generate(ai.WithMessages(held...), ai.WithToolRestarts(
		pay.Restart(first, nil), pay.Restart(second, &ai.RestartOptions{ReplaceInput: map[string]any{"amount": 8}})))
	b.prompt()
	says(t, state.Messages.GetOr(b.st, nil), "user: Go.", "calls: pay c1 pay c2",
		"result c1: paid 6 as c1", `result c2: A person has changed the arguments to {"amount":8}. The result: "paid 8 as c2"`, "assistant: Done.")
	input, err := state.JSONOf(held[len(held)-1].Content[1].ToolRequest.Input)
	if err != nil || input != `{"amount":7}` {
		t.Errorf("the input that the caller holds is %s, %v", input, err)
	}
}

// Results of calls without ids, of one name, are those of the calls in their order.
func TestResultsWithoutIDs(t *testing.T) {
	b := newBench(t, ai.NewModelTextMessage("Done."))
	call := func(input state.JSON) state.ToolCall { return state.ToolCall{Name: "write", Input: input} }
	calls := []state.ToolCall{call(`{"name":"a"}`), call(`{"name":"b"}`), call(`{"name":"c"}`)}
	must(state.Messages.Set(b.st, []state.Message{state.UserText("Go.")}))
	must(b.st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}))
	must(b.st.History().Answer(state.ToolResult(calls[0], `"x"`), state.ToolResult(calls[1], `"y"`)))
	conversation, err := genkitstate.From(state.Messages.GetOr(b.st, nil)...)
	must(err)
	b.generate(ai.WithMessages(conversation...))
	prompt, err := genkitstate.Messages(b.sent[0].Messages...)
	must(err)
	var results []string
	for _, m := range prompt {
		if r, ok := m.(state.ToolResultMessage); ok {
			results = append(results, r.Text())
		}
	}
	if !slices.Equal(results, []string{"x", "y", "c"}) {
		t.Errorf("the model reads %q", results)
	}
	if got := log.GetOr(b.st, nil); !slices.Equal(got, []string{"c"}) {
		t.Errorf("log %q", got)
	}
}

// The results of Genkit's tools are committed before the model is asked again.
func TestResultsOfGenkitAreCommitted(t *testing.T) {
	b := newBench(t)
	b.foreign = []ai.ToolRef{ai.NewTool("look", "Looks.", func(_ *ai.ToolContext, in item) (string, error) { return "seen " + in.Name, nil })}
	var m *workspace.Manager
	stored := []int{}
	b.model = genkit.DefineModel(b.g, "test/stored", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}},
		func(ctx context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			view, err := m.View(ctx, "ann")
			must(err)
			stored = append(stored, len(state.Messages.GetOr(view.State(), nil)))
			answer := ai.NewModelMessage(request("look", "c1", `{"name":"x"}`))
			if len(stored) > 1 {
				answer = ai.NewModelTextMessage("Done.")
			}
			return &ai.ModelResponse{Request: req, Message: answer, FinishReason: ai.FinishReasonStop}, nil
		})
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: team, Run: func(ctx context.Context, run *workspace.Run) error {
		b.st, b.ctx = run.State().As("clerk"), ctx
		_, err := b.try(nil, ai.WithPrompt("Go."))
		return err
	}})
	must(err)
	defer m.Close()
	_, err = m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("Go.")})
	must(err)
	if !slices.Equal(stored, []int{0, 3}) {
		t.Errorf("messages in the store at each request: %v", stored)
	}
}

// A call that is suspended in a workspace is answered by Genkit's own means in
// a later run, after other messages.
func TestSuspendedCallOfWorkspace(t *testing.T) {
	ctx := t.Context()
	b := newBench(t,
		ai.NewModelMessage(request("pay", "c1", `{"amount":7}`), request("write", "c2", `{"name":"a"}`)),
		ai.NewModelTextMessage("Done."))
	var interrupted *ai.ModelResponse
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Schema: team, Run: func(ctx context.Context, run *workspace.Run) error {
		b.st, b.ctx = run.State().As("clerk"), ctx
		switch run.Message().ID {
		case "1":
			conversation, err := genkitstate.From(state.Messages.GetOr(b.st, nil)...)
			must(err)
			interrupted = b.generate(ai.WithMessages(conversation...))
		case "2":
			run.SetReply("A person looks at it.")
		case "3":
			b.generate(ai.WithMessages(interrupted.History()...),
				ai.WithToolResponses(ai.NewResponseForToolRequest(interrupted.Interrupts()[0], "paid by hand")))
		}
		return nil
	}})
	must(err)
	defer m.Close()
	for i, id := range []string{"1", "2", "3"} {
		_, err := m.Handle(ctx, "ann", workspace.Message{ID: id, Content: state.UserText("Message " + id)})
		must(err)
		view, err := m.View(ctx, "ann")
		must(err)
		if want := []int{1, 1, 0}[i]; len(view.Suspended()) != want {
			t.Errorf("after message %s the calls %v are suspended", id, view.Suspended())
		}
	}
	view, err := m.View(ctx, "ann")
	must(err)
	says(t, state.Messages.GetOr(view.State(), nil), "user: Message 1", "calls: pay c1 write c2",
		"result c1: paid by hand", "result c2: a", "user: Message 2", "user: Message 3", "assistant: Done.")
}

// A run that has lost its workspace makes no call.
func TestLostRunMakesNoCall(t *testing.T) {
	ctx := t.Context()
	b := newBench(t, ai.NewModelMessage(request("write", "c1", `{"name":"a"}`)))
	runs := make(chan *workspace.Run)
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Schema: team, Run: func(ctx context.Context, run *workspace.Run) error {
		runs <- run
		<-ctx.Done()
		return ctx.Err()
	}})
	must(err)
	defer m.Close()
	_, err = m.Submit(ctx, "ann", workspace.Message{ID: "1", Content: state.UserText("Go.")})
	must(err)
	run := <-runs
	must(m.Cancel(ctx, "ann", run.ID(), "enough"))
	b.st, b.ctx = run.State().As("clerk"), workspace.NewContext(ctx, run)
	if _, err := b.try(nil, ai.WithPrompt("Go.")); !errors.Is(err, workspace.ErrFenced) {
		t.Errorf("error %v", err)
	}
	if got := log.GetOr(b.st, nil); got != nil {
		t.Errorf("log %q", got)
	}
}
