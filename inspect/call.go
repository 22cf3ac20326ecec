package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentstate/state/inspect/internal/html"
	"github.com/agentstate/state/inspect/internal/view"
)

// call is one request.
type call struct {
	h      *Handler
	w      http.ResponseWriter
	r      *http.Request
	path   string // below the prefix of the handler, beginning with a slash
	query  url.Values
	access Access
	// user is the workspace that the page is about, or "".
	user string
	site html.Site
}

func newCall(h *Handler, w http.ResponseWriter, r *http.Request) *call {
	c := &call{h: h, w: w, r: r, path: "/" + strings.TrimPrefix(r.URL.Path, "/"), query: r.URL.Query()}
	for _, values := range c.query {
		for i, v := range values {
			values[i] = strings.ToValidUTF8(v, "\ufffd")
		}
	}
	c.user = c.query.Get("user")
	c.site = html.Site{Product: h.title, ReadOnly: h.info.ReadOnly, Path: c.path, Query: c.query, Interval: h.interval}
	if n, err := strconv.Atoi(c.query.Get("refresh")); err == nil && n > 0 {
		c.site.Refresh = min(n, 3600)
	}
	return c
}

func (c *call) ctx() context.Context { return c.r.Context() }

// route is an action, or a form that asks for one.
type route struct {
	right right
	// serve returns the page to be rendered, or nil if it has answered itself.
	serve func(c *call) (*view.Page, error)
}

// pages returns the pages by their paths. Those that begin with /workspace are
// about the workspace of a user.
func pages(src *view.Source) map[string]func(context.Context, view.Query) (*view.Page, error) {
	return map[string]func(context.Context, view.Query) (*view.Page, error){
		"/": src.Busy, "/users": src.Users, "/schema": src.Schema,
		"/workspace": src.Overview, "/workspace/state": src.State, "/workspace/conversation": src.Conversation,
		"/workspace/results": src.Results, "/workspace/result": src.Result, "/workspace/history": src.History,
		"/workspace/diff": src.Diff,
	}
}

// serve checks what every request must fulfil, and returns the page that it asks
// for, or nil if it has answered.
func (c *call) serve() (*view.Page, error) {
	if !c.h.acceptsHost(c.r.Host) {
		return nil, &view.Error{Status: http.StatusMisdirectedRequest,
			Text: "This server was not reached under a name that it knows. Add the name to Options.Hosts."}
	}
	reads := c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
	if file, ok := html.Files[c.path]; ok && reads {
		file.Serve(c.w)
		return nil, nil
	}
	if err := c.h.origins.Check(c.r); err != nil {
		return nil, &view.Error{Status: http.StatusForbidden, Text: "The request comes from another site."}
	}
	c.access = c.h.authorized(c.r)
	if !c.access.Read {
		return nil, &view.Error{
			Status: http.StatusForbidden,
			Text:   "This request has no access. If you came with a token, reload the page.",
		}
	}
	c.site.Store = c.h.info.Store
	c.site.Write, c.site.Decide, c.site.Delete = c.may(rightWrite), c.may(rightDecide), c.may(rightDelete)
	if reads && c.query.Has(tokenParam) {
		c.keepToken()
		return nil, nil
	}
	show, isPage := c.h.pages[c.path]
	actions, asks := c.h.actions[c.path], c.h.asks[c.path]
	method := c.r.Method
	switch {
	case c.path == "/workspace/export" || isPage:
		if !reads {
			return nil, c.notAllowed(http.MethodGet)
		}
	case asks.serve != nil && reads && c.may(asks.right):
		actions = asks
	case actions.serve == nil || !c.may(actions.right):
		return nil, errNoPage
	case method != http.MethodPost:
		return nil, c.notAllowed(http.MethodPost)
	}
	if strings.HasPrefix(c.path, "/workspace") {
		if c.user == "" {
			return nil, &view.Error{Status: http.StatusBadRequest, Text: "The parameter user is missing."}
		}
		if !c.access.sees(c.user) {
			return nil, view.ErrNoWorkspace
		}
	}
	if sealed := c.query.Get("note"); sealed != "" {
		c.site.Note = &html.Note{}
		if !c.h.src.Unseal("note", c.user, sealed, c.site.Note) {
			return nil, &view.Error{
				Status: http.StatusConflict, Text: "This address is of an earlier process, or was changed. Begin again.",
			}
		}
	}
	switch {
	case isPage:
		return show(c.ctx(), c.ask())
	case c.path == "/workspace/export":
		return nil, c.export()
	}
	c.r.Body = http.MaxBytesReader(c.w, c.r.Body, maxBody)
	return actions.serve(c)
}

