package inspect_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agentstate/state/inspect"
	"github.com/stretchr/testify/require"
)

// TestEveryPage follows every link of an operator's pages, below the prefix of
// another site, and asks for the addresses of all actions.
func TestEveryPage(t *testing.T) {
	const prefix = "/debug/state"
	d := newActionDesk(t, operator)
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, d))
	seqs := func() (list []uint64) {
		for _, user := range []string{"alice", "bob", "carol", "..", "a/b?x=1"} {
			list = append(list, summaryOf(t, d.fixture, user).Seq)
		}
		return list
	}
	before := seqs()
	const unlinked = "field=order_id"
	targets := []string{prefix + "/", prefix + "/nothing?" + unlinked, prefix + "/workspace?" + unlinked}
	for path, form := range posts {
		form := url.Values{"user": {"alice"}, "to": {"3"}, "version": {"5"}, "value": {`"x"`}, "confirm": form["confirm"]}
		targets = append(targets, prefix+path+"?"+unlinked+"&"+form.Encode())
	}
	pages := crawl(t, mux, 3000, targets...)
	require.Greater(t, len(pages), 100)
	require.Equal(t, before, seqs(), "a GET changes nothing")
	for _, p := range pages {
		require.True(t, strings.HasPrefix(p.target, prefix+"/"), p.target)
		switch {
		case strings.HasPrefix(p.target, prefix+"/workspace/retry"):
			require.Equal(t, http.StatusMethodNotAllowed, p.code, p.target)
			require.Equal(t, http.MethodPost, p.header.Get("Allow"), p.target)
		case strings.Contains(p.target, unlinked), p.code == http.StatusSeeOther:
		case strings.Contains(p.target, "user=dave"):
			require.Contains(t, []int{http.StatusOK, http.StatusInternalServerError}, p.code, p.target)
		default:
			require.Equal(t, http.StatusOK, p.code, p.target)
		}
		for _, secret := range []string{cardNumber, mailToken, "key-of-the-server"} {
			require.NotContains(t, p.body, secret, p.target)
		}
		require.Equal(t, "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'", p.header.Get("Content-Security-Policy"), p.target)
		require.Equal(t, "nosniff", p.header.Get("X-Content-Type-Options"))
		require.Equal(t, "same-origin", p.header.Get("Referrer-Policy"))
		require.Equal(t, "no-store", p.header.Get("Cache-Control"))
		require.Equal(t, "same-origin", p.header.Get("Cross-Origin-Opener-Policy"))
		require.Equal(t, "same-origin", p.header.Get("Cross-Origin-Resource-Policy"))
	}
}

func TestMountedUnderPrefix(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	for _, strip := range []string{"/debug/state", "/debug/state/"} {
		stripped := http.StripPrefix(strip, h)
		for _, p := range crawl(t, stripped, 20, "/debug/state/") {
			require.True(t, strings.HasPrefix(p.target, "/debug/state/"), p.target)
			require.NotEqual(t, http.StatusNotFound, p.code, p.target)
		}
	}
	// Without the slash, relative links would lead out of the prefix.
	p := send(t, http.StripPrefix("/debug/state", h), localRequest(http.MethodGet, "/debug/state", ""))
	require.Equal(t, http.StatusPermanentRedirect, p.code)
	require.Equal(t, "/debug/state/", resolve(t, "/debug/state", p.header.Get("Location")))
}

func TestNewRefusesOptionsWithoutMeaning(t *testing.T) {
	_, err := inspect.New(nil, nil)
	require.EqualError(t, err, "inspect: Manager is nil")
	f := newFixture(t, 0)
	_, err = inspect.New(f.manager, &inspect.Options{Interval: -1})
	require.ErrorContains(t, err, "inspect: Interval")
	_, err = inspect.New(f.manager, &inspect.Options{Hosts: []string{"https://example.com"}})
	require.ErrorContains(t, err, "inspect: Hosts")
}

func TestUserIDsAreFound(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	for _, user := range []string{"alice", "..", "a/b?x=1"} {
		p := get(t, h, "/workspace/state?"+url.Values{"user": {user}}.Encode())
		require.Equal(t, http.StatusOK, p.code, user)
		require.Contains(t, p.body, "<h1><bdi>"+strings.TrimSuffix(user, "/b?x=1")+"</bdi>")
	}
	require.Equal(t, http.StatusNotFound, get(t, h, "/workspace/state?user=nobody").code)
	require.Equal(t, http.StatusBadRequest, get(t, h, "/workspace").code)
}
