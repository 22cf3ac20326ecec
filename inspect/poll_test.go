package inspect_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/stretchr/testify/require"
)

// ask asks for a page as an open page does that has shown what tag names.
func ask(t testing.TB, h http.Handler, target, tag string) response {
	t.Helper()
	r := localRequest(http.MethodGet, target, "")
	r.Header.Set("If-None-Match", tag)
	return send(t, h, r)
}

// TestOpenPageAsksWhatHasChanged lets pages ask before and after a write.
func TestOpenPageAsksWhatHasChanged(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{Read: true}), Interval: 7 * time.Second})
	for target, write := range map[string]func(){
		"/": func() { suspend(t, f.manager, "grace", "pay") },
		"/workspace/state?user=alice": func() {
			f.update(t, "alice", func(st *state.State) error { return cost.Set(st, 1) })
		},
		"/workspace/conversation?user=..": func() { f.visit(t, "..") },
	} {
		p := get(t, h, target)
		require.Contains(t, p.body, `data-live="7000"`)
		tag := p.header.Get("ETag")
		require.NotEmpty(t, tag, target)
		same := ask(t, h, target, tag)
		require.Equal(t, http.StatusNotModified, same.code, target)
		require.Empty(t, same.body)
		write()
		next := ask(t, h, target, tag)
		require.Equal(t, http.StatusOK, next.code, target)
		require.NotEqual(t, tag, next.header.Get("ETag"), target)
	}
}

// A run has heartbeats, which are no writes: its page is always answered.
func TestPageOfARunIsAlwaysAnswered(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	p := get(t, h, "/workspace/state?user=bob")
	require.Equal(t, http.StatusOK, ask(t, h, "/workspace/state?user=bob", p.header.Get("ETag")).code)
}

func TestOnlyThePresentIsLive(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	require.Contains(t, get(t, h, "/workspace/state?user=alice").body, "data-live")
	p := get(t, h, "/workspace/state?user=alice&at=3")
	require.NotContains(t, p.body, "data-live")
	require.Empty(t, p.header.Get("ETag"))
	require.NotContains(t, p.header, "Refresh")
	p = get(t, h, "/workspace/state?user=alice&refresh=5")
	require.Equal(t, "5", p.header.Get("Refresh"))
	require.Contains(t, p.body, "Stop refreshing")
}