// ask returns what the request asks for.
func (c *call) ask() view.Query {
	return view.Query{
		User: c.user, Values: c.query, Sees: c.access.User,
		Known: strings.Trim(c.r.Header.Get("If-None-Match"), `"`),
	}
}

func (c *call) notAllowed(method string) error {
	c.w.Header().Set("Allow", method)
	return &view.Error{Status: http.StatusMethodNotAllowed, Text: "This page has no such method."}
}

// redirect answers with a redirect to another page.
func (c *call) redirect(link string) {
	// http.Redirect would resolve the link against a path without the prefix.
	c.w.Header().Set("Location", link)
	c.w.WriteHeader(http.StatusSeeOther)
}

// export answers with a file, which a browser does not show.
func (c *call) export() error {
	file, err := c.h.src.Export(c.ctx(), c.ask())
	if err != nil {
		return err
	}
	header := c.w.Header()
	header.Set("Content-Type", file.Kind)
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": file.Name}))
	header.Set("Content-Length", strconv.Itoa(len(file.Body)))
	if c.r.Method != http.MethodHead {
		io.Copy(c.w, strings.NewReader(file.Body)) // an error means that nobody waits for it
	}
	return nil
}

// render answers with a page, or with its data as JSON.
func (c *call) render(p *view.Page, status int) {
	asJSON := c.query.Get("format") == "json"
	if p.GoTo != "" && !asJSON {
		c.redirect(c.site.Link("/workspace", "user", p.GoTo))
		return
	}
	var b bytes.Buffer
	var err error
	header := c.w.Header()
	if asJSON {
		header.Set("Content-Type", "application/json")
		err = json.NewEncoder(&b).Encode(map[string]any{"format": 1, "page": p.Name, "data": p.Data})
	} else {
		header.Set("Content-Type", "text/html; charset=utf-8")
		if c.site.Refresh > 0 {
			header.Set("Refresh", strconv.Itoa(c.site.Refresh))
		}
		if p.Live {
			header.Set("ETag", `"`+p.Seq+`"`)
		}
		err = html.Write(&b, p, &c.site)
	}
	if err != nil {
		c.h.logger.Error("page was not rendered", "page", p.Name, "err", err)
		http.Error(c.w, "The page could not be rendered.", http.StatusInternalServerError)
		return
	}
	header.Set("Content-Length", strconv.Itoa(b.Len()))
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		c.w.Write(b.Bytes()) // an error means that nobody waits for it
	}
}

var errNoPage = &view.Error{Status: http.StatusNotFound, Text: "There is no such page."}

// failure is the data of an error page.
type failure struct {
	Status int    `json:"status"`
	Name   string `json:"name"`
	Text   string `json:"text"`
}

// errorPage returns the page for an error, and its status.
func (c *call) errorPage(err error) (*view.Page, int) {
	status, reason := view.Explain(err)
	var known *view.Error
	if !errors.As(err, &known) {
		level := slog.LevelInfo
		if status >= 500 && c.ctx().Err() == nil { // else the reader has left
			level = slog.LevelError
		}
		c.h.logger.Log(c.ctx(), level, "request failed", "path", c.path, "user", c.user, "err", err)
	}
	if err == view.ErrNoWorkspace {
		reason = fmt.Sprintf("There is no workspace of “%s”.", c.user)
	}
	p := &view.Page{
		Name: "error", Title: http.StatusText(status),
		Data: failure{status, http.StatusText(status), view.Visible(reason)},
	}
	if c.user != "" && c.access.Read && c.access.sees(c.user) && err != view.ErrNoWorkspace {
		p.Head = view.NameHead(c.user)
	}
	return p, status
}
