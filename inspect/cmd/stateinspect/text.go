package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/agentstate/state/inspect/internal/view"
	"github.com/agentstate/state/workspace"
)

// textConfig is what the flags say of the text to print.
type textConfig struct {
	mode, user   string
	at, from, to uint64
}

func (c *textConfig) check() error {
	switch {
	case !slices.Contains([]string{"list", "show", "log", "diff", "verify", "export"}, c.mode):
		return usageError("-text %q: want list, show, log, diff, verify or export", c.mode)
	case c.user == "" && c.mode != "list" && c.mode != "verify":
		return usageError("-text %s needs -user", c.mode)
	}
	return nil
}

//go:embed text.tmpl
var textTemplates string

// texts has the templates of what -text prints. Their data are the pages of
// package view, in which everything is masked.
var texts = template.Must(template.New("").Funcs(template.FuncMap{
	"stamp":  stamp,
	"quote":  func(s any) string { return strconv.Quote(fmt.Sprint(s)) },
	"indent": func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "\n", "\n    ") },
}).Parse(textTemplates))

// print prints the text. Without a schema it contains no values.
func (c *textConfig) print(ctx context.Context, m *workspace.Manager, schema bool, out io.Writer) error {
	p := &printer{m: m, src: view.New(m), query: view.Query{User: c.user, Values: url.Values{}}, out: out}
	for name, n := range map[string]uint64{"at": c.at, "from": c.from, "to": c.to} {
		if n > 0 {
			p.query.Values.Set(name, strconv.FormatUint(n, 10))
		}
	}
	err := p.print(ctx, c, schema)
	if err == view.ErrNoWorkspace {
		return fmt.Errorf("there is no workspace of %q", c.user)
	}
	return err
}

// printer prints workspaces as text.
type printer struct {
	m     *workspace.Manager
	src   *view.Source
	query view.Query
	out   io.Writer
}

func (p *printer) print(ctx context.Context, c *textConfig, schema bool) error {
	switch c.mode {
	case "list":
		t := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "USER\tVERSION\tBYTES\tLAST ACTIVE\tSTATE")
		p.out = t
		return errors.Join(p.pages(ctx, "list", p.src.Users), t.Flush())
	case "verify":
		return p.verify(ctx, c.user)
	case "log":
		return p.pages(ctx, "log", p.src.History)
	case "diff":
		return p.pages(ctx, "diff", p.src.Diff)
	case "export":
		if !schema {
			return errors.New("an export needs a schema, which tells what is secret: use -schema")
		}
		return p.export(ctx)
	}
	if err := p.pages(ctx, "state", p.src.State); err != nil {
		return err
	}
	if err := p.pages(ctx, "conversation", p.src.Conversation); err != nil || c.at > 0 {
		return err
	}
	return p.pages(ctx, "overview", p.src.Overview)
}

// pages prints a page and those that follow it.
func (p *printer) pages(
	ctx context.Context, name string, show func(context.Context, view.Query) (*view.Page, error),
) error {
	q := p.query
	for {
		page, err := show(ctx, q)
		if err != nil {
			return err
		}
		if err := texts.ExecuteTemplate(p.out, name, page); err != nil || page.Next == nil {
			return err
		}
		q.Values = page.Next
	}
}

func (p *printer) verify(ctx context.Context, user string) error {
	if user != "" {
		return p.verifyOne(ctx, user)
	}
	damaged := 0
	for s, err := range p.m.Summaries(ctx, "") {
		if err != nil {
			return err
		}
		if err := p.verifyOne(ctx, s.UserID); err != nil {
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintf(p.out, "%q: %s\n", s.UserID, view.Visible(err.Error()))
			damaged++
		}
	}
	if damaged > 0 {
		return fmt.Errorf("workspaces that are not intact: %d", damaged)
	}
	return nil
}

func (p *printer) verifyOne(ctx context.Context, user string) error {
	r, err := p.m.Verify(ctx, user)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%q is intact: version %d, %d records after version %d, %d blobs, %d bytes\n",
		user, r.Version, r.Records, r.Oldest, r.Blobs, r.Bytes)
	return nil
}

// export prints the workspace as JSON, in which secrets are masked.
func (p *printer) export(ctx context.Context) error {
	file, err := p.src.Export(ctx, p.query)
	if err != nil {
		return err
	}
	for line := range strings.Lines(file.Body) {
		fmt.Fprintln(p.out, view.Visible(strings.TrimSuffix(line, "\n")))
	}
	return nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
