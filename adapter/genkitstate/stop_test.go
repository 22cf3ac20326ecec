package genkitstate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/loop"
)

// The calls of an answer that was cut are not made, and neither are those of
// Genkit's own tools. The model is asked again, and once only.
func TestCutCallsAreNotMade(t *testing.T) {
	for name, tc := range map[string]struct {
		cut  int // of the first answers, how many
		said []string
		err  error
	}{
		"once":  {1, []string{"user: Go.", "calls: write c1 look c2", "error c1", "error c2", "assistant: Done."}, nil},
		"twice": {2, []string{"user: Go.", "calls: write c1 look c2", "error c1", "error c2", "calls: write c1 look c2", "error c1", "error c2"}, loop.ErrStopped},
	} {
		g, st, asked, seen := genkit.Init(t.Context()), state.New(team), 0, 0
		model := genkit.DefineModel(g, "test/cut", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}},
			func(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
				if asked++; asked > tc.cut {
					return &ai.ModelResponse{Message: ai.NewModelTextMessage("Done."), Request: req, FinishReason: ai.FinishReasonStop}, nil
				}
				said := ai.NewModelMessage(request("write", "c1", `{"name":"a"}`), request("look", "c2", `{"name":"x"}`))
				return &ai.ModelResponse{Message: said, Request: req, FinishReason: ai.FinishReasonLength}, nil
			})
		look := ai.NewTool("look", "Looks.", func(*ai.ToolContext, item) (string, error) {
			seen++
			return "seen", nil
		})
		_, err := genkit.Generate(state.NewContext(t.Context(), st.As("clerk")), g, ai.WithModel(model), ai.WithPrompt("Go."),
			ai.WithTools(append(genkitstate.Tools(tools...), look)...), ai.WithMiddleware(genkitstate.Middleware(tools, nil)))
		if !errors.Is(err, tc.err) {
			t.Fatalf("%s: the error is %v", name, err)
		}
		if seen != 0 || len(log.GetOr(st, nil)) != 0 {
			t.Errorf("%s: calls were made", name)
		}
		var lines []string
		for _, m := range state.Messages.GetOr(st, nil) {
			lines = append(lines, strings.Split(line(m), ": The call was not made")[0])
		}
		if got, want := strings.Join(lines, "\n"), strings.Join(tc.said, "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		last, _ := st.History().At(0)
		if last.Stop != state.StopLength || last.StopWord != "length" {
			t.Errorf("%s: the answer has ended with %q, %q", name, last.Stop, last.StopWord)
		}
	}
}

// line describes a message.
func line(m state.Message) string {
	switch m := m.(type) {
	case state.ToolCallMessage:
		text := "calls:"
		for _, c := range m.Calls() {
			text += " " + c.Name + " " + c.ID
		}
		return text
	case state.ToolResultMessage:
		return "error " + m.Call().ID + ": " + m.Text()
	}
	return m.Role() + ": " + m.(state.TextMessage).Text()
}
