package inspect_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentstate/state/inspect"
	"github.com/stretchr/testify/require"
)

func TestLoopback(t *testing.T) {
	h := newFixture(t, 0).handler(t, &inspect.Options{Hosts: []string{"desk.example.com"}})
	for name, c := range map[string]struct {
		peer, host string
		header     string
		want       int
	}{
		"this machine":       {"127.0.0.1:1", "localhost:80", "", http.StatusOK},
		"another address":    {"127.8.0.1:1", "127.0.0.1", "", http.StatusOK},
		"IPv6":               {"[::1]:1", "[::1]:80", "", http.StatusOK},
		"IPv4 in IPv6":       {"[::ffff:127.0.0.1]:1", "localhost", "", http.StatusOK},
		"another machine":    {"10.0.0.7:1", "localhost", "", http.StatusForbidden},
		"no address":         {"@", "localhost", "", http.StatusForbidden},
		"a proxy":            {"127.0.0.1:1", "localhost", "X-Forwarded-For", http.StatusForbidden},
		"another proxy":      {"127.0.0.1:1", "localhost", "Forwarded", http.StatusForbidden},
		"nginx":              {"127.0.0.1:1", "localhost", "X-Real-IP", http.StatusForbidden},
		"a cache":            {"127.0.0.1:1", "localhost", "Via", http.StatusForbidden},
		"Cloudflare":         {"127.0.0.1:1", "localhost", "CF-Connecting-IP", http.StatusForbidden},
		"Akamai":             {"127.0.0.1:1", "localhost", "True-Client-IP", http.StatusForbidden},
		"Tailscale":          {"127.0.0.1:1", "localhost", "Tailscale-User-Login", http.StatusForbidden},
		"a public name":      {"127.0.0.1:1", "desk.example.com", "", http.StatusForbidden},
		"a name of others":   {"127.0.0.1:1", "evil.example", "", http.StatusMisdirectedRequest},
		"a similar name":     {"127.0.0.1:1", "localhost.evil.example", "", http.StatusMisdirectedRequest},
		"no name":            {"127.0.0.1:1", "", "", http.StatusMisdirectedRequest},
		"a name with a path": {"127.0.0.1:1", "localhost/x", "", http.StatusMisdirectedRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := localRequest(http.MethodGet, "/", "")
			r.RemoteAddr, r.Host = c.peer, c.host
			if c.header != "" {
				r.Header.Set(c.header, "for=10.0.0.7")
			}
			p := send(t, h, r)
			require.Equal(t, c.want, p.code)
			if c.want != http.StatusOK {
				require.NotContains(t, p.body, "alice")
			}
		})
	}
}

func TestTokenMovesIntoACookie(t *testing.T) {
	token := strings.Repeat("t0ken", 8)
	h := newFixture(t, 0).handler(t, &inspect.Options{Authorize: inspect.Token(token, inspect.Access{Read: true})})
	mux := http.NewServeMux()
	mux.Handle("/debug/", http.StripPrefix("/debug", h))
	require.Equal(t, http.StatusForbidden, get(t, mux, "/debug/").code)
	require.Equal(t, http.StatusForbidden, get(t, mux, "/debug/?token="+token[1:]).code)

	p := get(t, mux, "/debug/workspace/history?user=alice&token="+token)
	require.Equal(t, http.StatusSeeOther, p.code)
	require.Equal(t, "/debug/workspace/history?user=alice", resolve(t, "/debug/workspace/history", p.header.Get("Location")))
	cookies := (&http.Response{Header: p.header}).Cookies()
	require.Len(t, cookies, 1)
	require.True(t, cookies[0].HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookies[0].SameSite)
	require.Equal(t, "/debug/", cookies[0].Path)
	require.NotContains(t, p.header.Get("Location"), token)

	r := localRequest(http.MethodGet, "/debug/", "")
	r.AddCookie(cookies[0])
	require.Equal(t, http.StatusOK, send(t, mux, r).code)
	r = localRequest(http.MethodGet, "/debug/", "")
	r.Header.Set("Authorization", "Bearer "+token)
	require.Equal(t, http.StatusOK, send(t, mux, r).code)
	r.Header.Set("Authorization", "Bearer "+token+"x")
	require.Equal(t, http.StatusForbidden, send(t, mux, r).code)
}

func TestShortTokenIsNone(t *testing.T) {
	for _, token := range []string{"", "short", strings.Repeat("x", 31)} {
		h := newFixture(t, 0).handler(t, &inspect.Options{Authorize: inspect.Token(token, inspect.Access{Read: true})})
		require.Equal(t, http.StatusForbidden, get(t, h, "/?token="+token).code)
	}
}

func TestZeroAccessMayDoNothing(t *testing.T) {
	f := newFixture(t, 0)
	for _, access := range []inspect.Access{{}, {Write: true, Delete: true, Actor: "op"}} {
		h := f.handler(t, &inspect.Options{Authorize: inspect.Trusted(access)})
		for _, target := range append(pagesOf("alice"), "/", "/store", "/schema", "/sweep", "/workspace/export?user=alice") {
			p := get(t, h, target)
			require.Equal(t, http.StatusForbidden, p.code, target)
			require.NotContains(t, p.body, "<li>memory</li>", target)
		}
		require.Equal(t, http.StatusForbidden, postForm(t, h, "/sweep", "do=start").code)
	}
}
