package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// An agent may make a hundred thousand keys. A page has a bounded number.
func TestStateIsShownInPages(t *testing.T) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(state.AllowUndeclared, state.Team{"ann": nil}, &state.Field[int]{Name: "hidden"}),
	})
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		values := map[string]any{}
		for i := range 1200 {
			values[fmt.Sprintf("key%04d", i)] = i
		}
		return w.State().Patch(values)
	}))
	h := newHandler(t, m, &inspect.Options{})
	shown := 0
	for target := "/workspace/state?user=ann"; target != ""; {
		p := get(t, h, target)
		require.Equal(t, 200, p.code)
		rows := strings.Count(p.body, `<th scope="row" data-label="Field">`)
		require.LessOrEqual(t, rows, 500)
		require.Less(t, len(p.body), 512<<10)
		shown += rows
		_, next, more := strings.Cut(p.body, `<a rel="next" href="`)
		if target = ""; more {
			next, _, _ = strings.Cut(next, `"`)
			target = "/" + strings.TrimLeft(strings.ReplaceAll(next, "&amp;", "&"), "./")
		}
	}
	require.Equal(t, 1200+2, shown, "with the messages and the hidden field")
	require.Equal(t, 1, strings.Count(get(t, h, "/workspace/state?user=ann&open=key0700").body, `data-label="Field">`))
	require.Equal(t, 11, strings.Count(get(t, h, "/workspace/state?user=ann&filter=key002").body+
		get(t, h, "/workspace/state?user=ann&filter=key1199").body, `data-label="Field">`))
}
