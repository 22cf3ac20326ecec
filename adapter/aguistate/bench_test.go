package aguistate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/aguistate"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// BenchmarkFirst measures a request that is shown a long thread, without a network:
// that of a page that has nothing, and that of one that has all of it. The metric
// x-json is how often encoding/json encodes the messages in that time, of the shortest of all times for both: those
// that nothing else on the machine has made longer.
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
		h, err := aguistate.New(m, &aguistate.Options{MaxBody: 64 << 20, Who: func(*http.Request, string) (statehttp.Who, error) {
			return statehttp.Who{User: "ann", Agent: "ui"}, nil
		}})
		require.NoError(b, err)
		ask := func(body string) []byte {
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte(body)))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Contains(b, w.Body.String(), "RUN_FINISHED")
			return w.Body.Bytes()
		}
		nothing := `{"threadId":"1","runId":"1"}`
		var shown struct{ Messages []map[string]any }
		for _, line := range bytes.Split(ask(nothing), []byte("\n")) {
			if bytes.Contains(line, []byte("MESSAGES_SNAPSHOT")) {
				require.NoError(b, json.Unmarshal(bytes.TrimPrefix(line, []byte("data: ")), &shown))
			}
		}
		require.Len(b, shown.Messages, n)
		list := []message{}
		for _, m := range shown.Messages {
			list = append(list, message{m["id"].(string), m["role"].(string), m["content"].(string)})
		}
		all, err := json.Marshal(map[string]any{"threadId": "1", "runId": "1", "messages": list})
		require.NoError(b, err)
		for name, body := range map[string]string{"nothing": nothing, "all": string(all)} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				made, encoding := time.Hour, time.Hour
				for b.Loop() {
					began := time.Now()
					ask(body)
					between := time.Now()
					_, err := json.Marshal(list)
					require.NoError(b, err)
					made, encoding = min(made, between.Sub(began)), min(encoding, time.Since(between))
				}
				b.ReportMetric(float64(made)/float64(encoding), "x-json")
				b.ReportMetric(float64(made)/1e6, "ms/first")
			})
		}
		require.NoError(b, m.Close())
	}
}

// message is a message as a client has it.
type message struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Content string `json:"content"`
}
