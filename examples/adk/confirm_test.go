package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

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

// confirm lets an agent make two calls, slow and fast, and answers what adk asks
// about each. A call that is confirmed writes its text, the slow one behind the
// fast one, if both are.
func confirm(t *testing.T, slow, fast bool) *state.State {
	fastIsMade := make(chan struct{})
	note := tool.Must(tool.New("note", "Write a note.", func(ctx context.Context, in noteInput) (map[string]string, error) {
		switch {
		case !Confirmed(ctx):
			return nil, tool.Suspend(errors.New("a person has to agree"))
		case in.Text == "fast":
			defer close(fastIsMade)
		case fast:
			select {
			case <-fastIsMade:
			case <-time.After(time.Second):
				t.Error("adk makes one call after the other")
			}
		}
		return map[string]string{"noted": in.Text}, nil
	}, tool.ToFunc(notes, "noted", func(text string) ([]string, error) { return []string{text}, nil })))
	kit := NewKit(nil, note)
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
				call, err := toolconfirmation.OriginalCallFrom(asks)
				must(t, err)
				answers.Parts = append(answers.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{
					ID: asks.ID, Name: asks.Name, Response: map[string]any{"confirmed": map[string]bool{"slow-1": slow, "fast-1": fast}[call.ID]},
				}})
			}
		}
	}
	if len(answers.Parts) != 2 || notes.Has(st) {
		t.Fatalf("%d confirmations, notes %v", len(answers.Parts), notes.GetOr(st, nil))
	}
	for _, err := range r.Run(ctx, "ann", "s", answers, agent.RunConfig{}) {
		must(t, err)
	}
	return st
}

// Without a workspace, a person confirms calls as adk documents it: a call that is
// confirmed is made again, and another one is an error. Calls that are confirmed
// together are a step: the notes are in the order of the calls.
func TestConfirmationOfADK(t *testing.T) {
	for _, c := range []struct {
		slow, fast    bool
		notes, failed []string
	}{
		{true, false, []string{"slow"}, []string{"fast-1"}},
		{false, true, []string{"fast"}, []string{"slow-1"}},
		{true, true, []string{"slow", "fast"}, nil},
	} {
		st := confirm(t, c.slow, c.fast)
		if got := notes.GetOr(st, nil); !slices.Equal(got, c.notes) {
			t.Errorf("notes %v, want %v", got, c.notes)
		}
		var results, failed []string
		for _, m := range state.Messages.GetOr(st, nil) {
			if m, ok := m.(state.ToolResultMessage); ok {
				results = append(results, m.Call().ID)
				if m.IsError() {
					failed = append(failed, m.Call().ID)
				}
			}
		}
		if !slices.Equal(results, []string{"slow-1", "fast-1"}) || !slices.Equal(failed, c.failed) {
			t.Errorf("calls with results: %v, and those that have failed: %v, want %v", results, failed, c.failed)
		}
	}
}

// An answer that the state refuses, here of an agent that may not speak, is the
// error of the run, and none of its calls is made.
func TestAnAnswerThatIsNotRecorded(t *testing.T) {
	made := false
	kit := NewKit(nil, tool.Must(tool.New("note", "Write a note.", func(context.Context, noteInput) (string, error) {
		made = true
		return "", nil
	})))
	plug, err := kit.Plugin()
	must(t, err)
	root, err := llmagent.New(llmagent.Config{Name: "stranger", Model: &steps{n: 1}, Tools: kit.Tools()})
	must(t, err)
	r, err := runner.New(runner.Config{
		AppName: "desk", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{plug}},
	})
	must(t, err)
	ctx := state.NewContext(t.Context(), state.New(noteSchema))
	for _, err = range r.Run(ctx, "ann", "s", genai.NewContentFromText("hello", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			break // as Answer ends
		}
	}
	if !errors.Is(err, state.ErrDenied) || made {
		t.Errorf("the run ends with %v, and a call was made: %v", err, made)
	}
}
