// Package view has the pages of package inspect as plain structs, in which
// everything that came from a store is masked: they are what format=json and the
// text of the command show, and what templates make HTML of.
package view

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/agentstate/state/workspace"
)

// Source makes pages of the workspaces of a Manager. It is safe for concurrent
// use.
type Source struct {
	Key
	manager    *workspace.Manager
	info       workspace.Info
	heartbeats heartbeats
	views      viewCache
}

// New returns a Source for the workspaces of m, which it does not close.
func New(m *workspace.Manager) *Source {
	return &Source{Key: newKey(), manager: m, info: m.Info()}
}

// Query says what a page is about.
type Query struct {
	User   string                 // whose workspace it is
	Values url.Values             // the parameters of the page
	Sees   func(user string) bool // which workspaces may be shown (default all)
	Known  string                 // the Seq of what the reader has, or ""
}

// Get returns a parameter of the page.
func (q Query) Get(name string) string { return q.Values.Get(name) }

func (q Query) sees(user string) bool { return q.Sees == nil || q.Sees(user) }

// number returns a parameter that is a number, and whether the query has it.
func (q Query) number(name string) (n uint64, ok bool, err error) {
	text := q.Get(name)
	if text == "" {
		return 0, false, nil
	}
	if n, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, false, &Error{http.StatusBadRequest, "The parameter " + name + " is not a number."}
	}
	return n, true, nil
}

// Page is what a page shows.
type Page struct {
	Name  string // of the kind of page
	Title string
	Tab   string // to which it belongs
	// Data holds nothing of the store that did not go through a masker.
	Data any
	Head *Head // about the workspace, or nil
	// Live is set if the page shows what is present, so that it may change. Seq is
	// then a name for what it shows.
	Live bool
	Seq  string
	// Next are the parameters of the page that follows, or nil.
	Next url.Values
	// GoTo is the user whose workspace is to be shown in the place of the page, or
	// "".
	GoTo string
}

// Error is an error with the status of HTTP and a text for the reader of a page.
type Error struct {
	Status int
	Text   string
}

func (e *Error) Error() string { return "inspect: " + e.Text }

var (
	// ErrNotModified says that the reader has what the page shows.
	ErrNotModified = errors.New("inspect: not modified")
	// ErrNoWorkspace says that the user has no workspace.
	ErrNoWorkspace = &Error{http.StatusNotFound, "There is no such workspace."}

	errNoValue = &Error{http.StatusNotFound, "There is no such value."}
)

// Summary returns what the head of a workspace says. A workspace that does not
// exist is an error.
func (src *Source) Summary(ctx context.Context, user string) (workspace.Summary, error) {
	s, err := src.manager.Summary(ctx, user)
	if err == nil && s.Seq == 0 {
		src.views.drop(user)
		err = ErrNoWorkspace
	}
	return s, err
}
