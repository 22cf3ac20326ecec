package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

var (
	order  = &state.Field[string]{Name: "order_id", Owner: "desk", Read: state.Public}
	card   = &state.Field[string]{Name: "card", Owner: "desk", Secret: true}
	schema = state.MustSchema(state.Team{"desk": {}}, order, card)
)

// secrets are the texts that must not be shown.
var secrets = []string{"4242-4242-4242", "tok-4711-abc", "key-of-the-server"}

var errRefused = errors.New("the bank has refused 4242-4242-4242")

// database makes a database with two workspaces, and with their schema if declare is
// true. At version 1 of Ann's, a token is in the conversation that becomes a secret later.
// One of her messages is a dead letter.
func database(dir string, declare bool) (file string, err error) {
	file = filepath.Join(dir, "desk.db")
	ctx := context.Background()
	db, err := sqlitestore.Open(ctx, file, nil)
	if err != nil {
		return "", err
	}
	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema, Run: func(_ context.Context, run *workspace.Run) error {
		if run.Message().ID == "refund" {
			return errRefused
		}
		st := run.State().As("desk")
		return errors.Join(order.Set(st, "#W1"), card.Set(st, secrets[0]), state.Messages.Set(st, []state.Message{state.AssistantText("Yes.")}))
	}})
	if err != nil {
		return "", err
	}
	send := func(id, text string) workspace.Message {
		return workspace.Message{ID: id, ChatID: "7", Content: state.UserText(text)}
	}
	if declare {
		if err := store.NewManager(db, "").SetJSON(ctx, "schema", schema); err != nil {
			return "", err
		}
	}
	_, err = m.Handle(ctx, "ann", send("m1", "My token is tok-4711-abc, my card 4242-4242-4242."))
	err = errors.Join(err, m.Update(ctx, "ann", func(w *workspace.Workspace) error {
		return errors.Join(
			w.Memory().SetSecret("token", secrets[1]),
			w.Memory().Set("name", "Ann\x1b[2J"),
			w.SetSettings(func(s *workspace.Settings) {
				s.MCPServers = map[string]state.JSON{"mail": `{"key":"key-of-the-server"}`}
			}),
		)
	}))
	_, refused := m.Handle(ctx, "ann", send("refund", "Refund it to 4242-4242-4242."))
	if !errors.Is(refused, errRefused) {
		err = errors.Join(err, errors.New("the run has not failed"), refused)
	}
	_, _, busy := m.Begin(ctx, "ann", send("m2", "Is 4242-4242-4242 still my card?"))
	_, waits := m.Submit(ctx, "ann", send("m3", "Well? \u009b2J"))
	_, other := m.Handle(ctx, "Bob, the builder", send("m1", "Hello!"))
	return file, errors.Join(err, busy, waits, other, m.Close(), db.Close())
}

// varying matches the parts of the output that differ between runs.
var varying = regexp.MustCompile(`\d+ bytes|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

func Example() {
	dir, err := os.MkdirTemp("", "inspect")
	check(err)
	defer os.RemoveAll(dir)
	file, err := database(dir, true)
	check(err)
	for _, args := range []string{"", "-user ann", "-user ann -at 1", "-user ann -log", "-user ann -verify"} {
		var out bytes.Buffer
		fmt.Println("$", strings.TrimSpace("inspect -db desk.db "+args))
		check(run(context.Background(), append(strings.Fields(args), "-db", file), &out))
		fmt.Print(varying.ReplaceAllString(out.String(), "…"))
	}
	// Output:
	// $ inspect -db desk.db
	// USER                VERSION  MESSAGES  QUEUE  DEAD  RUN
	// "Bob, the builder"  1        2         0      0     -
	// "ann"               3        2         1      1     "m2", attempt 1
	// $ inspect -db desk.db -user ann
	// "ann" at version 3, held from version 0 on
	// fields:
	// - order_id (string) = "#W1"
	// - card (string) = [SECRET]
	// settings:
	// - chat "7", platform "", debug false, MCP servers ["mail"]
	// memory:
	// - "name": Ann�[2J, since …
	// - "token": [SECRET], since …
	// conversation:
	// - {"type":"text","role":"user","content":"My token is [SECRET], my card [SECRET]."}
	// - {"type":"text","role":"assistant","content":"Yes.","stop_reason":"stop"}
	// run: since …, attempt 1
	// - "m2": {"type":"text","role":"user","content":"Is [SECRET] still my card?"}
	// queue:
	// - "m3": {"type":"text","role":"user","content":"Well? �2J"}
	// dead:
	// - "refund": {"type":"text","role":"user","content":"Refund it to [SECRET]."}
	//   given up …, attempts 1: the bank has refused [SECRET]
	// $ inspect -db desk.db -user ann -at 1
	// "ann" at version 1, held from version 0 on
	// fields:
	// - order_id (string) = "#W1"
	// - card (string) = [SECRET]
	// settings:
	// - chat "7", platform "", debug false, MCP servers []
	// memory:
	// conversation:
	// - {"type":"text","role":"user","content":"My token is [SECRET], my card [SECRET]."}
	// - {"type":"text","role":"assistant","content":"Yes.","stop_reason":"stop"}
	// $ inspect -db desk.db -user ann -log
	// 1 … finish of "m1"
	//   set message "1" = {"type":"text","role":"user","content":"My token is [SECRET], my card [SECRET]."}
	//   set message "2" = {"type":"text","role":"assistant","content":"Yes.","stop_reason":"stop"}
	//   set conversation "entries" = [1,2] by "desk"
	//   set field "order_id" = "#W1" by "desk"
	//   set field "card" = "[SECRET]" by "desk"
	//   set conversation "version" = 4
	//   set setting "chat_id" = "7"
	// 2 … update of ""
	//   set memory "name" = {"value":"Ann\u001b[2J","created_at":"…"}
	//   set memory "token" = {"value":"[SECRET]","secret":true,"created_at":"…"}
	//   set setting "mcp_servers" = …
	// 3 … fail of "refund": the bank has refused [SECRET]
	// $ inspect -db desk.db -user ann -verify
	// "ann" is intact: version 3, 3 records after version 0, 5 blobs, …, 0 blobs of garbage
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func TestShowsNoSecrets(t *testing.T) {
	for _, declare := range []bool{false, true} {
		file, err := database(t.TempDir(), declare)
		require.NoError(t, err)
		for _, args := range [][]string{{}, {"-user", "ann"}, {"-user", "ann", "-at", "1"}, {"-user", "ann", "-log"}, {"-user", "ann", "-verify"}} {
			var out bytes.Buffer
			require.NoError(t, run(t.Context(), append(args, "-db", file), &out))
			require.NotEmpty(t, out.String())
			for _, hidden := range append(secrets, "\x1b", "\u009b") {
				require.NotContains(t, out.String(), hidden)
			}
		}
	}
}

func TestMakesNoFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "desk.db")
	require.EqualError(t, run(t.Context(), nil, nil), "inspect: -db is missing")
	require.ErrorIs(t, run(t.Context(), []string{"-db", file}, nil), fs.ErrNotExist)
	require.NoFileExists(t, file)
}
