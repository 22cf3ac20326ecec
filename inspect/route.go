package inspect

import (
	"net/http"
	"slices"
	"strings"
)

// right is what a request needs for a route.
type right int

const (
	rightRead right = iota
	rightWrite
	rightDelete
	rightAct // any but rightRead
)

// rightNames are the names of rights in templates.
var rightNames = map[string]right{"write": rightWrite, "delete": rightDelete, "act": rightAct}

// route is an entry of the table of routes. A path has parameters in braces,
// each of which stands for one segment. Those that begin with /workspace are
// about the workspace of a user and have the parameter user.
type route struct {
	method string // GET, which includes HEAD, or POST
	path   string
	right  right
	// serve returns the page to be rendered, or nil if it has answered itself.
	serve func(c *call) (*page, error)
}

// table returns the routes of a Handler. The actions have theirs in actions.go.
func (h *Handler) table() []route {
	get := func(path string, serve func(c *call) (*page, error)) route {
		return route{http.MethodGet, path, rightRead, serve}
	}
	return slices.Concat([]route{
		get("/", h.workspaces),
		get("/schema", h.schema),
		get("/workspace", h.state),
		get("/workspace/conversation", h.conversation),
		get("/workspace/results", h.results),
		get("/workspace/results/{n}", h.result),
		get("/workspace/timeline", h.timeline),
		get("/workspace/diff", h.diff),
		get("/workspace/run/{id}", h.run),
		get("/workspace/queue", h.queue),
		get("/workspace/memory", h.memory),
		get("/workspace/integrity", h.integrity),
		get("/workspace/export", h.export),
		get("/workspace/messages", h.messages),
	}, h.actions())
}

// route finds the route of a request. A route for which the request has no right
// does not exist for it.
func (c *call) route() (route, error) {
	var methods []string
	for _, r := range c.h.routes {
		params, ok := matchPath(r.path, c.path)
		if !ok || !c.access.allows(r.right) {
			continue
		}
		if r.method == c.r.Method || r.method == http.MethodGet && c.r.Method == http.MethodHead {
			c.params = params
			return r, nil
		}
		methods = append(methods, r.method)
	}
	if len(methods) > 0 {
		c.w.Header().Set("Allow", strings.Join(methods, ", "))
		return route{}, &httpError{http.StatusMethodNotAllowed, "This page has no such method."}
	}
	return route{}, errNoPage
}

// matchPath returns the parameters of a path that a pattern matches.
func matchPath(pattern, path string) (map[string]string, bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	params := map[string]string{}
	for i, segment := range want {
		switch {
		case strings.HasPrefix(segment, "{"):
			params[strings.Trim(segment, "{}")] = got[i]
		case segment != got[i]:
			return nil, false
		}
	}
	return params, true
}
