package inspect_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// BenchmarkPages measures pages of a store with 10 000 workspaces, of which one
// has 1 000 records and 1 000 messages. Allocations tell whether a page reads
// more than it shows.
func BenchmarkPages(b *testing.B) {
	const workspaces, records, messages = 10_000, 1_000, 1_000
	notes := &state.Field[int]{Name: "notes", Read: state.Public, Write: state.Public}
	m, err := workspace.Open(b.Context(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(state.Team{"support": {"search"}}, notes), RecordBytes: 1 << 30, KeepMessages: -1,
	})
	require.NoError(b, err)
	for i := range workspaces {
		require.NoError(b, m.Update(b.Context(), fmt.Sprintf("user-%05d", i), func(w *workspace.Workspace) error {
			return notes.Set(w.State(), i)
		}))
	}
	for i := range records {
		require.NoError(b, m.Update(b.Context(), "user-00000", func(w *workspace.Workspace) error {
			return notes.Set(w.State(), i)
		}))
	}
	require.NoError(b, m.Update(b.Context(), "user-00000", func(w *workspace.Workspace) error {
		var said []state.Message
		for i := range messages / 2 {
			said = append(said, state.UserText(fmt.Sprint("Where is order #W", i, "?")), state.AssistantText("On its way."))
		}
		return state.Messages.Set(w.State().As("support"), said)
	}))
	h, err := inspect.New(m, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{Read: true})})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, m.Close())
	})
	for _, page := range []struct{ name, target string }{
		{"busy", "/"},
		{"users", "/users"},
		{"overview", "/workspace?user=user-00000"},
		{"state", "/workspace/state?user=user-00000"},
		{"conversation", "/workspace/conversation?user=user-00000"},
		{"history", "/workspace/history?user=user-00000"},
		{"history-middle", "/workspace/history?user=user-00000&before=500"},
	} {
		b.Run(page.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+page.target, nil))
				require.Equal(b, http.StatusOK, w.Code)
			}
		})
	}
}
