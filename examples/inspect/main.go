// Inspect shows the workspaces in a SQLite file, even while a program uses it:
//
//	go run . -db desk.db                    all workspaces
//	go run . -db desk.db -user alice        the content of one, and its queue
//	go run . -db desk.db -user alice -at 7  its content at version 7
//	go run . -db desk.db -user alice -log   who changed what, and when
//	go run . -db desk.db -user alice -verify
//
// The schema tells what the fields are and which of them are secrets. Inspect
// reads it from the key "schema" of the database. A program that can be
// inspected stores it there:
//
//	err := store.NewManager(db, "").SetJSON(ctx, "schema", schema)
//
// Without a schema, inspect shows no values.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

func main() {
	log.SetFlags(0)
	err := run(context.Background(), os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("inspect", flag.ContinueOnError)
	file := flags.String("db", "", "the SQLite `file`")
	user := flags.String("user", "", "the user of the workspace")
	changes := flags.Bool("log", false, "show the changes")
	version := flags.Uint64("at", 0, "show its content at this `version`")
	verify := flags.Bool("verify", false, "check that it is intact")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" {
		return errors.New("inspect: -db is missing")
	}
	// Open would create the file.
	if _, err := os.Stat(*file); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	db, err := sqlitestore.Open(ctx, *file, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	schema, err := declared(ctx, db)
	if err != nil {
		return err
	}
	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema})
	if err != nil {
		return err
	}
	defer m.Close()
	i := inspector{m, schema == nil, out}
	if *user == "" {
		return i.list(ctx)
	}
	if *verify {
		return i.verify(ctx, *user)
	}
	now, err := m.View(ctx, *user)
	switch {
	case err != nil:
		return err
	case *changes:
		return i.changes(ctx, now)
	case *version != 0:
		return i.past(ctx, now, *version)
	}
	i.title(now)
	i.content(now, now.Redact)
	i.waiting(now)
	return nil
}

// declared returns the schema that the database contains, or nil.
func declared(ctx context.Context, db store.Store) (*state.Schema, error) {
	var data json.RawMessage
	found, err := store.NewManager(db, "").GetJSON(ctx, "schema", &data)
	if err != nil || !found {
		return nil, err
	}
	return state.ParseSchema(data)
}

type inspector struct {
	m     *workspace.Manager
	blind bool // there is no schema, so that any value may be a secret
	out   io.Writer
}

func (i inspector) list(ctx context.Context) error {
	t := tabwriter.NewWriter(i.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "USER\tVERSION\tMESSAGES\tQUEUE\tDEAD\tRUN")
	for user, err := range i.m.List(ctx) {
		if err != nil {
			return errors.Join(t.Flush(), err)
		}
		v, err := i.m.View(ctx, user)
		if err != nil { // the others may be intact
			fmt.Fprintf(t, "%q\t%v\n", user, err)
			continue
		}
		under := "-"
		if v.Run != nil {
			under = fmt.Sprintf("%q, attempt %d", v.Run.Message.ID, v.Run.Attempt+1)
		}
		n := state.Len(v.State(), state.Messages)
		fmt.Fprintf(t, "%q\t%d\t%d\t%d\t%d\t%s\n", user, v.Version, n, len(v.Queue), len(v.DeadLetters), under)
	}
	return t.Flush()
}

func (i inspector) title(v *workspace.View) {
	fmt.Fprintf(i.out, "%q at version %d, held from version %d on\n", v.UserID(), v.Version, v.Oldest)
}

func (i inspector) past(ctx context.Context, now *workspace.View, version uint64) error {
	v, err := i.m.ViewAt(ctx, now.UserID(), version)
	if err != nil {
		return err
	}
	i.title(v)
	// A text of the past may contain what became a secret later.
	i.content(v, func(text string) string { return now.Redact(v.Redact(text)) })
	return nil
}

