package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
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
	for _, p := range crawl(t, h, 600, "/", "/users?q=erin", "/users?q=c", "/users") {
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
		require.Equal(t, http.StatusConflict, get(t, h, "/users?after="+after).code, after)
	}
}

// TestWhatNeedsAPersonComesFirst has workspaces in every state.
func TestWhatNeedsAPersonComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 60)
		suspend(t, f.manager, "grace", "pay")
		time.Sleep(15 * time.Minute) // bob's run goes on
		_, err := f.manager.Submit(t.Context(), "henry", workspace.Message{ID: "h1", Content: state.UserText("Hello?")})
		require.NoError(t, err)
		suspend(t, f.manager, "heidi", "pay")
		_, err = f.manager.Handle(t.Context(), "dave2", workspace.Message{ID: "refused", Content: state.UserText("Refund it.")})
		require.ErrorIs(t, err, errRefused)
		_, err = store.Put(t.Context(), f.db, "agent:workspace:dave2", []byte("{}"), store.Always)
		require.NoError(t, err)

		page := get(t, f.handler(t, nil), "/").body
		require.Equal(t, []string{"grace", "heidi", "carol", "dave2", "bob", "henry"}, usersOf(t, page))
		for _, text := range []string{
			"Waiting for a person <b>2</b>", "Dead letters <b>1</b>", "Damaged <b>1</b>", "Running for long <b>1</b>",
			"Messages wait <b>1</b>", "Running <b>1</b>", "waits for a person", "running for long: 15 min", errRefused.Error(),
			`<bdi class="v"><b>pay</b></bdi>`, "15 min ago", "65 others are idle",
		} {
			require.Contains(t, page, text)
		}
		require.ErrorIs(t, f.manager.Close(), workspace.ErrBusy)
	})
}

// TestBusyListIsShownInPages has more busy workspaces than a page shows.
func TestBusyListIsShownInPages(t *testing.T) {
	f := newFixture(t, 0)
	for i := range 70 {
		_, err := f.manager.Handle(t.Context(), fmt.Sprint("gone", i), workspace.Message{ID: "refused", Content: state.UserText("Refund it.")})
		require.ErrorIs(t, err, errRefused)
	}
	h := f.handler(t, nil)
	first := get(t, h, "/").body
	require.Len(t, usersOf(t, first), 50)
	require.Contains(t, first, "Dead letters <b>71</b>")
	rest := usersOf(t, get(t, h, nextPage(t, h, "/")).body)
	require.Len(t, rest, 22) // with carol and bob
	for _, user := range rest {
		require.NotContains(t, usersOf(t, first), user)
	}
}

// TestNothingIsToBeDone has idle workspaces only, and more than are counted.
func TestNothingIsToBeDone(t *testing.T) {
	m := openMemory(t, &workspace.Options{Schema: desk})
	h := newHandler(t, m, nil)
	require.Contains(t, get(t, h, "/").body, "There are no workspaces yet")
	for i := range 501 {
		require.NoError(t, m.Update(t.Context(), "user"+numbered(i), func(w *workspace.Workspace) error { return cost.Set(w.State(), 1) }))
	}
	page := get(t, h, "/").body
	require.Contains(t, page, "Nothing is to be done")
	require.Contains(t, page, "More than 500 others are idle")
	require.Len(t, usersOf(t, get(t, h, "/users").body), 50)
	require.Equal(t, http.StatusSeeOther, get(t, h, "/users?q=user0007").code)
	require.Len(t, usersOf(t, get(t, h, "/users?q=user000").body), 10)
}

// TestThreadsOfAUser has three threads, of which one waits.
func TestThreadsOfAUser(t *testing.T) {
	f := newFixture(t, 0)
	f.manager = f.open(t, &workspace.Options{Schema: desk, Run: f.answer, Title: func(*state.State) string { return "About " + mailToken }})
	for _, thread := range []string{"", "holiday", "moving"} {
		f.visit(t, workspace.Thread("grace", thread))
	}
	f.visit(t, "grace2")
	suspend(t, f.manager, workspace.Thread("grace", "holiday"), "pay")
	h := f.handler(t, nil)
	var data struct {
		Threads []struct{ User string }
	}
	for user, want := range map[string][]string{
		"grace": {"grace/holiday", "grace/moving"}, "grace/holiday": {"grace", "grace/moving"}, "grace2": nil,
	} {
		data.Threads = nil
		jsonOf(t, h, "/workspace?user="+url.QueryEscape(user), &data)
		var got []string
		for _, row := range data.Threads {
			got = append(got, row.User)
		}
		require.Equal(t, want, got, user)
	}
	require.NoError(t, f.manager.Update(t.Context(), "grace/holiday", func(w *workspace.Workspace) error {
		return w.Memory().SetSecret("token", mailToken)
	}))
	for _, target := range []string{"/", "/workspace?user=grace", "/workspace/state?user=grace%2Fholiday"} {
		page := get(t, h, target).body
		require.Regexp(t, `thread <bdi( class="v")?>holiday</bdi>`, page, target)
		require.Contains(t, page, "About [SECRET]")
	}
	require.NotContains(t, get(t, newHandler(t, f.open(t, nil), nil), "/").body, "About")
}

