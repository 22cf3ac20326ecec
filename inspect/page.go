package inspect

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state/inspect/internal/safetext"
)

//go:embed templates
var templateFiles embed.FS

// page is what a route shows. Templates get it as their data.
type page struct {
	// Name is that of the template. The file templates/NAME.html defines
	// "content", and "fragment-F" for each fragment F that content consists of.
	Name  string
	Title string
	Tab   string // of the tabs of a workspace, or of the navigation
	// Data is the data of the page, also for format=json. It holds nothing of
	// the store that did not go through a masker.
	Data any
	// Head is about the workspace, or nil.
	Head *head
	// Live is set if the page shows what is present, so that it may change. Seq
	// is a name for what it shows, or "": that of the write if Head is set.
	Live bool
	Seq  string

	status  int // 200 if it is 0
	call    *call
	Product string // Options.Title
}

// templates has the templates of each page by its name.
var templates = parseTemplates()

func parseTemplates() map[string]*template.Template {
	base := template.Must(template.New("base").Funcs(functions).ParseFS(templateFiles, "templates/base.html"))
	pages := map[string]*template.Template{}
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".html"); name != "base" {
			pages[name] = template.Must(template.Must(base.Clone()).ParseFS(templateFiles, path.Join("templates", f.Name())))
		}
	}
	return pages
}

var functions = template.FuncMap{
	"bytes": formatBytes,
	"count": formatCount,
	"moment": func(t time.Time) string {
		if t.IsZero() {
			return "–"
		}
		return t.UTC().Format("2006-01-02 15:04:05")
	},
	"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"since":   func(t time.Time) string { return formatSpan(time.Since(t)) },
	"span":    formatSpan,
	"took":    formatTook,
	"kind":    func(kind string) string { return kindWords[kind] },
	"tone": func(kind string) string {
		switch kind {
		case "damaged", "stuck", "dead":
			return "dead"
		case "running":
			return "running"
		}
		return "waiting"
	},
	"visible": func(s string) string { return safetext.Visible(s, false) },
	"next":    func(n uint64) uint64 { return n + 1 },
	"prior":   func(n uint64) uint64 { return n - 1 },
	"tabs":    func() []tab { return tabs },
	"on":      func(p *page, data any) part { return part{p, data} },
}

// part is the data of a template that shows a part of a page.
type part struct {
	Page *page
	Data any
}

// tab is a page about a workspace that the head of such pages leads to.
type tab struct{ Tab, Title, Path string }

var tabs = []tab{
	{"state", "State", "/workspace"},
	{"conversation", "Conversation", "/workspace/conversation"},
	{"results", "Results", "/workspace/results"},
	{"timeline", "Timeline", "/workspace/timeline"},
	{"diff", "Changes", "/workspace/diff"},
	{"queue", "Queue", "/workspace/queue"},
	{"memory", "Memory", "/workspace/memory"},
	{"integrity", "Integrity", "/workspace/integrity"},
}

// Link, Here and File return addresses; see call.link.
func (p *page) Link(path string, pairs ...any) string { return p.call.link(path, words(pairs)...) }

// Here returns the address of this page with other parameters.
func (p *page) Here(pairs ...any) string { return p.call.here(words(pairs)...) }

// File returns the address of a static file.
func (p *page) File(name string) string { return p.call.root + staticPaths[name][1:] }

// Root returns the reference to the prefix of the handler.
func (p *page) Root() string { return p.call.root }

// Param returns a parameter of the request, for forms.
func (p *page) Param(name string) string { return p.call.query.Get(name) }

// Info returns what the header says of the store, or nil for requests that may
// not see it.
func (p *page) Info() *storeInfo {
	if !p.call.access.Read {
		return nil
	}
	return &p.call.h.info
}

// May reports whether the request may do something: write, delete or act,
// which is any of them.
func (p *page) May(what string) bool { return p.call.access.allows(rightNames[what]) }

// Interval returns the milliseconds after which an open page asks what has
// changed.
func (p *page) Interval() int64 { return p.call.h.interval.Milliseconds() }

// Refresh returns the number of seconds after which the page loads again, or 0.
func (p *page) Refresh() int { return p.call.refresh() }

