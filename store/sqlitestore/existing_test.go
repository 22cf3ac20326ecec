package sqlitestore_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
)

func TestOpenExisting(t *testing.T) {
	path := address(t)
	existing := func(table string) error {
		s, err := sqlitestore.Open(t.Context(), path, &sqlitestore.Options{Table: table, Existing: true})
		if err != nil {
			var of *store.Error
			require.ErrorAs(t, err, &of)
			return err
		}
		e, err := store.Get(t.Context(), s, "k")
		require.NoError(t, err)
		require.Equal(t, "v", string(e.Value))
		_, err = store.Put(t.Context(), s, "l", []byte("v"), store.Always)
		require.NoError(t, err)
		return s.Close()
	}
	require.ErrorIs(t, existing(""), fs.ErrNotExist)
	require.NoFileExists(t, path)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorIs(t, existing(""), fs.ErrNotExist)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, info.Size(), "the file is as it was")

	s := open(t, path)
	_, err = store.Put(t.Context(), s, "k", []byte("v"), store.Always)
	require.NoError(t, err)
	require.NoError(t, existing(""), "while it is open elsewhere")
	require.ErrorIs(t, existing("other"), fs.ErrNotExist)
	require.NoError(t, s.Close())
	require.NoError(t, existing(""))
}
