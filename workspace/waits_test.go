package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// brokenStore is a store of which each call does what fault does, if there is
// one, before it returns its error. It reports no changes.
type brokenStore struct {
	*fakestore.Store
	fault atomic.Pointer[func(context.Context) error]
}

func newBroken(db store.Store) *brokenStore {
	s := &brokenStore{}
	s.Store = fakestore.New(fakestore.Bare{Store: db}, func(ctx context.Context, c fakestore.Call, do func() error) error {
		fault := s.fault.Load()
		if fault == nil {
			return do()
		}
		err := (*fault)(ctx)
		if c.Writes != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
		}
		return &store.Error{Store: "broken", Op: "test", Err: err}
	})
	return s
}

var errAway = errors.New("connection refused")

// faults are the ways in which a store refuses everything, each with the error
// that says so and the time after which a call has it.
var faults = []struct {
	name  string
	fault func(context.Context) error
	want  error
	// soon is the time for a call of the broken store, and late that for a call
	// that has waited for something else when the store broke.
	soon, late time.Duration
}{
	{"an error that repeats", func(context.Context) error { return errAway }, errAway, 15 * time.Second, 21 * time.Second},
	{
		"an error that cannot pass", func(context.Context) error { return fmt.Errorf("%w: no such table", store.ErrRefused) },
		store.ErrRefused, 0, 6 * time.Second,
	},
	{
		"no answer", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		context.DeadlineExceeded, 30 * time.Second, 36 * time.Second,
	},
}

// callers returns the calls of a Manager that use the store. Another Manager holds
// the run "held" of ann, and the message "queued" waits.
func callers() map[string]func(m *workspace.Manager, db store.Store) error {
	calls := map[string]func(m *workspace.Manager, db store.Store) error{
		"Handle of another user": func(m *workspace.Manager, _ store.Store) error {
			return verbs(m, "new")["Handle"](context.Background(), "cid")
		},
		"Update": func(m *workspace.Manager, _ store.Store) error { // ann has a run
			return m.Update(context.Background(), "dan", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) })
		},
		"Watch": func(m *workspace.Manager, _ store.Store) error {
			for _, err := range m.Watch(context.Background(), "ann").AsHost() {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"Expire": func(m *workspace.Manager, _ store.Store) error {
			_, err := m.Expire(context.Background(), 0)
			return err
		},
		"List": func(m *workspace.Manager, _ store.Store) error {
			for _, err := range m.List(context.Background()) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"Open": func(_ *workspace.Manager, db store.Store) error {
			_, err := workspace.Open(context.Background(), db, &workspace.Options{Name: "named"})
			return err
		},
	}
	for _, name := range []string{
		"Handle", "Submit", "Do", "Await", "View", "Summary", "Cancel", "Retry", "Discard", "Reset", "Delete", "Compact", "Export", "Store",
	} {
		id := "new"
		if name == "Await" || name == "Discard" {
			id = "queued"
		}
		calls[name] = func(m *workspace.Manager, _ store.Store) error {
			return verbs(m, id)[name](context.Background(), "ann")
		}
	}
	return calls
}

// waitingCalls are those that wait for something else if the store works.
var waitingCalls = []string{"Handle", "Do", "Await", "Watch"}

// A call comes back and says why, whatever the store does, although its context
// never ends. When the store works again, everybody is served.
func TestCallsComeBackFromABrokenStore(t *testing.T) {
	for _, f := range faults {
		for name, call := range callers() {
			t.Run(name+"/"+f.name, func(t *testing.T) { comeBack(t, call, false, f.fault, f.want, f.soon) })
			if slices.Contains(waitingCalls, name) {
				t.Run(name+", which waits/"+f.name, func(t *testing.T) { comeBack(t, call, true, f.fault, f.want, f.late) })
			}
		}
	}
}

func comeBack(
	t *testing.T, call func(*workspace.Manager, store.Store) error, first bool,
	fault func(context.Context) error, want error, limit time.Duration,
) {
	synctest.Test(t, func(t *testing.T) {
		memory := store.NewMemory()
		db := newBroken(memory)
		m := open(t, db, workspace.Options{Run: visit})
		other, runs := hold(t, memory, workspace.Options{})
		runs.Begin(t, "ann", text("held"))
		_, err := other.Submit(t.Context(), "ann", text("queued"))
		require.NoError(t, err)

		result := make(chan error, 1)
		if first {
			go func() { result <- call(m, db) }()
			time.Sleep(time.Second)
		}
		db.fault.Store(&fault)
		began := time.Now()
		if !first {
			go func() { result <- call(m, db) }()
		}
		select {
		case err := <-result:
			require.ErrorIs(t, err, want)
			require.LessOrEqual(t, time.Since(began), limit)
		case <-time.After(5 * time.Minute):
			t.Error("the call has not come back")
		}
		db.fault.Store(nil)

		_, err = m.Handle(t.Context(), "bob", text("1"))
		require.NoError(t, err)
		if err := other.Close(); err != nil { // it may have lost its run by now
			require.ErrorContains(t, err, "were cut off")
		}
		out, err := m.Handle(t.Context(), "ann", text("last"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.NoError(t, m.Close())
	})
}

// A message that a broken store may have accepted is in doubt, and can be sent
// again.
func TestMessagesInDoubtSayWhy(t *testing.T) {
	for name, send := range map[string]func(m *workspace.Manager) error{
		"Handle": func(m *workspace.Manager) error {
			_, err := m.Handle(context.Background(), "ann", text("1"))
			return err
		},
		"Submit": func(m *workspace.Manager) error {
			_, err := m.Submit(context.Background(), "ann", text("1"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var away, written atomic.Bool
				var handled atomic.Int64
				db := withFaults(store.NewMemory(), func(writes []store.Write) (bool, error) {
					switch {
					case away.Load():
						return false, errAway
					case len(writes) > 0 && strings.HasPrefix(writes[0].Key, "agent:workspace:") && !written.Swap(true):
						away.Store(true)
						return true, store.ErrUnknownOutcome
					}
					return false, nil
				})
				m := open(t, db, workspace.Options{Run: func(context.Context, *workspace.Run) error {
					handled.Add(1)
					return nil
				}})
				began := time.Now()
				err := send(m)
				require.ErrorIs(t, err, store.ErrUnknownOutcome)
				require.ErrorIs(t, err, errAway)
				require.LessOrEqual(t, time.Since(began), 15*time.Second)
				require.NotZero(t, m.Stats().StoreErrors)
				require.EqualValues(t, 1, m.Stats().UnknownOutcomes)
				away.Store(false)
				_, err = m.Submit(t.Context(), "ann", text("1"))
				require.NoError(t, err)
				_, err = m.Await(t.Context(), "ann", "1")
				require.NoError(t, err)
				require.EqualValues(t, 1, handled.Load())
				require.NoError(t, m.Close())
			})
		})
	}
}

// Operations that wait for the store are counted while they wait.
func TestWaitsAreCountedFromTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newBroken(store.NewMemory())
		m := open(t, db, workspace.Options{Run: nothing})
		synctest.Wait() // it has looked for runs
		fault := func(context.Context) error { return errAway }
		db.fault.Store(&fault)
		go func() { _, _ = m.Submit(context.Background(), "ann", text("1")) }()
		synctest.Wait()
		require.EqualValues(t, 1, m.Stats().StoreErrors)
		require.NoError(t, m.Close())
	})
}