// words returns values as they are written in addresses.
func words(values []any) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = fmt.Sprint(v)
	}
	return list
}

// render answers with a page, a fragment of it, or its data as JSON.
func (c *call) render(p *page) {
	p.call, p.Product = c, c.h.title
	status := p.status
	if status == 0 {
		status = http.StatusOK
	}
	var b bytes.Buffer
	kind := "text/html; charset=utf-8"
	var err error
	switch fragment := c.query.Get("fragment"); {
	case c.query.Get("format") == "json":
		kind = "application/json"
		err = json.NewEncoder(&b).Encode(map[string]any{"format": 1, "page": p.Name, "data": p.Data})
	case fragment != "" && p.status == 0:
		t := templates[p.Name].Lookup("fragment-" + fragment)
		if t == nil {
			status = http.StatusNotFound
			break
		}
		err = t.Execute(&b, p)
	default:
		if n := c.refresh(); n > 0 {
			c.w.Header().Set("Refresh", strconv.Itoa(n))
		}
		err = templates[p.Name].ExecuteTemplate(&b, "base", p)
	}
	if err != nil {
		c.h.logger.Error("page was not rendered", "page", p.Name, "err", err)
		http.Error(c.w, "The page could not be rendered.", http.StatusInternalServerError)
		return
	}
	if p.Live && status == http.StatusOK {
		tag := c.h.etag(p)
		if p.Head == nil && c.r.Header.Get("If-None-Match") == tag {
			c.w.WriteHeader(http.StatusNotModified)
			return
		}
		c.w.Header().Set("ETag", tag)
	}
	c.w.Header().Set("Content-Type", kind)
	c.w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		c.w.Write(b.Bytes()) // an error means that nobody waits for it
	}
}

// refresh returns the parameter refresh, 1 to 3600 seconds, or 0.
func (c *call) refresh() int {
	n, err := strconv.Atoi(c.query.Get("refresh"))
	if err != nil || n < 1 {
		return 0
	}
	return min(n, 3600)
}

// httpError is an error with a status and a text for the reader of the page.
type httpError struct {
	status int
	text   string
}

func (e *httpError) Error() string { return "inspect: " + e.text }

var errNoWorkspace = &httpError{http.StatusNotFound, "There is no such workspace."}

// errNotModified says that the browser has what the page shows.
var errNotModified = errors.New("inspect: not modified")

var errNoPage = &httpError{http.StatusNotFound, "There is no such page."}

// failure is the data of an error page.
type failure struct {
	Status int    `json:"status"`
	Name   string `json:"name"`
	Text   string `json:"text"`
}

// errorPage returns the page for an error.
func (c *call) errorPage(err error) *page {
	status, reason := http.StatusInternalServerError, ""
	var known *httpError
	if errors.As(err, &known) {
		status, reason = known.status, known.text
		if errors.Is(err, errNoWorkspace) {
			reason = fmt.Sprintf("There is no workspace of “%s”.", c.user)
		}
	} else {
		status, reason = explain(err)
		level := slog.LevelInfo
		if status >= 500 && c.ctx().Err() == nil { // else the reader has left
			level = slog.LevelError
		}
		c.h.logger.Log(c.ctx(), level, "request failed", "path", c.path, "user", c.user, "err", err)
	}
	p := &page{
		Name: "error", Title: http.StatusText(status), status: status,
		Data: failure{status, http.StatusText(status), safetext.Visible(reason, false)},
	}
	if c.user != "" && c.access.Read && c.access.sees(c.user) && !errors.Is(err, errNoWorkspace) {
		p.Head = &head{User: safetext.Visible(c.user, false), ID: c.user}
	}
	return p
}

// storeInfo is what the header says of the store.
type storeInfo struct {
	Store    string
	ReadOnly bool
}

// etag names what a page shows, so that a browser that has it gets nothing.
func (h *Handler) etag(p *page) string {
	if p.Head != nil {
		return `"` + p.Head.Revision + `"`
	}
	data, err := json.Marshal(p.Data)
	if err != nil {
		return ""
	}
	return `"` + h.tag(string(data)) + `"`
}
