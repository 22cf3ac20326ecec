package workspace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A zero value, which a program has if it prints what an error has left, can be
// printed, logged and marshalled.
func TestZeroValuesAreShown(t *testing.T) {
	for _, v := range []any{workspace.View{}, workspace.Workspace{}, workspace.Event{}, workspace.Outcome{}, workspace.MemoryEntry{}} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", v)
		data, err := json.Marshal(v)
		require.NoError(t, err)
		require.True(t, json.Valid(data))
		for _, text := range []string{log.String(), fmt.Sprintf("%v %+v %q", v, v, v)} {
			require.NotContains(t, text, "panic")
			require.NotContains(t, text, "PANIC")
		}
	}
}

func TestFunctionsThatAreNil(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	require.ErrorIs(t, m.Do(t.Context(), "ann", nil), workspace.ErrInvalid)
	require.ErrorIs(t, m.Update(t.Context(), "ann", nil), workspace.ErrInvalid)
	err := m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return w.SetSettings(nil) })
	require.ErrorIs(t, err, workspace.ErrInvalid)
}
