package genkitstate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
	"github.com/agentstate/state/workspace/work"
)

// A model of Genkit gets the data of files of the user, and nothing that is kept has it.
func TestFiles(t *testing.T) {
	b := newBench(t, ai.NewModelTextMessage("A lamp."))
	kept := ""
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: team, Run: func(ctx context.Context, run *workspace.Run) error {
		b.st, b.ctx = run.State().As("clerk"), ctx
		conversation, err := genkitstate.From(state.Messages.GetOr(b.st, nil)...)
		must(err)
		text, err := json.Marshal(b.generate(ai.WithMessages(conversation...)).History())
		kept = string(text)
		return err
	}})
	must(err)
	defer m.Close()
	var parts []page.Part
	for _, f := range []work.File{{Type: "image/png", Data: []byte("a lamp")}, {Type: "application/pdf", Data: []byte("a bill")}} {
		url, err := m.AddFile(t.Context(), "ann", f)
		must(err)
		parts = append(parts, page.Part{Kind: page.MediaPart, Media: &page.Media{Type: f.Type, URL: url}})
	}
	content, err := page.Content(parts...)
	must(err)
	_, err = m.Handle(t.Context(), "ann", workspace.Message{ID: "1", Content: content})
	must(err)
	text, err := json.Marshal(b.sent[0].Messages)
	must(err)
	if sent := string(text); !strings.Contains(sent, "YSBsYW1w") || !strings.Contains(sent, "YSBiaWxs") || strings.Contains(sent, "agent-file:") {
		t.Errorf("the model gets %s", sent)
	}
	v, err := m.View(t.Context(), "ann")
	must(err)
	for _, m := range state.Messages.GetOr(v.State(), nil) {
		kept += string(m.Raw())
	}
	if strings.Contains(kept, "YSBsYW1w") || strings.Count(kept, "agent-file:") != 4 {
		t.Errorf("what is kept is %s", kept)
	}
}