func (i inspector) content(v *workspace.View, redact func(string) string) {
	fmt.Fprint(i.out, "fields:\n", redact(v.State().Describe()))
	s := v.Settings()
	fmt.Fprintf(i.out, "settings:\n- chat %q, platform %q, debug %t, MCP servers %q\nmemory:\n",
		s.ChatID, s.Platform, s.DebugMode, slices.Sorted(maps.Keys(s.MCPServers))) // their configurations contain keys
	for key, entry := range v.Memory().All() {
		fmt.Fprintf(i.out, "- %q: %s, since %s\n", key, i.shown(entry.String(), redact), stamp(entry.CreatedAt))
	}
	fmt.Fprintln(i.out, "conversation:")
	for _, m := range state.Items(v.State(), state.Messages, 0) {
		fmt.Fprintln(i.out, "-", i.shown(string(m.Raw()), redact))
	}
}

func (i inspector) waiting(v *workspace.View) {
	if v.Run != nil {
		fmt.Fprintf(i.out, "run: since %s, attempt %d\n", stamp(v.Run.Began), v.Run.Attempt+1)
		i.message(v, v.Run.Message)
	}
	fmt.Fprintln(i.out, "queue:")
	for _, msg := range v.Queue {
		i.message(v, msg)
	}
	fmt.Fprintln(i.out, "dead:")
	for _, d := range v.DeadLetters {
		i.message(v, d.Message)
		fmt.Fprintf(i.out, "  given up %s, attempts %d: %s\n", stamp(d.At), d.Attempts, i.shown(d.Reason, v.Redact))
	}
}

func (i inspector) message(v *workspace.View, msg workspace.Message) {
	fmt.Fprintf(i.out, "- %q: %s\n", msg.ID, i.shown(string(msg.Content.Raw()), v.Redact))
}

func (i inspector) changes(ctx context.Context, v *workspace.View) error {
	known := map[string]bool{}
	for _, f := range v.State().Fields() {
		known[f.Name] = true
	}
	for r, err := range i.m.Records(ctx, v.UserID(), v.Oldest) {
		if err != nil {
			return err
		}
		fmt.Fprintf(i.out, "%d %s %s of %q", r.Version, stamp(r.Time), r.Kind, r.Message)
		if r.Reason != "" {
			fmt.Fprint(i.out, ": ", i.shown(r.Reason, v.Redact))
		}
		fmt.Fprintln(i.out)
		for _, e := range r.Effects {
			fmt.Fprintf(i.out, "  %s %s %q", e.Kind, e.Part, e.Field)
			switch {
			case e.Value == "":
			case e.Part == "field" && !known[e.Field], e.Part == "setting" && e.Field == "mcp_servers":
				fmt.Fprint(i.out, " = …")
			default:
				fmt.Fprint(i.out, " = ", i.shown(string(e.Value), v.Redact))
			}
			if e.N != 0 {
				fmt.Fprintf(i.out, " (%d)", e.N)
			}
			if e.Agent != "" {
				fmt.Fprintf(i.out, " by %q", e.Agent)
			}
			fmt.Fprintln(i.out)
		}
	}
	return nil
}

func (i inspector) verify(ctx context.Context, user string) error {
	r, err := i.m.Verify(ctx, user)
	if err != nil {
		return err
	}
	fmt.Fprintf(i.out, "%q is intact: version %d, %d records after version %d, %d blobs, %d bytes, %d blobs of garbage\n",
		user, r.Version, r.Records, r.Oldest, r.Blobs, r.Bytes, r.Garbage)
	return nil
}

// shown returns the part of a text that may be shown.
func (i inspector) shown(text string, redact func(string) string) string {
	if i.blind {
		return "…"
	}
	return clip(redact(text))
}

// clip shortens a redacted text and replaces characters that control a
// terminal.
func clip(text string) string {
	r := []rune(text)
	if len(r) > 200 {
		r = append(r[:200], '…')
	}
	for i := range r {
		if !unicode.IsGraphic(r[i]) {
			r[i] = unicode.ReplacementChar
		}
	}
	return string(r)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
