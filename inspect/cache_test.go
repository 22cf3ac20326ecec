package inspect_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/stretchr/testify/require"
)

// TestDeletedContentIsNotShown deletes a workspace of which pages were shown. A
// new one of the same user reaches the same Seq.
func TestDeletedContentIsNotShown(t *testing.T) {
	const old, young = "what the first user wrote", "what the second user wrote"
	f := newFixture(t, 0)
	pages := []string{
		"/workspace/state?user=ann", "/workspace/state?user=ann&format=json", "/workspace/state?user=ann&at=1", "/workspace/export?user=ann",
		"/workspace/diff?user=ann&from=0&to=1",
	}
	write := func(value string) {
		f.update(t, "ann", func(st *state.State) error { return notes.Set(st, []string{value}) })
	}
	expire := func() {
		_, err := f.manager.Expire(context.Background(), 0)
		require.NoError(t, err)
	}
	for name, remove := range map[string]func(h http.Handler){
		"by the program": func(http.Handler) {
			require.NoError(t, f.manager.Delete(context.Background(), "ann"))
		},
		"by the page": func(h http.Handler) {
			p := postForm(t, h, "/workspace/delete?user=ann", "confirm=ann")
			require.Equal(t, http.StatusSeeOther, p.code)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := f.handler(t, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{Read: true, Delete: true})})
			write(old)
			for _, page := range pages {
				require.Contains(t, get(t, h, page).body, old, page)
			}
			before, err := f.manager.Summary(context.Background(), "ann")
			require.NoError(t, err)
			remove(h)
			for _, page := range pages {
				require.Equal(t, http.StatusNotFound, get(t, h, page).code, page)
			}
			expire()
			write(young)
			after, err := f.manager.Summary(context.Background(), "ann")
			require.NoError(t, err)
			require.Equal(t, before.Seq, after.Seq)
			for _, page := range pages {
				body := get(t, h, page).body
				require.NotContains(t, body, old, page)
				require.Contains(t, body, young, page)
			}
			require.NoError(t, f.manager.Delete(context.Background(), "ann"))
			expire()
		})
	}
}
