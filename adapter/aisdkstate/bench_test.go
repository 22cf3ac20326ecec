package aisdkstate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/aisdkstate"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// BenchmarkFirst measures until a chat with a long conversation is loaded, without a network. The metric
// x-json is how often encoding/json encodes what was sent in that time, of the shortest
// of all times for both.
func BenchmarkFirst(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		m, err := workspace.Open(b.Context(), store.NewMemory(), &workspace.Options{KeepMessages: -1, Schema: state.MustSchema(state.Limits{ValueBytes: 1 << 26}, state.Team{"desk": {"ui"}})})
		require.NoError(b, err)
		require.NoError(b, m.Update(b.Context(), workspace.Thread("ann", "1"), func(w *workspace.Workspace) error {
			said := make([]state.Message, n)
			for i := range said {
				if said[i] = state.UserText(fmt.Sprint("A question about the order ", i, ", which is late.")); i%2 == 1 {
					said[i] = state.AssistantText(fmt.Sprint("The order ", i, " is on its way, and arrives on Friday."))
				}
			}
			return state.Messages.Set(w.State(), said)
		}))
		h, err := aisdkstate.New(m, &statehttp.Options{Who: func(*http.Request, string) (statehttp.Who, error) {
			return statehttp.Who{User: "ann", Agent: "ui"}, nil
		}})
		require.NoError(b, err)
		ask := func() []byte {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/1", nil))
			return w.Body.Bytes()
		}
		type part struct {
			Type  string `json:"type,omitempty"`
			Text  string `json:"text,omitempty"`
			State string `json:"state,omitempty"`
		}
		var shown struct {
			List []struct {
				ID    string `json:"id"`
				Role  string `json:"role"`
				Parts []part `json:"parts"`
			} `json:"messages"`
		}
		require.NoError(b, json.Unmarshal(ask(), &shown))
		require.Len(b, shown.List, n)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			made, encoding := time.Hour, time.Hour
			for b.Loop() {
				began := time.Now()
				ask()
				between := time.Now()
				_, err := json.Marshal(shown)
				require.NoError(b, err)
				made, encoding = min(made, between.Sub(began)), min(encoding, time.Since(between))
			}
			b.ReportMetric(float64(made)/float64(encoding), "x-json")
			b.ReportMetric(float64(made)/1e6, "ms/first")
		})
		require.NoError(b, m.Close())
	}
}
