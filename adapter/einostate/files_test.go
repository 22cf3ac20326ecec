package einostate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
	"github.com/agentstate/state/workspace/work"
)

// A model of eino gets the data of files of the user, and nothing that is kept has it.
func TestFiles(t *testing.T) {
	var sent, kept string
	play := scripted(func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
		text, err := json.Marshal(msgs)
		sent = string(text)
		return said("A lamp."), err
	})
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
		a := agent("any", play, nil, einostate.Middleware("any", nil))
		own, err := einostate.FromMessages(state.Messages.GetOr(run.State(), nil)...)
		if err != nil {
			return err
		}
		text, err := json.Marshal(own)
		kept = string(text)
		if err == nil {
			_, err = drain(adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Run(ctx, own))
		}
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
	for _, id := range []string{"1", "2"} {
		_, err = m.Handle(t.Context(), "ann", workspace.Message{ID: id, Content: content})
		must(err)
		if !strings.Contains(sent, "YSBsYW1w") || !strings.Contains(sent, "YSBiaWxs") || strings.Contains(sent, "agent-file:") {
			t.Errorf("the model gets %s", sent)
		}
	}
	v, err := m.View(t.Context(), "ann")
	must(err)
	for _, m := range state.Messages.GetOr(v.State(), nil) {
		kept += string(m.Raw())
	}
	if strings.Contains(kept, "YSBsYW1w") || strings.Count(kept, "agent-file:") < 6 {
		t.Errorf("what is kept is %s", kept)
	}
}
