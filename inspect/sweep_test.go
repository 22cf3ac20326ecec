package inspect_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state/inspect"
	"github.com/stretchr/testify/require"
)

func postForm(t testing.TB, h http.Handler, target, form string) response {
	t.Helper()
	return send(t, h, localRequest(http.MethodPost, target, form))
}

func TestSweepFindsWhatNeedsAttention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 900)
		h := f.handler(t, nil)
		require.Contains(t, get(t, h, "/sweep").body, "No sweep yet")
		require.Equal(t, http.StatusSeeOther, postForm(t, h, "/sweep", "do=start").code)
		synctest.Wait()
		p := get(t, h, "/sweep")
		require.Contains(t, p.body, "reading", "a sweep is paced")
		require.Equal(t, "2", p.header.Get("Refresh"))

		began := time.Now()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		p = get(t, h, "/sweep")
		require.Empty(t, p.header.Get("Refresh"))
		require.Contains(t, p.body, "907 workspaces read")
		require.Contains(t, p.body, "Longest run")
		for _, user := range []string{"bob", "carol", "dave"} {
			require.Contains(t, p.body, "user="+user)
		}
		require.NotContains(t, p.body, "user=alice")
		require.Contains(t, get(t, h, "/").body, "Last sweep")
		require.Equal(t, 2*time.Second, time.Since(began))
		closeFixture(t, f, h)
	})
}

func TestSweepCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 300)
		h := f.handler(t, nil)
		postForm(t, h, "/sweep", "do=start")
		synctest.Wait()
		require.Contains(t, get(t, h, "/sweep").body, "100 workspaces")
		postForm(t, h, "/sweep", "do=stop")
		synctest.Wait()
		require.Contains(t, get(t, h, "/sweep").body, "then stopped")
		postForm(t, h, "/sweep", "do=start")
		closeFixture(t, f, h) // which ends the sweep
	})
}

// closeFixture ends what runs, before the end of a bubble.
func closeFixture(t testing.TB, f *fixture, h *inspect.Handler) {
	t.Helper()
	h.Close()
	require.NoError(t, f.manager.Close())
}

func TestSweepIsNotForSomeWorkspaces(t *testing.T) {
	h := newFixture(t, 0).handler(t, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{
		Read: true, User: func(id string) bool { return id == "alice" },
	})})
	require.Equal(t, http.StatusNotFound, get(t, h, "/sweep").code)
	require.Equal(t, http.StatusNotFound, postForm(t, h, "/sweep", "do=start").code)
	for _, p := range crawl(t, h, 2000, "/") {
		require.NotContains(t, p.body, "carol", p.target)
		require.NotContains(t, p.target, "sweep")
	}
	require.Equal(t, http.StatusNotFound, get(t, h, "/workspace?user=carol").code)
}
