package adaptertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// OwnCalls holds an adapter to the calls of its agent, which is "search": while an
// answer with a call is committed, another agent, which may not read the
// conversation, records one with a call of its own, of another id or of the same.
// answer answers the message of a run with tools, and with a model that says what
// next returns for a prompt.
func OwnCalls(t *testing.T, fields []state.Part, answer func(
	ctx context.Context, run *workspace.Run, tools []*tool.Tool, next func(prompt []state.Message) (state.Message, error),
) error) {
	for _, id := range []string{"other", "own"} {
		t.Run(id, func(t *testing.T) {
			own, other := state.ToolCall{ID: "own", Name: "look"}, state.ToolCall{ID: id, Name: "look"}
			look := tool.Must(tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil }))
			next := func(prompt []state.Message) (state.Message, error) {
				if len(prompt) == 1 {
					return state.ToolCalls(own), nil
				}
				for _, m := range prompt {
					if r, ok := m.(state.ToolResultMessage); ok && r.Call().ID == own.ID && r.Text() == "seen" {
						return state.AssistantText("Done."), nil
					}
				}
				return nil, fmt.Errorf("adaptertest: the prompt has no result of the call %s: %v", own.ID, prompt)
			}
			var running atomic.Pointer[workspace.Run]
			var once sync.Once
			db := workspacetest.WithFaults(store.NewMemory(), func([]store.Write) (_ bool, err error) {
				if run := running.Load(); run != nil && run.State().History().Len() > 0 {
					once.Do(func() {
						err = run.State().As("billing").History().Append(state.InferenceResult{
							Output:    []state.Message{state.ToolCalls(other)},
							ToolCalls: []state.ToolResultMessage{state.ToolResult(other, "1")},
						})
					})
				}
				return false, err
			})
			readable := &state.Field[[]state.Message]{
				Name: state.Messages.Name, Read: state.Only("search"), Write: state.Only("search"),
			}
			m, err := workspace.Open(t.Context(), db, &workspace.Options{
				Schema: state.MustSchema(slices.Concat([]state.Part{state.Team{"search": {"billing"}}, readable}, fields)...),
				Run: func(ctx context.Context, run *workspace.Run) error {
					running.Store(run)
					return answer(ctx, run, []*tool.Tool{look}, next)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if _, err := m.Handle(t.Context(), UserID, workspace.Message{Content: state.UserText("Look.")}); err != nil {
				t.Fatal(err)
			}
			view, err := m.View(t.Context(), UserID)
			if err != nil {
				t.Fatal(err)
			}
			var agents []string // of the answers
			for _, r := range view.State().History().All() {
				agents = append(agents, r.Agent)
			}
			if want := []string{"search", "billing", "search"}; !slices.Equal(agents, want) {
				t.Errorf("adaptertest: answers of %q, want %q", agents, want)
			}
			checkEnded(t, view)
		})
	}
}
