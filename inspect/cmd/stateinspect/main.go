// Stateinspect shows what is in the workspaces of a store, who changed it, and
// what is running: as a web page, or with -text as text.
//
//	stateinspect sqlite:desk.db
//	stateinspect -text list sqlite:desk.db
//	DESK=postgres://desk:password@host/desk stateinspect env:DESK
//
// It opens stores that exist and writes nothing unless -write or -delete are
// given. It may be used while programs use the store. With env:NAME the URL is
// that of the environment variable, so that a password is not in the list of
// processes.
//
// The schema tells what the fields are and which of them are secrets. It is the
// one that a program has published with workspace.PublishSchema, or that of
// -schema. Without one, no value is shown.
//
// The page is served at -addr, for those who know the token in the URL that is
// printed. An address that other machines can reach needs -token-file, a file
// with the token, and a proxy that speaks TLS.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

func main() {
	logging.Disable() // of the Redis client; its errors are those of the store
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "stateinspect:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// errUsage is an error of the arguments.
var errUsage = errors.New(`"stateinspect help" shows how to call it`)

func usageError(format string, args ...any) error {
	return fmt.Errorf("%w; %w", fmt.Errorf(format, args...), errUsage)
}

// config is what the arguments say.
type config struct {
	store               *address
	addr, tokenFile     string
	hosts               []string
	write, delete       bool
	keys, schema, table string
	text                textConfig
	types               bool
	agent               string
}

const usage = `usage: stateinspect [flags] URL

shows the workspaces of a store, as a web page or with -text as text. The URL is
  sqlite:PATH
  postgres://USER:PASSWORD@HOST/DATABASE
  mysql://USER:PASSWORD@HOST/DATABASE
  redis://HOST:PORT/NUMBER
  env:NAME          the URL in the environment variable NAME

stateinspect sqlite:desk.db                                  the page
stateinspect -text list sqlite:desk.db                       all workspaces
stateinspect -text show -user alice sqlite:desk.db           one of them; -at 7: at version 7
stateinspect -text log -user alice sqlite:desk.db            who changed what, and when
stateinspect -text diff -user alice -from 3 -to 7 sqlite:desk.db
stateinspect -text verify sqlite:desk.db                     whether it is intact; -user alice: one workspace
stateinspect -text export -user alice sqlite:desk.db         as JSON, without secrets
stateinspect types -agent ui sqlite:desk.db                  what an agent may read, as a type of TypeScript

flags:
`

func parseConfig(args []string, getenv func(string) string, out io.Writer) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("stateinspect", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8377", "serve the page at this `address`")
	flags.StringVar(&c.tokenFile, "token-file", "",
		"a `file` with the token of the page, 32 characters or more (default: a new token)")
	flags.Func("host", "accept this host `name` in requests besides that of -addr and those of this machine; may be repeated", func(s string) error {
		c.hosts = append(c.hosts, s)
		return nil
	})
	flags.BoolVar(&c.write, "write", false, "allow actions in the page: retry or discard a message, cancel a run")
	flags.BoolVar(&c.delete, "delete", false, "allow to reset and to delete workspaces in the page")
	flags.StringVar(&c.keys, "keys", "", "a `file` with the keys of a sealed store: in each line an id and a secret in base64")
	flags.StringVar(&c.schema, "schema", "", "a `file` with the schema as JSON (default: the one that is published in the store)")
	flags.StringVar(&c.table, "table", "", "the `name` of the table, or of the prefix in Redis (default: that of the store)")
	flags.StringVar(&c.text.mode, "text", "",
		"print text instead of serving a page: list, show, log, diff, verify or export")
	flags.StringVar(&c.text.user, "user", "", "the `id` of the user, for -text")
	flags.Uint64Var(&c.text.at, "at", 0, "the `version` for -text show (default: the present one)")
	flags.Uint64Var(&c.text.from, "from", 0, "the `version` that -text diff begins with (default: the one before -to)")
	flags.Uint64Var(&c.text.to, "to", 0, "the `version` that -text diff ends with (default: the present one)")
	if c.types = len(args) > 0 && args[0] == "types"; c.types {
		flags.StringVar(&c.agent, "agent", "", "the `name` of the agent (default: all fields)")
		args = args[1:]
	}
	if len(args) == 1 && args[0] == "help" {
		args = []string{"-h"}
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, usageError("%w", err)
	case c.types && c.schema != "" && flags.NArg() == 0:
		return c, nil // needs no store
	case flags.NArg() == 0:
		return nil, usageError("the URL of the store is missing")
	case flags.NArg() > 1:
		return nil, usageError("want one URL, after the flags, and got %d arguments", flags.NArg())
	}
	var err error
	if c.store, err = parseAddress(flags.Arg(0), getenv); err != nil {
		return nil, usageError("%w", err)
	}
	switch {
	case c.types:
		return c, nil
	case c.text.mode != "":
		return c, c.text.check()
	}
	return c, c.checkAddr()
}

// run runs the command until ctx ends, or until the text is printed to out.
func run(ctx context.Context, args []string, getenv func(string) string, out, log io.Writer) error {
	c, err := parseConfig(args, getenv, out)
	if err != nil {
		return err
	}
	if c.store == nil {
		schema, err := c.readSchema(ctx, nil)
		if err != nil {
			return err
		}
		return printTypes(schema, c.agent, out)
	}
	return c.store.conceal(c.run(ctx, out, log))
}

func (c *config) run(ctx context.Context, out, log io.Writer) (err error) {
	var opts workspace.Options
	if c.keys != "" {
		if opts.Keys, err = readKeys(c.keys); err != nil {
			return err
		}
	}
	db, err := c.store.open(ctx, c.table)
	if err != nil {
		return err
	}
	if !c.write && !c.delete || c.text.mode != "" || c.types {
		db = store.ReadOnly(db)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if opts.Schema, err = c.readSchema(ctx, db); err != nil {
		return err
	}
	if c.types {
		return printTypes(opts.Schema, c.agent, out)
	}
	m, err := workspace.Open(ctx, db, &opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if c.text.mode != "" {
		return c.text.print(ctx, m, opts.Schema != nil, out)
	}
	return c.serve(ctx, m, out, log)
}

// readSchema returns the schema of the flag, or the one in the store, or nil.
func (c *config) readSchema(ctx context.Context, db store.Store) (*state.Schema, error) {
	if c.schema == "" {
		return workspace.PublishedSchema(ctx, db)
	}
	data, err := os.ReadFile(c.schema)
	if err != nil {
		return nil, err
	}
	s, err := state.ParseSchema(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.schema, err)
	}
	return s, nil
}
