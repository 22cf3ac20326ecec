package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// Each row is a model that always makes the same call, or nearly, and how often the
// function is called.
func TestCallsThatRepeatInVain(t *testing.T) {
	for _, row := range []struct {
		name    string
		repeats int // MaxRepeats
		options []tool.Option
		input   func(n int) string
		result  func(n int) (string, error)
		made    int
		asked   int
		stuck   bool
	}{
		{"the same call", 0, nil, nil, nil, 3, 5, true},
		{"in other words", 0, nil, func(n int) string { return fmt.Sprintf("{%*s\"order\":\"A\"}", n, "") }, nil, 3, 5, true},
		{"another limit", 5, nil, nil, nil, 5, 7, true},
		{"the same error", 0, nil, nil, func(int) (string, error) { return "", errors.New("no such order") }, 3, 5, true},
		{"no limit", -1, nil, nil, nil, 12, 12, false},
		{"other arguments", 0, nil, func(n int) string { return fmt.Sprintf(`{"order":"%d"}`, n) }, nil, 12, 12, false},
		{"other results", 0, nil, nil, func(n int) (string, error) { return fmt.Sprint(n), nil }, 12, 12, false},
		{"it only reads", 0, []tool.Option{tool.Annotate(tool.Annotations{ReadOnly: true})}, nil, nil, 12, 12, false},
		{"it polls", 0, []tool.Option{tool.Polls()}, nil, nil, 12, 12, false},
	} {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", row.name, durable), func(t *testing.T) {
				made, asked := 0, 0
				refund := tool.Must(tool.New("refund", "Refunds.", func(context.Context, struct {
					Order string `json:"order"`
				}) (string, error) {
					made++
					if row.result != nil {
						return row.result(made)
					}
					return "the bank is closed", nil
				}, row.options...))
				l := &loop.Loop{MaxRepeats: row.repeats, Agents: map[string]loop.Agent{"desk": {
					Tools: []*tool.Tool{refund},
					Ask: func(ctx context.Context, turn *loop.Turn) error {
						asked++
						if asked > 12 {
							return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("I give up.")}})
						}
						input := `{"order":"A"}`
						if row.input != nil {
							input = row.input(asked)
						}
						call := state.ToolCall{ID: fmt.Sprint("c", asked), Name: "refund", Input: state.JSON(input)}
						return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}})
					},
				}}}
				if durable {
					m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Run: workspace.Loop(l)})
					require.NoError(t, err)
					out, err := m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("Refund my order.")})
					require.NoError(t, err)
					require.Equal(t, row.stuck, out.Stop == state.StopRepeated)
					require.Equal(t, workspace.StatusDone, out.Status)
					require.NoError(t, m.Close())
				} else {
					st := state.New(nil)
					require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Refund my order.")}))
					_, err := l.Run(t.Context(), st)
					var stop *loop.StopError
					require.Equal(t, row.stuck, errors.As(err, &stop))
					if row.stuck {
						require.ErrorIs(t, err, loop.ErrStopped)
						require.Equal(t, state.StopRepeated, stop.Stop)
					}
					require.Empty(t, st.History().Pending(), "each call has a result")
				}
				require.Equal(t, row.made, made)
				require.Equal(t, row.asked, min(asked, 12))
			})
		}
	}
}
