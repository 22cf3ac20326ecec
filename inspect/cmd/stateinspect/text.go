package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect/internal/safetext"
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

// print prints the text. Without a schema it contains no values.
func (c *textConfig) print(ctx context.Context, m *workspace.Manager, schema bool, out io.Writer) error {
	p := &printer{mask: safetext.Mask{Blind: !schema}, m: m, out: out}
	switch c.mode {
	case "list":
		return p.list(ctx)
	case "verify":
		return p.verify(ctx, c.user)
	}
	now, err := m.View(ctx, c.user)
	if err != nil {
		return err
	}
	if now.Version == 0 && now.LastActive.IsZero() {
		return fmt.Errorf("there is no workspace of %q", c.user)
	}
	p.mask.Secrets = now.Redactor()
	switch c.mode {
	case "log":
		return p.log(ctx, now)
	case "diff":
		return p.diff(ctx, now, c.from, c.to)
	case "export":
		return p.export(now)
	}
	if c.at == 0 || c.at == now.Version {
		p.title(now)
		p.content(now)
		p.waiting(now)
		return nil
	}
	past, err := m.ViewAt(ctx, c.user, c.at)
	if err != nil {
		return err
	}
	p.mask.Secrets = p.mask.Secrets.Join(past.Redactor())
	p.title(past)
	p.content(past)
	return nil
}

// printer prints workspaces as text.
type printer struct {
	mask safetext.Mask
	m    *workspace.Manager
	out  io.Writer
}

// preview is how many bytes of a value are shown.
const preview = 1 << 10

// text returns what may be shown of a value.
func (p *printer) text(s string) string { return p.mask.Line(s, preview) }

// quoted is text in quotes.
func (p *printer) quoted(s string) string {
	if p.mask.Blind {
		return safetext.Hidden
	}
	return p.name(s)
}

// name is quoted for the names of fields and agents, which are shown without a
// schema as well.
func (p *printer) name(s string) string {
	prefix, clipped := p.mask.Prefix(s, preview)
	if clipped {
		prefix += "…"
	}
	return strconv.Quote(prefix)
}

func (p *printer) list(ctx context.Context) error {
	t := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	row := func(user, format string, args ...any) {
		fmt.Fprintf(t, "%q\t"+format+"\n", append([]any{user}, args...)...)
	}
	fmt.Fprintln(t, "USER\tVERSION\tBYTES\tQUEUE\tDEAD\tLAST ACTIVE\tRUN")
	n := 0
	for s, err := range p.m.Summaries(ctx, "") {
		if err != nil {
			return errors.Join(t.Flush(), err)
		}
		if s.Err != nil { // the others may be intact
			row(s.UserID, "%s", safetext.Visible(s.Err.Error(), false))
			continue
		}
		under := "-"
		if s.Run != nil {
			under = fmt.Sprintf("since %s, attempt %d", stamp(s.Run.Began), s.Run.Attempt+1)
		}
		row(s.UserID, "%d\t%d\t%d\t%d\t%s\t%s", s.Version, s.Bytes, s.Queued, s.DeadLetters, stamp(s.LastActive), under)
		if n++; n%1000 == 0 { // do not hold all of them
			if err := t.Flush(); err != nil {
				return err
			}
		}
	}
	return t.Flush()
}

func (p *printer) title(v *workspace.View) {
	fmt.Fprintf(p.out, "%q at version %d, held from version %d on\n", v.UserID(), v.Version, v.Oldest)
}

func (p *printer) content(v *workspace.View) {
	fmt.Fprintln(p.out, "fields:")
	if !p.mask.Blind {
		for line := range strings.Lines(p.mask.Whole(v.State().Describe())) {
			fmt.Fprintln(p.out, p.text(strings.TrimSuffix(line, "\n")))
		}
	}
	for _, name := range v.Unknown {
		fmt.Fprintf(p.out, "- %s = …\n", p.name(name))
	}
	s := v.Settings()
	var servers []string // their configurations contain keys
	for _, name := range slices.Sorted(maps.Keys(s.MCPServers)) {
		servers = append(servers, p.quoted(name))
	}
	fmt.Fprintf(p.out, "settings:\n- chat %s, platform %s, debug %t, MCP servers %s\nmemory:\n",
		p.quoted(s.ChatID), p.quoted(s.Platform), s.DebugMode, servers)
	for key, entry := range v.Memory().All() {
		fmt.Fprintf(p.out, "- %s: %s, since %s\n", p.quoted(key), p.text(entry.String()), stamp(entry.CreatedAt))
	}
	fmt.Fprintln(p.out, "conversation:")
	for _, m := range state.ListItems(v.State(), state.Messages, 0) {
		fmt.Fprintln(p.out, "-", p.text(string(m.Raw())))
	}
}

