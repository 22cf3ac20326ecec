package inspect_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agentstate/state/inspect"
	"github.com/stretchr/testify/require"
)

func TestEveryLinkLeadsToAPage(t *testing.T) {
	h := newFixture(t, 3).handler(t, nil)
	for _, p := range crawl(t, h, 2000, "/") {
		switch {
		case strings.Contains(p.target, "user=dave"):
			require.Contains(t, []int{http.StatusOK, http.StatusInternalServerError}, p.code, p.target)
		case p.code == http.StatusSeeOther:
		default:
			require.Equal(t, http.StatusOK, p.code, p.target)
		}
		require.NotContains(t, p.body, cardNumber, p.target)
		require.NotContains(t, p.body, mailToken, p.target)
		require.NotContains(t, p.body, "key-of-the-server", p.target)
	}
}

func TestHeaders(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	for _, p := range crawl(t, h, 2000, "/", "/nothing", "/workspace") {
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
		mux := http.NewServeMux()
		mux.Handle("/debug/state/", http.StripPrefix(strip, h))
		pages := crawl(t, mux, 2000, "/debug/state/")
		require.Greater(t, len(pages), 20)
		for _, p := range pages {
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
