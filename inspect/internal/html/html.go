// Package html makes HTML of the pages of package view.
package html

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/agentstate/state/inspect/internal/view"
)

//go:embed templates
var templateFiles embed.FS

// templates has the templates of each page by its name. The file NAME.html
// defines "content"; the parts of it that change while the page is open have the
// attribute data-fragment.
var templates = parseTemplates()

func parseTemplates() map[string]*template.Template {
	base := template.Must(template.New("base").Funcs(functions).ParseFS(templateFiles, "templates/base.html", "templates/parts.html"))
	pages := map[string]*template.Template{}
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		pages[name] = template.Must(template.Must(base.Clone()).ParseFS(templateFiles, path.Join("templates", f.Name())))
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
	"ago":     func(t time.Time) string { return formatAgo(time.Since(t)) },
	"span":    formatSpan,
	"took":    formatTook,
	"kind":    view.KindWords,
	"tone": func(kind string) string {
		switch kind {
		case "damaged", "stuck", "dead":
			return "dead"
		case "running":
			return "running"
		}
		return "waiting"
	},
	"next":    func(n uint64) uint64 { return n + 1 },
	"prior":   func(n uint64) uint64 { return n - 1 },
	"on":      func(p *page, data any) part { return part{p, data} },
	"do":      func(action, field, tag, text string) button { return button{action, field, tag, text} },
	"count64": func(n uint64, noun string) string { return formatCount(int(n), noun) },
}

// part is the data of a template that shows a part of a page.
type part struct {
	Page *page
	Data any
}

// button is the data of a form that is one button.
type button struct{ Action, Field, Tag, Button string }

// page is the data of the templates.
type page struct {
	*view.Page
	*Site
}

// Site is where a page is shown, and for whom.
type Site struct {
	Product  string // the title of all pages
	Store    string // the kind of store; empty if the reader may not see the pages
	ReadOnly bool   // whether the store is
	// Write, Decide and Delete are what the reader may do. Decide is for calls that
	// wait.
	Write, Decide, Delete bool
	Path                  string // of the page, below the prefix of the site
	Query                 url.Values
	Interval              time.Duration // after which an open page asks what has changed
	Refresh               int           // the seconds after which the page loads again, or 0
	Note                  *Note         // what an action has done, or nil
}

// Note says what an action has done.
type Note struct {
	Did  string `json:"did"`
	Then string `json:"then,omitempty"` // what others have yet to notice
}

// Write writes a page as HTML.
func Write(w io.Writer, p *view.Page, s *Site) error {
	return templates[p.Name].ExecuteTemplate(w, "base", &page{p, s})
}

// Root returns a reference that leads from the page to the prefix of the site. It
// ends in a slash.
func (s *Site) Root() string {
	if n := strings.Count(s.Path[1:], "/"); n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

// Link returns the address of a page, with pairs of names and values as its
// query. The address of a page about a workspace has the user, and at and as of
// the present page. Pairs replace them, and an empty value removes a name.
func (s *Site) Link(path string, pairs ...any) string {
	query := url.Values{}
	if strings.HasPrefix(path, "/workspace") {
		for _, name := range []string{"user", "at", "as"} {
			query.Set(name, s.Query.Get(name))
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	for name, values := range query {
		if values[0] == "" {
			delete(query, name)
		}
	}
	link := s.Root() + path[1:]
	if len(query) > 0 {
		link += "?" + query.Encode()
	}
	return link
}

// Here returns the address of the present page with other parameters.
func (s *Site) Here(pairs ...any) string {
	var kept []any
	for name := range s.Query {
		if name != "format" && name != "note" {
			kept = append(kept, name, s.Query.Get(name))
		}
	}
	return s.Link(s.Path, append(kept, pairs...)...)
}

// Do returns the address of an action on the workspace of the page.
func (s *Site) Do(action string, pairs ...any) string {
	return s.Link("/workspace/"+action, append(pairs, "at", "", "as", "")...)
}

// File returns the address of a static file.
func (s *Site) File(name string) string { return s.Root() + paths[name][1:] }

// Param returns a parameter of the page, for forms.
func (s *Site) Param(name string) string { return s.Query.Get(name) }

// Milliseconds returns the Interval as the script takes it.
func (s *Site) Milliseconds() int64 { return s.Interval.Milliseconds() }
