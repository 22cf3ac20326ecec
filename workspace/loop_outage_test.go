package workspace_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// The store is away for minutes, at each place at which a loop is busy outside,
// and the model as well. Nothing is asked or made twice.
func TestLoopOutlastsOutages(t *testing.T) {
	for name, at := range map[string]int{"the first answer": 1, "a tool": 2, "the last word": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newBroken(store.NewMemory())
				place := 0
				away := func() {
					if place++; place != at {
						return
					}
					fault := func(context.Context) error { return errAway }
					db.fault.Store(&fault)
					time.AfterFunc(5*time.Minute, func() { db.fault.Store(nil) })
				}
				m := statetest.NewModel(t, provider.OpenAI,
					statetest.Status(http.StatusServiceUnavailable, "{}").Times(2), statetest.Call("pay", `{}`),
					statetest.Status(http.StatusTooManyRequests, "{}"), statetest.Say("Paid."))
				var made []string
				pay := tool.Must(tool.New("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
					call, _ := tool.CallOf(ctx)
					made = append(made, call.ID)
					away()
					return "done", nil
				}))
				asked := 0
				w, err := workspace.Open(t.Context(), db, &workspace.Options{Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{
					"": {Tools: []*tool.Tool{pay}, Ask: func(ctx context.Context, turn *loop.Turn) error {
						asked++
						if asked == 3 || asked == 5 { // with an answer
							away()
						}
						return m.Ask(ctx, turn)
					}},
				}})})
				require.NoError(t, err)
				defer w.Close()
				_, err = w.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("Pay.")})
				require.NoError(t, err)
				time.Sleep(10 * time.Minute)
				out, err := w.Await(t.Context(), "ann", "1")
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				require.Equal(t, "Paid.", out.Reply)
				require.Equal(t, []string{"call_1"}, made)
				require.Equal(t, 3, place)
				require.Len(t, m.Requests(), 5)
			})
		})
	}
}
