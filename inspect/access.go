package inspect

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Access is what a request may do. The zero Access may do nothing.
type Access struct {
	Read   bool                 // see the pages; nothing is possible without it
	Write  bool                 // every action but Reset and Delete
	Delete bool                 // reset and delete workspaces
	Actor  string               // signs actions: the cause in the journal is "inspect:ACTOR"
	User   func(id string) bool // restricts the access to some workspaces (default all)
}

// right is what an action needs.
type right int

const (
	rightWrite  right = iota
	rightDecide       // to write, and a Manager that handles messages
	rightDelete
)

func (c *call) may(r right) bool {
	switch r {
	case rightDelete:
		return c.access.Delete
	case rightDecide:
		return c.access.Write && c.h.handles()
	}
	return c.access.Write
}

// handles reports whether the Manager handles messages.
func (h *Handler) handles() bool { return h.info.Run != nil }

// authorized returns what a request may do, as far as the Manager can do it.
func (h *Handler) authorized(r *http.Request) Access {
	a := h.authorize(r)
	if h.info.ReadOnly {
		a.Write, a.Delete = false, false
	}
	return a
}

// sees reports whether the access includes the workspace of a user.
func (a Access) sees(user string) bool { return a.User == nil || a.User(user) }

// Loopback returns an Access that may read for requests from this machine. They
// come from a loopback address, have a loopback Host, and have no header of a
// proxy. A proxy on this machine that adds none, as nginx without further
// settings, cannot be told from a browser: behind a proxy, set
// Options.Authorize.
func Loopback(r *http.Request) Access {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() || !isLoopbackName(hostname(r.Host)) {
		return Access{}
	}
	for name := range r.Header {
		if isOfProxy(name) {
			return Access{}
		}
	}
	return Access{Read: true}
}

// isOfProxy reports whether proxies and tunnels add a header.
func isOfProxy(name string) bool {
	switch name {
	case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Host",
		"X-Envoy-External-Address",
		"True-Client-Ip", "Fastly-Client-Ip", "Fly-Client-Ip":
		return true
	}
	for _, prefix := range []string{"X-Forwarded-", "Cf-", "Tailscale-", "X-Goog-", "X-Amzn-", "X-Azure-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Trusted returns an Authorize function that gives an Access to every request:
// the middleware of the program has decided who may come here.
func Trusted(a Access) func(r *http.Request) Access {
	return func(*http.Request) Access { return a }
}

// minToken is the length of the shortest token in bytes.
const minToken = 32

// tokenParam is the query parameter with which a browser brings its token once.
const tokenParam = "token"

// Token returns an Authorize function that gives an Access to requests with a
// token of 32 characters or more. With a shorter one, no request has access.
//
// A browser brings the token once, in the query parameter token. The Handler
// puts it into a cookie, which scripts and other sites cannot use, and redirects
// to the address without it. Other programs send "Authorization: Bearer TOKEN".
func Token(token string, a Access) func(r *http.Request) Access {
	want := sha256.Sum256([]byte(token))
	matches := func(text string) bool {
		got := sha256.Sum256([]byte(text))
		return subtle.ConstantTimeCompare(got[:], want[:]) == 1
	}
	cookie := tokenCookie(token)
	return func(r *http.Request) Access {
		if len(token) < minToken {
			return Access{}
		}
		candidates := []string{r.URL.Query().Get(tokenParam)}
		if text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
			candidates = append(candidates, text)
		}
		for _, c := range r.CookiesNamed(cookie) {
			candidates = append(candidates, c.Value)
		}
		for _, text := range candidates {
			if matches(text) {
				return a
			}
		}
		return Access{}
	}
}

// tokenCookie returns the name of the cookie for a token. Since browsers do not
// tell the ports of a host apart, each token has a name of its own.
func tokenCookie(token string) string {
	sum := sha256.Sum256([]byte("agentstate inspect cookie\x00" + token))
	return "agentstate_" + hex.EncodeToString(sum[:6])
}

// keepToken moves a token from the address into a cookie.
func (c *call) keepToken() {
	token := c.query.Get(tokenParam)
	http.SetCookie(c.w, &http.Cookie{
		Name: tokenCookie(token), Value: token, Path: c.prefix(), HttpOnly: true,
		Secure: c.r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
	c.redirect(c.site.Here(tokenParam, ""))
}

// prefix returns the path under which the handler is mounted, as the server has
// got it, with a slash at its end.
func (c *call) prefix() string {
	path, _, _ := strings.Cut(c.r.RequestURI, "?")
	prefix, ok := strings.CutSuffix(path, strings.TrimPrefix(c.r.URL.EscapedPath(), "/"))
	if !ok || !strings.HasPrefix(prefix, "/") || !strings.HasSuffix(prefix, "/") {
		return "/"
	}
	return prefix
}

// hostNames returns the set of Options.Hosts.
func hostNames(list []string) (map[string]bool, error) {
	names := map[string]bool{}
	for _, name := range list {
		if name == "" || strings.ContainsAny(name, "/@?# ") {
			return nil, fmt.Errorf("inspect: Hosts: %q is not the name of a host", name)
		}
		names[strings.ToLower(name)] = true
	}
	return names, nil
}

// acceptsHost reports whether a Host header has a name of this server.
func (h *Handler) acceptsHost(host string) bool {
	host = strings.ToLower(host)
	name := hostname(host)
	return isLoopbackName(name) || h.hosts[host] || h.hosts[name]
}

// hostname returns a Host header without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isLoopbackName(name string) bool {
	return name == "localhost" || name == "127.0.0.1" || name == "::1"
}
