package inspect

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// call is one request.
type call struct {
	h      *Handler
	w      http.ResponseWriter
	r      *http.Request
	path   string // below the prefix of the handler, beginning with a slash
	root   string // leads from the path to the prefix of the handler, and ends in a slash
	query  url.Values
	params map[string]string // of the pattern of the route
	access Access
	// user is the workspace that the page is about, or "".
	user string
}

func newCall(h *Handler, w http.ResponseWriter, r *http.Request) *call {
	path := "/" + strings.TrimPrefix(r.URL.Path, "/")
	query := r.URL.Query()
	for _, values := range query {
		for i, v := range values {
			values[i] = strings.ToValidUTF8(v, "\ufffd")
		}
	}
	return &call{h: h, w: w, r: r, path: path, root: rootOf(path), query: query, user: query.Get("user")}
}

// rootOf returns a reference that leads from a path to "/".
func rootOf(path string) string {
	return cmp.Or(strings.Repeat("../", strings.Count(path[1:], "/")), "./")
}

func (c *call) ctx() context.Context { return c.r.Context() }

// serve checks what every request must fulfil, and calls the function of its
// route.
func (c *call) serve() (*page, error) {
	if !c.h.acceptsHost(c.r.Host) {
		return nil, &httpError{http.StatusMisdirectedRequest,
			"This server was not reached under a name that it knows. Add the name to Options.Hosts."}
	}
	if file, ok := staticFiles[c.path]; ok && isRead(c.r.Method) {
		file.serve(c.w)
		return nil, nil
	}
	if err := c.h.origins.Check(c.r); err != nil {
		return nil, &httpError{http.StatusForbidden, "The request comes from another site."}
	}
	c.access = c.h.authorized(c.r)
	if !c.access.Read {
		return nil, &httpError{http.StatusForbidden, "This request has no access. If you came with a token, reload the page."}
	}
	if isRead(c.r.Method) && c.query.Has(tokenParam) {
		c.keepToken()
		return nil, nil
	}
	route, err := c.route()
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(route.path, "/workspace") {
		if c.user == "" {
			return nil, &httpError{http.StatusBadRequest, "The parameter user is missing."}
		}
		if !c.access.sees(c.user) {
			return nil, errNoWorkspace
		}
	}
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxBody)
	return route.serve(c)
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// link returns the address of a page, with pairs of names and values as its
// query. The address of a page about a workspace has the user, and at and as of
// the present page. Pairs replace them, and an empty value removes a name.
func (c *call) link(path string, pairs ...string) string {
	query := url.Values{}
	if strings.HasPrefix(path, "/workspace") {
		for _, name := range []string{"user", "at", "as"} {
			query.Set(name, c.query.Get(name))
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	for name, values := range query {
		if values[0] == "" {
			delete(query, name)
		}
	}
	link := c.root + path[1:]
	if len(query) > 0 {
		link += "?" + query.Encode()
	}
	return link
}

// here returns the address of the present page with other parameters.
func (c *call) here(pairs ...string) string {
	kept := []string{}
	for _, name := range slices.Sorted(keysOf(c.query)) {
		if name != "fragment" && name != "format" {
			kept = append(kept, name, c.query.Get(name))
		}
	}
	return c.link(c.path, append(kept, pairs...)...)
}

func keysOf(query url.Values) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range query {
			if !yield(name) {
				return
			}
		}
	}
}

// number returns a parameter that is a number, and whether the request has it.
func (c *call) number(name string) (n uint64, ok bool, err error) {
	text := c.query.Get(name)
	if text == "" {
		return 0, false, nil
	}
	if n, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, false, &httpError{http.StatusBadRequest, "The parameter " + name + " is not a number."}
	}
	return n, true, nil
}

// redirect answers with a redirect to another page.
func (c *call) redirect(link string) {
	// http.Redirect would resolve the link against a path without the prefix.
	c.w.Header().Set("Location", link)
	c.w.WriteHeader(http.StatusSeeOther)
}

// tag returns a name for an id that forms and links can carry although the id
// may contain a secret. Names are those of one Handler.
func (h *Handler) tag(id string) string {
	mac := hmac.New(sha256.New, h.key[:])
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
