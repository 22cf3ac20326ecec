package inspect_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

// TestNoAddressNamesAHiddenUser follows all links of a request that may see few
// workspaces, of which most pages have none.
func TestNoAddressNamesAHiddenUser(t *testing.T) {
	f := newFixture(t, 1100)
	h := f.handler(t, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{
		Read: true, Write: true, Delete: true, User: func(id string) bool { return id == "alice" || id == "zoe" },
	})})
	f.visit(t, "zoe")
	found := ""
	for _, p := range crawl(t, h, 600, "/", "/?q=erin", "/?q=c", "/?show=trouble") {
		for _, text := range []string{p.target, p.body, p.header.Get("Location"), p.header.Get("Refresh")} {
			require.NotRegexp(t, `\b(erin[01]\d*|bob|carol|dave)\b|a/b|a%2Fb`, text, p.target) // not a part of a sealed cursor
		}
		found += p.body
	}
	require.Contains(t, found, "user=zoe", "the list goes on behind what is hidden")
}

// TestPlaceInTheListIsSealed asks for pages of the list at places that no page
// has named.
func TestPlaceInTheListIsSealed(t *testing.T) {
	h := newFixture(t, 60).handler(t, nil)
	for _, after := range []string{"alice", "x", strings.Repeat("A", 64)} {
		require.Equal(t, http.StatusConflict, get(t, h, "/?after="+after).code, after)
	}
}

// TestTroubleComesFirst has workspaces in every state.
func TestTroubleComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 60)
		suspend(t, f.manager, "grace", "pay")
		time.Sleep(15 * time.Minute) // bob's run goes on
		h := f.handler(t, nil)

		page := get(t, h, "/?q=").body
		require.Equal(t, []string{"dave", "carol", "bob"}, usersOf(t, page)[:3])
		for _, text := range []string{
			"Damaged <b>1</b>", "Dead letters <b>1</b>", "Running for long <b>1</b>", "Messages wait <b>1</b>",
			"Counted in the first 50 workspaces by name, not in those behind.",
		} {
			require.Contains(t, page, text)
		}
		require.NotContains(t, page, "Waiting for approval", "grace is behind")

		page = get(t, h, "/?show=trouble").body
		require.Equal(t, []string{"dave", "carol", "grace", "bob"}, usersOf(t, page))
		require.Contains(t, page, "waiting for approval")
		require.Contains(t, page, "Waiting for approval <b>1</b>")
		require.Contains(t, page, "Counted in all 68 workspaces.")
		require.Equal(t, http.StatusBadRequest, get(t, h, "/?show=nothing").code)
		require.NoError(t, f.manager.Close())
	})
}

// A run that nobody holds is a trouble as long as no process handles messages.
func TestRunWithoutAHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		gone := openOn(t, db, &workspace.Options{Schema: desk})
		_, _, err := gone.Begin(t.Context(), "henry", workspace.Message{ID: "h1", Content: state.UserText("Hello?")})
		require.NoError(t, err)
		require.NoError(t, gone.Close())
		time.Sleep(15 * time.Minute)
		h := newHandler(t, openOn(t, db, &workspace.Options{Schema: desk}), nil)
		page := get(t, h, "/?show=trouble").body
		require.Equal(t, []string{"henry"}, usersOf(t, page))
		require.Contains(t, page, "Without a holder <b>1</b>")
	})
}

func openOn(t testing.TB, db store.Store, opts *workspace.Options) *workspace.Manager {
	t.Helper()
	m, err := workspace.Open(context.Background(), db, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// usersOf returns the users of a list in its order.
func usersOf(t testing.TB, body string) []string {
	t.Helper()
	var users []string
	for n := range parse(t, body).Descendants() {
		if attribute(n, "data-label") == "User" {
			users = append(users, n.FirstChild.FirstChild.FirstChild.Data)
		}
	}
	return users
}

// suspend leaves a call of a tool that waits for a person.
func suspend(t testing.TB, m *workspace.Manager, user, id string) {
	t.Helper()
	run, _, err := m.Begin(t.Context(), user, workspace.Message{ID: "asks", Content: state.UserText("Pay it.")})
	require.NoError(t, err)
	call := state.ToolCall{ID: id, Name: "pay", Input: `{"amount":900}`}
	require.NoError(t, state.Messages.Set(run.State(), []state.Message{state.UserText("Pay it."), state.ToolCalls(call)}))
	require.NoError(t, run.Suspend(id))
	_, err = run.Finish(t.Context())
	require.NoError(t, err)
}

// TestSuspendedCallIsNoFinding has a call that waits for a person, and one that
// was forgotten.
func TestSuspendedCallIsNoFinding(t *testing.T) {
	f := newFixture(t, 0)
	suspend(t, f.manager, "grace", "pay")
	page := get(t, f.handler(t, nil), "/workspace/conversation?user=grace").body
	require.Contains(t, page, "1 suspended call")
	require.NotContains(t, page, "finding")
	require.Equal(t, 4, strings.Count(page, "accepts"))
	require.Contains(t, page, "waiting for approval")

	f.update(t, "grace", func(st *state.State) error {
		forgotten := state.ToolCall{ID: "lost", Name: "pay", Input: `{}`}
		return state.Messages.Set(st, []state.Message{state.AssistantText("So."), state.ToolCalls(forgotten), state.UserText("And?")})
	})
	page = get(t, f.handler(t, nil), "/workspace/conversation?provider=openai&user=grace").body
	require.Equal(t, 4, strings.Count(page, "1 finding<"))
	require.Contains(t, page, `before=5&amp;provider=openai&amp;user=grace#m4">4</a>`, "findings name the messages as they are stored")
}
