package main

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	adktool "google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/tool"
)

type noteInput struct {
	Text string `json:"text"`
}

// steps is a model that makes two calls of the tool note in each of n steps.
type steps struct{ n, made int }

func (m *steps) Name() string { return "steps" }

func (m *steps) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		content := genai.NewContentFromText("done", genai.RoleModel)
		if m.made < m.n {
			m.made++
			content = &genai.Content{Role: genai.RoleModel}
			for _, text := range []string{"slow", "fast"} {
				id := fmt.Sprintf("%s-%d", text, m.made)
				content.Parts = append(content.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{
					ID: id, Name: "note", Args: map[string]any{"text": text},
				}})
			}
		}
		yield(&model.LLMResponse{Content: content}, nil)
	}
}

// play lets an agent make n steps, and returns the session at the end.
func play(tb testing.TB, ctx context.Context, n int, sessions session.Service, tools []adktool.Tool, plugins ...*plugin.Plugin) session.Session {
	tb.Helper()
	root, err := llmagent.New(llmagent.Config{Name: "search", Model: &steps{n: n}, Tools: tools})
	must(tb, err)
	r, err := runner.New(runner.Config{
		AppName: "desk", Agent: root, SessionService: sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: plugins},
	})
	must(tb, err)
	for _, err := range r.Run(ctx, "ann", "s", genai.NewContentFromText("hello", genai.RoleUser), agent.RunConfig{}) {
		must(tb, err)
	}
	got, err := sessions.Get(ctx, &session.GetRequest{AppName: "desk", UserID: "ann", SessionID: "s"})
	must(tb, err)
	return got.Session
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// ownTool appends to a list in the session's state, as the documentation of adk
// does it.
func ownTool(tb testing.TB, wait time.Duration) adktool.Tool {
	t, err := functiontool.New(functiontool.Config{Name: "note", Description: "Write a note."},
		func(ctx agent.Context, in noteInput) (map[string]any, error) {
			notes := []any{}
			if stored, err := ctx.State().Get("notes"); err == nil {
				notes = stored.([]any)
			}
			if in.Text == "slow" {
				time.Sleep(wait)
			}
			return map[string]any{"noted": in.Text}, ctx.State().Set("notes", append(notes[:len(notes):len(notes)], in.Text))
		})
	must(tb, err)
	return t
}

// notes is the field that our tool writes.
var notes = &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Only("search")}

// noteSchema is the schema of sessions with notes.
var noteSchema = state.MustSchema(state.Team{"search": nil}, notes, Session, Events, Values)

func ourTool(wait time.Duration) *tool.Tool {
	return tool.Must(tool.New("note", "Write a note.", func(_ context.Context, in noteInput) (map[string]string, error) {
		if in.Text == "slow" {
			time.Sleep(wait)
		}
		return map[string]string{"noted": in.Text}, nil
	}, tool.ToFunc(notes, "noted", func(text string) ([]string, error) { return []string{text}, nil })))
}

// Seen in adk-go v2.2.0: of two calls in one message that append to a list of the
// session's state, one is lost.
func TestADKLosesAWriteOfParallelCalls(t *testing.T) {
	lost := adaptertest.Rounds(50, []any{"slow", "fast"}, func() []any {
		sess := play(t, t.Context(), 1, session.InMemoryService(), []adktool.Tool{ownTool(t, time.Millisecond)})
		got, err := sess.State().Get("notes")
		must(t, err)
		return got.([]any)
	})
	if lost == 0 {
		t.Error("adk lost nothing in 50 rounds: docs/adk.md says that it does")
	}
	t.Logf("lost or in another order in %d of 50 rounds", lost)
}

func TestTheStateLosesNoWriteOfParallelCalls(t *testing.T) {
	lost := adaptertest.Rounds(100, []string{"slow", "fast"}, func() []string {
		st := state.New(noteSchema)
		kit := NewKit(nil, ourTool(time.Millisecond))
		plug, err := kit.Plugin()
		must(t, err)
		play(t, state.NewContext(t.Context(), st), 1, session.InMemoryService(), kit.Tools(), plug)
		return notes.GetOr(st, nil)
	})
	if lost > 0 {
		t.Errorf("lost or in another order in %d of 100 rounds", lost)
	}
}
