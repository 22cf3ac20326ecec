package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// long returns a Source with a conversation of n messages.
func long(b *testing.B, n int) *page.Source {
	m, err := workspace.Open(context.Background(), store.NewMemory(), &workspace.Options{KeepMessages: -1})
	require.NoError(b, err)
	b.Cleanup(func() { _ = m.Close() })
	said := make([]state.Message, n)
	for i := range said {
		if said[i] = state.UserText(fmt.Sprint("A question about the order ", i, ", which is late.")); i%2 == 1 {
			said[i] = state.AssistantText(fmt.Sprint("The order ", i, " is on its way, and arrives on Friday."))
		}
	}
	require.NoError(b, m.Update(context.Background(), thread, func(w *workspace.Workspace) error {
		return state.Messages.Set(w.State(), said)
	}))
	return &page.Source{Manager: m}
}

// BenchmarkRead reads a page and encodes it. The variant json only encodes it.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		s := long(b, n)
		b.Run(fmt.Sprintf("page/n=%d", n), func(b *testing.B) {
			for b.Loop() {
				p, err := s.Read(b.Context(), thread)
				require.NoError(b, err)
				_, err = json.Marshal(p)
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprintf("json/n=%d", n), func(b *testing.B) {
			p, err := s.Read(b.Context(), thread)
			require.NoError(b, err)
			for b.Loop() {
				_, err = json.Marshal(p)
				require.NoError(b, err)
			}
		})
	}
}
