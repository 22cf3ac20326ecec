package genkitstate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

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
			conversation, err := genkitstate.From(state.Messages.Or(b.st, nil)...)
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
	says(t, state.Messages.Or(view.State(), nil), "user: Message 1", "calls: pay c1 write c2",
		"result c1: paid by hand", "result c2: a", "user: Message 2", "user: Message 3", "assistant: Done.")
}

// A run that has lost its workspace makes no call.
func TestLostRunMakesNoCall(t *testing.T) {
	ctx := t.Context()
	b := newBench(t, ai.NewModelMessage(request("write", "c1", `{"name":"a"}`)))
	m, err := workspace.Open(ctx, store.NewMemory(), &workspace.Options{Schema: team})
	must(err)
	defer m.Close()
	run, _, err := m.Begin(ctx, "ann", workspace.Message{ID: "1", Content: state.UserText("Go.")})
	must(err)
	must(m.Cancel(ctx, "ann", run.ID(), "enough"))
	b.st, b.ctx = run.State().As("clerk"), workspace.NewContext(ctx, run)
	if _, err := b.try(nil, ai.WithPrompt("Go.")); !errors.Is(err, workspace.ErrFenced) {
		t.Errorf("error %v", err)
	}
	if got := log.Or(b.st, nil); got != nil {
		t.Errorf("log %q", got)
	}
}