func (p *printer) waiting(v *workspace.View) {
	if r := v.Run; r != nil {
		fmt.Fprintf(p.out, "run: since %s, attempt %d\n", stamp(r.Began), r.Attempt+1)
		p.message(r.Message)
	}
	fmt.Fprintln(p.out, "queue:")
	for _, msg := range v.Queue {
		p.message(msg)
	}
	if v.Tickets > 0 {
		fmt.Fprintf(p.out, "- calls without a message: %d\n", v.Tickets)
	}
	fmt.Fprintln(p.out, "dead:")
	for _, d := range v.DeadLetters {
		p.message(d.Message)
		fmt.Fprintf(p.out, "  given up %s, attempts %d: %s\n", stamp(d.At), d.Attempts, p.text(d.Reason))
	}
}

func (p *printer) message(msg workspace.Message) {
	text := "no content"
	if msg.Content != nil {
		text = p.text(string(msg.Content.Raw()))
	}
	fmt.Fprintf(p.out, "- %s: %s\n", p.quoted(msg.ID), text)
}

func (p *printer) log(ctx context.Context, v *workspace.View) error {
	for r, err := range p.m.Records(ctx, v.UserID(), v.Oldest) {
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%d %s %s", r.Version, stamp(r.Time), r.Kind)
		if r.Message != "" {
			fmt.Fprintf(p.out, " of %s", p.quoted(r.Message))
		}
		if r.Reason != "" {
			fmt.Fprint(p.out, ": ", p.text(r.Reason))
		}
		fmt.Fprintln(p.out)
		p.effects(v, r.Effects)
	}
	return nil
}

func (p *printer) diff(ctx context.Context, v *workspace.View, from, to uint64) error {
	if to == 0 {
		to = v.Version
	}
	if from == 0 && to > 0 {
		from = to - 1
	}
	effects, err := p.m.Diff(ctx, v.UserID(), from, to)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%q from version %d to %d\n", v.UserID(), from, to)
	p.effects(v, effects)
	return nil
}

func (p *printer) effects(v *workspace.View, effects []state.Effect) {
	known := map[string]bool{}
	for _, f := range v.State().Fields() {
		known[f.Name] = true
	}
	for _, e := range effects {
		name := p.name(e.Field)
		if e.Part == "memory" || e.Part == "suspended" || e.Part == "key" { // people and models choose these
			name = p.quoted(e.Field)
		}
		fmt.Fprintf(p.out, "  %s %s %s", e.Kind, e.Part, name)
		switch {
		case e.Value == "":
		case e.Part == "field" && !known[e.Field], e.Part == "setting" && e.Field == "mcp_servers":
			fmt.Fprint(p.out, " = …")
		default:
			fmt.Fprint(p.out, " = ", p.text(string(e.Value)))
		}
		if e.N != 0 {
			fmt.Fprintf(p.out, " (%d)", e.N)
		}
		if e.Agent != "" {
			fmt.Fprintf(p.out, " by %s", p.name(e.Agent))
		}
		if e.Cause != "" {
			fmt.Fprintf(p.out, " because of %s", p.quoted(e.Cause))
		}
		fmt.Fprintln(p.out)
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
			fmt.Fprintf(p.out, "%q: %s\n", s.UserID, safetext.Visible(err.Error(), false))
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

// export prints the view as JSON, in which secrets are masked.
func (p *printer) export(v *workspace.View) error {
	if p.mask.Blind {
		return errors.New("an export needs a schema, which tells what is secret: use -schema")
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		fmt.Fprintln(p.out, safetext.Visible(strings.TrimSuffix(line, "\n"), false))
	}
	return nil
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
