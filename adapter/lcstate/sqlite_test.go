//go:build !cgo

// With cgo, the history of langchaingo compiles SQLite, which takes a minute. Run
// this with CGO_ENABLED=0.

package lcstate_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory/sqlite3"

	"github.com/agentstate/state/statetest"
)

// The history of langchaingo on SQLite has empty texts for calls, and no results.
func TestSQLiteForgetsTools(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "history.db")) // the driver of sqlitestore
	check(t, err)
	defer db.Close()
	h := sqlite3.NewSqliteChatMessageHistory(sqlite3.WithDB(db), sqlite3.WithContext(t.Context()))
	for _, m := range turn[:4] {
		check(t, h.AddMessage(t.Context(), m))
	}
	kept, err := h.Messages(t.Context())
	check(t, err)
	statetest.Equal(t, []llms.ChatMessage{turn[0], llms.AIChatMessage{Content: ""}, turn[3]}, kept)
}
