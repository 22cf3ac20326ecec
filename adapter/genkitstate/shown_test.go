package genkitstate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// What a model is shown of a large result is the same in each request, also of a
// later Generate, and names recall for an agent that has it.
func TestLargeResults(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 100_000)
	type rows struct {
		Zebra string `json:"zebra"`
		Apple string `json:"apple"`
	}
	own := []*tool.Tool{
		tool.Must(tool.New("read", "Reads.", func(context.Context, item) (string, error) { return long, nil })),
		tool.Must(tool.New("rows", "Lists.", func(context.Context, item) (rows, error) { return rows{long, long}, nil })),
	}
	for _, recall := range []bool{true, false} {
		b := newBench(t, ai.NewModelMessage(request("read", "c1", `{"name":"a"}`), request("foreign", "c2", `{"name":"a"}`), request("rows", "c3", `{"name":"a"}`)),
			ai.NewModelTextMessage("Done."), ai.NewModelTextMessage("Yes."))
		foreign := genkit.DefineTool(b.g, "foreign", "Reads.", func(*ai.ToolContext, item) (string, error) { return long, nil })
		tools := own
		if recall {
			tools = append(tools[:2:2], loop.Recall())
		}
		generate := func(more ...ai.GenerateOption) *ai.ModelResponse {
			resp, err := genkit.Generate(state.NewContext(b.ctx, b.st), b.g, append(more, ai.WithModel(b.model), ai.WithTools(append(genkitstate.Tools(tools...), foreign)...),
				ai.WithMiddleware(genkitstate.Middleware(tools, &genkitstate.Options{Window: &transcript.Window{Target: 30_000}})))...)
			must(err)
			return resp
		}
		resp := generate(ai.WithPrompt("Go."))
		whole := 0
		for _, m := range resp.History() {
			for _, p := range m.Content {
				if text, _ := func() (string, bool) {
					if !p.IsToolResponse() {
						return "", false
					}
					text, ok := p.ToolResponse.Output.(string)
					return text, ok
				}(); text == long {
					whole++
				}
			}
		}
		if whole != 2 {
			t.Errorf("the response has %d whole texts", whole)
		}
		msgs := state.Messages.GetOr(b.st, nil)
		conversation, err := genkitstate.From(msgs...)
		must(err)
		generate(ai.WithMessages(conversation...), ai.WithPrompt("Again."))
		for _, m := range transcript.Shown(msgs, recall) {
			r, ok := m.(state.ToolResultMessage)
			if !ok {
				continue
			}
			if len(r.Text()) > 16<<10 || strings.Contains(r.Text(), "The tool recall") != recall {
				t.Errorf("it shows %d bytes", len(r.Text()))
			}
			for i, sent := range b.sent[1:] {
				got, err := genkitstate.Messages(sent.Messages...)
				must(err)
				found := false
				for _, g := range got {
					if g, ok := g.(state.ToolResultMessage); ok && g.Call().ID == r.Call().ID {
						found = g.Text() == r.Text()
					}
				}
				if !found {
					t.Errorf("recall %v: request %d does not show %s as other formats do", recall, i, r.Call().Name)
				}
			}
		}
		if len(b.sent) != 3 {
			t.Error(len(b.sent), "requests")
		}
	}
}