// TestCallThatExpires shows why a call waits, and until when.
func TestCallThatExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refund := tool.Must(tool.New("refund", "Refund an order.",
			func(context.Context, struct{}) (string, error) { return "refunded", nil },
			tool.NeedsApproval(func(context.Context, struct{}) (reason string, needed bool) { return "900 USD are much", true }),
			tool.Expires(24*time.Hour)))
		ask := func(ctx context.Context, turn *loop.Turn) error {
			if _, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil)); err != nil {
				return err
			}
			said := state.ToolCalls(state.ToolCall{ID: "call_1", Name: "refund", Input: "{}"})
			return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
		}
		m := openOn(t, store.NewMemory(), &workspace.Options{Run: workspace.Loop(&loop.Loop{
			Agents: map[string]loop.Agent{"": {Ask: ask, Tools: []*tool.Tool{refund}}},
		}), Schema: desk})
		_, err := m.Handle(t.Context(), "grace", workspace.Message{Content: state.UserText("I want my money back.")})
		require.NoError(t, err)
		time.Sleep(4 * time.Hour)
		h := newHandler(t, m, nil)
		for _, target := range []string{"/", "/workspace?user=grace"} {
			page := get(t, h, target).body
			for _, text := range []string{"900 USD are much", "4 h ago", "in 20 h"} {
				require.Contains(t, page, text, target)
			}
		}
		require.NoError(t, m.Close())
	})
}

// A run that nobody holds needs a person as long as no process handles messages.
func TestRunWithoutAHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		gone := openOn(t, db, &workspace.Options{Schema: desk, Run: new(fixture).answer})
		_, err := gone.Submit(t.Context(), "henry", workspace.Message{ID: "h1", Content: state.UserText("Hello?")})
		require.NoError(t, err)
		require.ErrorIs(t, gone.Close(), workspace.ErrBusy)
		time.Sleep(15 * time.Minute)
		page := get(t, newHandler(t, openOn(t, db, &workspace.Options{Schema: desk}), nil), "/").body
		require.Equal(t, []string{"henry"}, usersOf(t, page))
		require.Contains(t, page, "Without a holder <b>1</b>")
	})
}

func openOn(t testing.TB, db store.Store, opts *workspace.Options) *workspace.Manager {
	t.Helper()
	m, err := workspace.Open(context.Background(), db, opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
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
func suspend(t testing.TB, m *workspace.Manager, user string, ids ...string) {
	t.Helper()
	require.NoError(t, m.Do(t.Context(), user, func(_ context.Context, run *workspace.Run) error {
		return errors.Join(state.Messages.Set(run.State(), []state.Message{state.UserText("Pay it.")}), suspendIn(run, ids...))
	}))
}

// suspendIn lets a model make calls in a run, and lets them wait.
func suspendIn(run *workspace.Run, ids ...string) error {
	var calls []state.ToolCall
	for _, id := range ids {
		calls = append(calls, state.ToolCall{ID: id, Name: "pay", Input: `{"amount":900}`})
	}
	if err := run.State().History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}); err != nil {
		return err
	}
	var keys []string
	for _, call := range run.State().History().Pending() {
		keys = append(keys, call.Key)
	}
	return run.Suspend(keys...)
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
	require.Contains(t, page, "waits for a person")

	f.update(t, "grace", func(st *state.State) error {
		forgotten := state.ToolCall{ID: "lost", Name: "pay", Input: `{}`}
		return state.Messages.Set(st, []state.Message{state.AssistantText("So."), state.ToolCalls(forgotten), state.UserText("And?")})
	})
	page = get(t, f.handler(t, nil), "/workspace/conversation?provider=openai&user=grace").body
	require.Equal(t, 4, strings.Count(page, "1 finding<"))
	require.Contains(t, page, `before=4&amp;provider=openai&amp;user=grace#m3">3</a>`, "findings name the messages as they are stored")
}
