package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// Without a workspace, a person confirms calls as adk documents it: the call that
// is confirmed is made again, and the other one is an error.
func TestConfirmationOfADK(t *testing.T) {
	note := tool.Must(tool.New("note", "Write a note.", func(ctx context.Context, in noteInput) (map[string]string, error) {
		if !Confirmed(ctx) {
			return nil, tool.Suspend(errors.New("a person has to agree"))
		}
		return map[string]string{"noted": in.Text}, nil
	}, tool.ToFunc(notes, "noted", func(text string) ([]string, error) { return []string{text}, nil })))
	kit := NewKit(0, note)
	plug, err := kit.Plugin()
	must(t, err)
	root, err := llmagent.New(llmagent.Config{Name: "search", Model: &steps{n: 1}, Tools: kit.Tools()})
	must(t, err)
	r, err := runner.New(runner.Config{
		AppName: "desk", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{plug}},
	})
	must(t, err)
	st := state.New(noteSchema)
	ctx := state.NewContext(t.Context(), st)
	answers := &genai.Content{Role: genai.RoleUser}
	for event, err := range r.Run(ctx, "ann", "s", genai.NewContentFromText("hello", genai.RoleUser), agent.RunConfig{}) {
		must(t, err)
		for _, part := range parts(event) {
			if asks := part.FunctionCall; asks != nil && asks.Name == toolconfirmation.FunctionCallName {
				answers.Parts = append(answers.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{
					ID: asks.ID, Name: asks.Name, Response: map[string]any{"confirmed": len(answers.Parts) == 0},
				}})
			}
		}
	}
	if len(answers.Parts) != 2 || notes.Has(st) {
		t.Fatalf("%d confirmations, notes %v", len(answers.Parts), notes.Or(st, nil))
	}
	for _, err := range r.Run(ctx, "ann", "s", answers, agent.RunConfig{}) {
		must(t, err)
	}
	if got := notes.Or(st, nil); !slices.Equal(got, []string{"slow"}) {
		t.Errorf("notes %v", got)
	}
	var failed []string
	for _, m := range state.Messages.Or(st, nil) {
		if m, ok := m.(state.ToolResultMessage); ok && m.IsError() {
			failed = append(failed, m.Call().ID)
		}
	}
	if !slices.Equal(failed, []string{"fast-1"}) {
		t.Errorf("calls that have failed: %v", failed)
	}
}
