package workspace_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// The check reads nothing that the Manager knows.
func TestCheckOfKnownContentReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := fakestore.Count(store.NewMemory())
		m := open(t, db, workspace.Options{TTL: time.Hour, Run: nothing})
		_, err := m.Handle(t.Context(), "ann", text("0"))
		require.NoError(t, err)
		before := db.Read()
		for i := range 10 {
			_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint("m", i)))
			require.NoError(t, err)
		}
		require.LessOrEqual(t, db.Read()-before, 20, "two heads for each message, and nothing else")
	})
}
