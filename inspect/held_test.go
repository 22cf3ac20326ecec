package inspect_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

func TestTheListFollowsTheRunsOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, _, _ := newCounted(t, &workspace.Options{Schema: desk})
		m, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: desk})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		h := newHandler(t, m, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{
			Read: true, User: func(id string) bool { return id != "bob" },
		})})
		page := get(t, h, "/").body
		require.Contains(t, page, `data-live data-events="./events" data-seq="`)
		_, seq, _ := strings.Cut(page, `data-seq="`)
		seq, _, _ = strings.Cut(seq, `"`)
		s := listen(t, h, "/events?after="+seq, "")
		require.Equal(t, retryLine, s.take(), "the page shows what is held")

		run, _, err := m.Begin(t.Context(), "ann", workspace.Message{ID: "a1", Content: state.UserText("Hello?")})
		require.NoError(t, err)
		time.Sleep(time.Second)
		body := s.take()
		require.Contains(t, body, `"held":1}`)
		require.NotContains(t, body, "ann")
		_, _, err = m.Begin(t.Context(), "bob", workspace.Message{ID: "b1", Content: state.UserText("Hello?")})
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Empty(t, s.take(), "the request does not see bob")

		calls := db.reads()
		time.Sleep(2 * time.Second)
		fragment := get(t, h, "/?fragment=held").body
		require.Equal(t, calls, db.reads(), "neither the stream nor the fragment read the store")
		require.Contains(t, fragment, ">ann<")
		require.NotContains(t, fragment, "bob")

		_, err = run.Finish(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Contains(t, s.take(), `"held":0}`)
		s.cancel()
		require.True(t, s.hasEnded())
	})
}

func TestTheListSaysWhenItWasRead(t *testing.T) {
	h := newFixture(t, 60).handler(t, nil)
	page := get(t, h, "/").body
	require.Contains(t, page, "Listed at <time")
	require.Contains(t, page, `href="./?refresh=5"`)
	next := get(t, h, nextPage(t, h, "/")).body
	require.NotContains(t, next, "data-events", "a page in the middle of the list is not live")
}
