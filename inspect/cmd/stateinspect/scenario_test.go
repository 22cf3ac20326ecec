package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

var (
	order  = &state.Field[string]{Name: "order_id", Owner: "desk", Read: state.Public}
	card   = &state.Field[string]{Name: "card", Owner: "desk", Secret: true}
	schema = state.MustSchema(state.Team{"desk": {}}, order, card)
)

// secrets are the texts that must not be shown.
var secrets = []string{"4242-4242-4242", "tok-4711-abc", "key-of-the-server"}

var errRefused = errors.New("the bank has refused 4242-4242-4242")

// fill makes two workspaces in a store. At version 1 of Ann's, a token is in the
// conversation that becomes a secret later. One of her messages is a dead letter,
// one was being handled when its process ended, and one waits.
func fill(ctx context.Context, db store.Store, keys []workspace.Key) error {
	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema, Keys: keys, Run: func(ctx context.Context, run *workspace.Run) error {
		if strings.HasPrefix(run.Message().ID, "m2") {
			<-ctx.Done()
			return ctx.Err()
		}
		if run.Message().ID == "refund" {
			return errRefused
		}
		st := run.State().As("desk")
		return errors.Join(order.Set(st, "#W1"), card.Set(st, secrets[0]), state.Messages.Set(st, []state.Message{state.AssistantText("Yes.")}))
	}})
	if err != nil {
		return err
	}
	send := func(id, text string) workspace.Message {
		return workspace.Message{ID: id, ChatID: "7", Content: state.UserText(text)}
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
	_, busy := m.Submit(ctx, "ann", send("m2 4242-4242-4242", "Is 4242-4242-4242 still my card?"))
	_, waits := m.Submit(ctx, "ann", send("m3", "Well? \u009b2J \u202etxt.exe"))
	_, other := m.Handle(ctx, "Bob, the builder", send("m1", "Hello!"))
	if closed := m.Close(); !errors.Is(closed, workspace.ErrBusy) { // the run of m2 is cut off
		err = errors.Join(err, fmt.Errorf("close: %w", closed))
	}
	return errors.Join(err, busy, waits, other)
}

// desk makes a SQLite file with the workspaces of fill, and with their schema if
// publish is true, and returns its URL.
func desk(dir string, published bool) (url string, err error) {
	file := filepath.Join(dir, "desk.db")
	ctx := context.Background()
	db, err := sqlitestore.Open(ctx, file, nil)
	if err != nil {
		return "", err
	}
	err = fill(ctx, db, nil)
	if published {
		err = errors.Join(err, workspace.PublishSchema(ctx, db, schema))
	}
	return "sqlite:" + file, errors.Join(err, db.Close())
}

func newDesk(t *testing.T, published bool) string {
	url, err := desk(t.TempDir(), published)
	require.NoError(t, err)
	return url
}
