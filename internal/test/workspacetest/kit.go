package workspacetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// The fields of the workspaces of the tests.
var (
	Notes   = &state.Field[[]string]{Name: "notes"}
	Visits  = &state.Field[int]{Name: "visits", Handler: state.Sum[int]()}
	Scratch = &state.Field[string]{Name: "scratch", Ephemeral: true}
	Token   = &state.Field[string]{Name: "token", Secret: true}
	Schema  = state.MustSchema(Notes, Visits, Scratch, Token)
)

// Text returns a message.
func Text(id string) workspace.Message {
	return workspace.Message{ID: id, Content: state.UserText("text of " + id)}
}

// WhenBusy returns the message with its own WhenBusy.
func WhenBusy(busy workspace.WhenBusy, msg workspace.Message) workspace.Message {
	msg.WhenBusy = busy
	return msg
}

// Nothing is an Options.Run that changes nothing.
func Nothing(context.Context, *workspace.Run) error { return nil }

// Visit is an Options.Run that counts a visit.
func Visit(_ context.Context, run *workspace.Run) error { return Visits.Set(run.State(), 1) }

// Open returns a Manager that is closed when the test ends.
func Open(t testing.TB, db store.Store, opts workspace.Options) *workspace.Manager {
	t.Helper()
	if opts.Schema == nil {
		opts.Schema = Schema
	}
	m, err := workspace.Open(t.Context(), db, &opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// View returns a workspace after verifying it.
func View(t testing.TB, m *workspace.Manager, user string) *workspace.View {
	t.Helper()
	v, err := m.View(context.Background(), user)
	require.NoError(t, err)
	_, err = m.Verify(context.Background(), user)
	require.NoError(t, err)
	return v
}

// Conversation returns the texts of a conversation, and the types of other
// messages.
func Conversation(t testing.TB, w *workspace.View) []string {
	t.Helper()
	var lines []string
	for _, msg := range state.Messages.GetOr(w.State(), nil) {
		if said, ok := msg.(state.TextMessage); ok {
			lines = append(lines, said.Text())
		} else {
			lines = append(lines, msg.Type())
		}
	}
	return lines
}

// Entries returns the values of a store, without the holder records.
func Entries(t testing.TB, db store.Store) map[string]string {
	t.Helper()
	values := map[string]string{}
	for e, err := range db.List(context.Background(), "", "", true) {
		require.NoError(t, err)
		if !strings.HasPrefix(e.Key, probeKey) && !strings.HasPrefix(e.Key, "agent:holder:") {
			values[e.Key] = string(e.Value)
		}
	}
	return values
}

// Restore writes values into a store, and deletes all others.
func Restore(t testing.TB, db store.Store, values map[string]string) {
	t.Helper()
	for key := range Entries(t, db) {
		if _, ok := values[key]; !ok {
			require.NoError(t, store.Delete(t.Context(), db, key, store.Always))
		}
	}
	for key, value := range values {
		_, err := store.Put(t.Context(), db, key, []byte(value), store.Always)
		require.NoError(t, err)
	}
}

// Users returns the users of a Manager.
func Users(t testing.TB, m *workspace.Manager) []string {
	t.Helper()
	var list []string
	for user, err := range m.List(t.Context()) {
		require.NoError(t, err)
		list = append(list, user)
	}
	return list
}

// WhichRun notes the calls of Options.Run.
type WhichRun struct {
	mu       sync.Mutex
	Calls    []string // message, attempt
	Complete []string // messages for which OnRunComplete was called
}

func (w *WhichRun) Called(run *workspace.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Calls = append(w.Calls, fmt.Sprint(run.Message().ID, " attempt ", run.Attempt()))
}

func (w *WhichRun) Hooks() workspace.Hooks {
	return workspace.Hooks{OnRunComplete: func(_ context.Context, run *workspace.Run, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Complete = append(w.Complete, run.Message().ID)
	}}
}
