package workspace_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// The three versions of a program whose field age was text, and is a number in
// the next version. The careful version also reads the text.
var (
	ageText    = &state.Field[string]{Name: "age"}
	ageNumber  = &state.Field[int]{Name: "age"}
	ageCareful = &state.Field[int]{Name: "age", Convert: func(former state.JSON) (int, error) {
		text, err := strconv.Unquote(string(former))
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(text)
	}}
	oldSchema     = state.MustSchema(ageText)
	brokenSchema  = state.MustSchema(ageNumber)
	carefulSchema = state.MustSchema(ageCareful)
)

func setAge(t testing.TB, m *workspace.Manager, user, age string) {
	t.Helper()
	require.NoError(t, m.Update(t.Context(), user, func(w *workspace.Workspace) error {
		return ageText.Set(w.State(), age)
	}))
}

// A process whose schema does not fit the content takes nothing, so that another
// process can go on.
func TestContentThatDoesNotFitTheSchema(t *testing.T) {
	msg := text("1")
	for name, call := range map[string]func(context.Context, *workspace.Manager) error{
		"Handle": func(ctx context.Context, m *workspace.Manager) error { _, err := m.Handle(ctx, "ann", msg); return err },
		"Submit": func(ctx context.Context, m *workspace.Manager) error { _, err := m.Submit(ctx, "ann", msg); return err },
		"interrupt": func(ctx context.Context, m *workspace.Manager) error {
			_, err := m.Submit(ctx, "ann", whenBusy(workspace.BusyInterrupt, msg))
			return err
		},
		"View": func(ctx context.Context, m *workspace.Manager) error { _, err := m.View(ctx, "ann"); return err },
		"Update": func(ctx context.Context, m *workspace.Manager) error {
			return m.Update(ctx, "ann", func(*workspace.Workspace) error { return nil })
		},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s busy=%t", name, busy), func(t *testing.T) {
				onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
					old, runs := hold(t, db, workspace.Options{TTL: ttl, Schema: oldSchema})
					setAge(t, old, "ann", "forty")
					var run *heldRun
					if busy {
						run = runs.Begin(t, "ann", text("0"))
					}
					before := entries(t, db)
					err := call(t.Context(), open(t, db, workspace.Options{TTL: ttl, Schema: brokenSchema, Run: nothing}))
					if name == "Update" && busy {
						require.ErrorIs(t, err, workspace.ErrBusy)
						return
					}
					require.ErrorIs(t, err, workspace.ErrSchema)
					require.ErrorContains(t, err, "age")
					require.NotContains(t, err.Error(), "forty")
					require.ErrorAs(t, err, new(*state.TypeError))
					require.Empty(t, cmp.Diff(before, entries(t, db)), "nothing was written")

					if busy {
						run.Finish(t)
					}
					runs.Begin(t, "ann", msg).Finish(t)
				})
			})
		}
	}
}

// A takeover by a process whose schema does not fit neither takes the lease nor
// counts an attempt.
func TestTakeoverOfContentThatDoesNotFit(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		process, kill := asProcess(db)
		crashed, runs := hold(t, process, workspace.Options{TTL: ttl, Schema: oldSchema})
		setAge(t, crashed, "ann", "forty")
		runs.Begin(t, "ann", text("1"))
		kill()
		_ = crashed.Close()
		before := entries(t, db)

		broken := open(t, db, workspace.Options{TTL: ttl, Schema: brokenSchema, Run: nothing})
		time.Sleep(4 * ttl) // it looks for runs more often than Attempts
		require.NoError(t, broken.Close())
		require.Empty(t, cmp.Diff(before, entries(t, db)))

		attempts := make(chan int, 1)
		m := open(t, db, workspace.Options{TTL: ttl, Schema: oldSchema, Run: func(_ context.Context, run *workspace.Run) error {
			attempts <- run.Attempt()
			return nil
		}})
		require.NoError(t, settle(t.Context(), m))
		require.Equal(t, 1, <-attempts)
		require.NoError(t, m.Wait(t.Context()))
		require.Empty(t, view(t, m, "ann").DeadLetters)
	})
}

// Check names the users whose content a schema does not fit.
func TestCheck(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		m := open(t, db, workspace.Options{TTL: ttl, Schema: oldSchema, Run: nothing})
		setAge(t, m, "ann", "40")
		setAge(t, m, "bob", "forty")
		_, err := m.Handle(t.Context(), "cid", text("1")) // without an age
		require.NoError(t, err)
		for name, test := range map[string]struct {
			schema *state.Schema
			want   []string
		}{
			"present":  {oldSchema, nil},
			"none":     {nil, nil},
			"broken":   {brokenSchema, []string{"ann", "bob"}},
			"converts": {carefulSchema, []string{"bob"}},
		} {
			var users []string
			for user, err := range m.Check(t.Context(), test.schema) {
				require.ErrorIs(t, err, workspace.ErrSchema, name)
				require.ErrorContains(t, err, "age", name)
				users = append(users, user)
			}
			require.Equal(t, test.want, users, name)
		}
		var first error
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, first = range m.Check(ended, nil) {
			break
		}
		require.ErrorIs(t, first, context.Canceled)
		require.NoError(t, m.Close())
		for _, first = range m.Check(t.Context(), nil) {
			break
		}
		require.ErrorIs(t, first, workspace.ErrClosed)
	})
}

// A Convert of a field that panics refuses the content, and does not end the
// process.
func TestSchemaThatPanics(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		good := open(t, db, workspace.Options{TTL: ttl, Run: visit})
		panics := &state.Field[string]{Name: "visits", Convert: func(state.JSON) (string, error) { panic("no") }}
		bad := open(t, db, workspace.Options{TTL: ttl, Run: nothing, Schema: state.MustSchema(panics)})
		_, err := good.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		_, err = bad.Submit(t.Context(), "ann", text("2"))
		require.ErrorIs(t, err, workspace.ErrSchema)
	})
}
