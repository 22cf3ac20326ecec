package workspace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

func TestRedactorMasksStateAndMemory(t *testing.T) {
	const fieldSecret, memorySecret = "sk-live-99887766", "pin-4711-0815"
	key := &state.Field[string]{Name: "key", Secret: true}
	m := open(t, store.NewMemory(), workspace.Options{Schema: state.MustSchema(key)})
	text := fmt.Sprintf("%s and %s and %x", fieldSecret, memorySecret, memorySecret)

	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		require.Nil(t, w.Redactor())
		require.Equal(t, text, w.Redact(text))
		require.NoError(t, key.Set(w.State(), fieldSecret))
		fields := w.Redactor()
		require.Equal(t, "[SECRET] and "+memorySecret, fields.Redact(fieldSecret+" and "+memorySecret))
		require.NoError(t, w.Memory().SetSecret("pin", memorySecret))
		require.NoError(t, w.Memory().Set("city", "Oslo"))
		both := w.Redactor()
		require.Equal(t, "[SECRET] and [SECRET] and [SECRET]", both.Redact(text))
		require.Same(t, both, w.Redactor(), "nothing has changed")
		require.Equal(t, both.Redact(text), w.Redact(text))
		require.NotContains(t, fmt.Sprintf("%+v %#v", both, w.Memory()), memorySecret)
		return nil
	}))
	v := view(t, m, "ann")
	require.Equal(t, "[SECRET] and [SECRET] and [SECRET]", v.Redactor().Redact(text))
	require.Same(t, v.Redactor(), v.Redactor())

	// A Redactor still masks what was set when it was made, and no more.
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		before := w.Redactor()
		_, err := w.Memory().Delete("pin")
		require.NoError(t, err)
		require.NoError(t, key.Set(w.State(), "another-secret"))
		require.Equal(t, "[SECRET] [SECRET] another-secret", before.Redact(fieldSecret+" "+memorySecret+" another-secret"))
		require.Equal(t, fieldSecret+" "+memorySecret+" [SECRET]", w.Redactor().Redact(fieldSecret+" "+memorySecret+" another-secret"))
		return nil
	}))

	require.Nil(t, (&workspace.View{}).Redactor(), "of the zero View")
}

// Two secrets that overlap in a text are masked with nothing left between them.
func TestRedactorMasksSecretsThatOverlap(t *testing.T) {
	key := &state.Field[string]{Name: "key", Secret: true}
	m := open(t, store.NewMemory(), workspace.Options{Schema: state.MustSchema(key)})
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		require.NoError(t, key.Set(w.State(), "aaaa-bbbb-cccc"))
		require.NoError(t, w.Memory().SetSecret("pin", "bbbb-cccc-dddd"))
		got := w.Redact("x aaaa-bbbb-cccc-dddd y")
		require.NotContains(t, got, "dddd")
		require.NotContains(t, got, "aaaa")
		return nil
	}))
}
