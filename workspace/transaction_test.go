package workspace_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Stores that are in no SQL database refuse transactions. (What transactions do
// is tested in lab/processes.)
func TestTransactionsNeedSQL(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	r := runs.Begin(t, "ann", text("1"))
	never := func(*sql.Tx) error {
		t.Error("called without a transaction")
		return nil
	}
	err := r.CommitTx(t.Context(), never)
	require.ErrorIs(t, err, workspace.ErrInvalid)
	require.EqualError(t, err, `workspace: commit for "ann": workspace: invalid argument: the store is not in a SQL database: it is no store.Transactor`)
	_, err = m.SubmitTx(t.Context(), &sql.Tx{}, "ann", text("2"))
	require.ErrorIs(t, err, workspace.ErrInvalid)
	_, err = m.Await(t.Context(), "ann", "2")
	require.ErrorIs(t, err, workspace.ErrNotFound)
}
