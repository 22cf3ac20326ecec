package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// long returns a Source with a conversation of n messages, of which a model has said
// every second one.
func long(b *testing.B, n int) *page.Source {
	m, err := workspace.Open(context.Background(), store.NewMemory(), &workspace.Options{KeepMessages: -1, Schema: state.MustSchema(state.Limits{ValueBytes: 1 << 26})})
	require.NoError(b, err)
	b.Cleanup(func() { _ = m.Close() })
	for i := 0; i < n; i += 1000 {
		require.NoError(b, m.Update(context.Background(), thread, func(w *workspace.Workspace) error {
			for j := i; j < min(n, i+1000); j += 2 {
				asked := state.UserText(fmt.Sprint("A question about the order ", j, ", which is late."))
				if err := state.Messages.Set(w.State(), []state.Message{asked}); err != nil {
					return err
				}
				r := state.InferenceResult{Agent: "desk", Output: []state.Message{state.AssistantText(fmt.Sprint("The order ", j, " is on its way, and arrives on Friday."))}}
				if err := w.State().History().Append(r); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return &page.Source{Manager: m}
}

// BenchmarkFirst measures the time until a page is there as JSON: that of a Read, and
// the first change of a Follow. The metric x-json is how often encoding/json encodes
// the page in that time, of the shortest of all times for both.
func BenchmarkFirst(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		s := long(b, n)
		p, err := s.Read(b.Context(), thread)
		require.NoError(b, err)
		require.Len(b, p.Items, n)
		for name, first := range map[string]func(){
			"read": func() {
				p, err := s.Read(b.Context(), thread)
				require.NoError(b, err)
				encoded(b, p)
			},
			"follow": func() {
				for c, err := range s.Follow(b.Context(), thread, "") {
					require.NoError(b, err)
					encoded(b, c)
					return
				}
			},
		} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				made, encoding := time.Hour, time.Hour
				for b.Loop() {
					began := time.Now()
					first()
					between := time.Now()
					encoded(b, p)
					made, encoding = min(made, between.Sub(began)), min(encoding, time.Since(between))
				}
				b.ReportMetric(float64(made)/float64(encoding), "x-json")
				b.ReportMetric(float64(made)/1e6, "ms/first")
			})
		}
	}
}

func encoded(b *testing.B, v any) {
	_, err := json.Marshal(v)
	require.NoError(b, err)
}
