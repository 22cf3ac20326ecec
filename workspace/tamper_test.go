package workspace_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

func key(id string) workspace.Key {
	return workspace.Key{ID: id, Secret: bytes.Repeat([]byte(id[:1]), 32)}
}

// fill makes a workspace with a snapshot, segments on several levels, a tail, a
// run, a queue, and large messages in both.
func fill(t *testing.T, db store.Store, keys ...workspace.Key) {
	t.Helper()
	m, runs := hold(t, db, workspace.Options{Keys: keys})
	large := func(id string) workspace.Message {
		return workspace.Message{ID: id, Content: state.UserText(strings.Repeat("large ", 400))}
	}
	for i := range 4 {
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
			return notes.Set(w.State(), []string{strings.Repeat(fmt.Sprint(i), 3000)})
		}))
	}
	require.NoError(t, m.Compact(t.Context(), "ann"))
	run := runs.Begin(t, "ann", large("1"))
	_, err := m.Submit(t.Context(), "ann", large("2"))
	require.NoError(t, err)
	for i := range 19 {
		require.NoError(t, notes.Set(run.State(), []string{strings.Repeat(fmt.Sprint(i%10), 2500)}))
		require.NoError(t, run.Commit(t.Context()))
	}
	require.NoError(t, m.Close())
}

const annsHead = "agent:workspace:ann"

// Every manipulation of a stored value is found.
func TestTampering(t *testing.T) {
	for _, keys := range [][]workspace.Key{nil, {key("a")}} {
		db := store.NewMemory()
		fill(t, db, keys...)
		whole := entries(t, db)
		require.Greater(t, len(whole), 10)
		failing := func(what string, values map[string]string, want ...error) {
			t.Helper()
			write(t, db, values)
			m := open(t, db, workspace.Options{Keys: keys})
			defer func() { _ = m.Close() }()
			_, err := m.Verify(t.Context(), "ann")
			ok := false
			for _, w := range append(want, workspace.ErrCorrupt) {
				ok = ok || errIs(err, w)
			}
			require.True(t, ok, "%s, sealed %t: %v", what, keys != nil, err)
			require.Equal(t, values, entries(t, db), "%s: nothing is written to what is damaged", what)
		}
		with := func(key, value string) map[string]string {
			values := map[string]string{}
			for k, v := range whole {
				values[k] = v
			}
			if value == "" {
				delete(values, key)
			} else {
				values[key] = value
			}
			return values
		}
		var last string
		for key, value := range whole {
			if strings.HasPrefix(key, "agent:busy:") { // it has no value, and says nothing that the head does not
				continue
			}
			edited := []byte(value)
			edited[len(edited)/2] ^= 1
			failing("edit of "+key, with(key, string(edited)), workspace.ErrInvalidKey)
			failing("cut of "+key, with(key, value[:len(value)/2]), workspace.ErrInvalidKey)
			failing("addition to "+key, with(key, value+" "), workspace.ErrInvalidKey)
			if key != annsHead {
				failing("removal of "+key, with(key, ""))
				if last != "" {
					failing("swap of "+key, with(key, whole[last]))
				}
				last = key
			}
		}
		write(t, db, whole)
		report, err := open(t, db, workspace.Options{Keys: keys}).Verify(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, len(whole)-2, report.Blobs, "all but the head and its key in a busy list")
		require.Equal(t, 19, report.Records)
	}
}

func errIs(err, want error) bool { return err != nil && strings.Contains(err.Error(), want.Error()) }

func TestSealed(t *testing.T) {
	db := store.NewMemory()
	fill(t, db, key("a"))
	for key, value := range entries(t, db) {
		for _, plain := range []string{"large", "notes", "000000", "nonce"} {
			require.NotContains(t, value, plain, key)
		}
	}
	sealed := entries(t, db)
	for name, keys := range map[string][]workspace.Key{
		"none": nil, "another": {key("b")}, "another of its name": {{ID: "a", Secret: bytes.Repeat([]byte("x"), 32)}},
	} {
		m := open(t, db, workspace.Options{Keys: keys, Run: nothing})
		_, err := m.View(t.Context(), "ann")
		require.Error(t, err, name)
		_, err = m.Submit(t.Context(), "ann", text("9"))
		require.Error(t, err, name)
		_, err = m.Reset(t.Context(), "ann")
		require.Error(t, err, name)
		require.Equal(t, sealed, entries(t, db), name)
	}
	// A value of one workspace is refused in another.
	moved := map[string]string{}
	for key, value := range sealed {
		moved[strings.Replace(key, annsHead, "agent:workspace:bob", 1)] = value
	}
	write(t, db, moved)
	_, err := open(t, db, workspace.Options{Keys: []workspace.Key{key("a")}}).View(t.Context(), "bob")
	require.ErrorIs(t, err, workspace.ErrCorrupt)
	// A value that is not sealed is refused.
	plain := store.NewMemory()
	fill(t, plain)
	_, err = open(t, plain, workspace.Options{Keys: []workspace.Key{key("a")}}).View(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrInvalidKey)
}

// New values are sealed with a new key, and compaction seals the rest with it.
func TestKeyRotation(t *testing.T) {
	db := store.NewMemory()
	fill(t, db, key("a"))
	keys := []workspace.Key{key("b"), key("a")}
	m := open(t, db, workspace.Options{Keys: keys})
	used := func() []string {
		require.NoError(t, m.Compact(t.Context(), "ann"))
		report, err := m.Verify(t.Context(), "ann")
		require.NoError(t, err)
		return report.Keys
	}
	require.Equal(t, []string{"a", "b"}, used(), "records of the run that is under way stay as they are")
	_, runs := hold(t, db, workspace.Options{Keys: keys})
	runs.Begin(t, "ann", whenBusy(workspace.BusyInterrupt, text("9"))).Finish(t)
	next := runs.Next(t)
	require.Equal(t, []string{"b"}, used())
	next.Finish(t)
	require.NoError(t, m.Close())
	v := view(t, open(t, db, workspace.Options{Keys: []workspace.Key{key("b")}}), "ann")
	require.Len(t, notes.GetOr(v.State(), nil), 23)
}

// An older state is valid in itself: only a Manager that has seen a newer one
// finds the rollback.
func TestRolledBack(t *testing.T) {
	db := store.NewMemory()
	set := func(m *workspace.Manager) error {
		return m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) })
	}
	m := open(t, db, workspace.Options{})
	require.NoError(t, set(m))
	older := entries(t, db)
	require.NoError(t, set(m))
	write(t, db, older)
	require.ErrorIs(t, set(m), workspace.ErrRolledBack)
	_, err := m.View(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrRolledBack)
	require.Equal(t, older, entries(t, db))
	write(t, db, nil)
	_, err = m.View(t.Context(), "ann")
	require.ErrorIs(t, err, workspace.ErrRolledBack, "it is gone")
	write(t, db, older)
	require.NoError(t, set(open(t, db, workspace.Options{})), "nobody remembers")
}

// A run that nobody can load is tried again ever more rarely: each try takes its
// lease and gives it back.
func TestRunsThatCannotBeLoadedAreTriedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		m, runs := hold(t, db, workspace.Options{})
		run := runs.Begin(t, "ann", text("1"))
		before := entries(t, db)
		_, err := m.Submit(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		for key := range entries(t, db) {
			if _, ok := before[key]; !ok {
				require.NoError(t, store.Delete(t.Context(), db, key, store.Always)) // the body of the message
			}
		}
		run.Finish(t)
		require.NoError(t, m.Close())

		var heads atomic.Int32
		counting := withFaults(db, func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if w.Key == "agent:workspace:ann" {
					heads.Add(1)
				}
			}
			return false, nil
		})
		m, _ = hold(t, counting, workspace.Options{Run: runNothing, TTL: 10 * time.Second})
		_, err = m.Submit(t.Context(), "ann", text("3"))
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		require.Positive(t, heads.Swap(0))
		time.Sleep(time.Hour)
		tries := heads.Load()
		require.Positive(t, tries, "it may have been repaired")
		require.Less(t, tries, int32(360), "two for 50 seconds in the mean")
		require.NoError(t, m.Close())
	})
}

// Verify reads what Options.RecordBytes keeps, too.
func TestVerifyReadsThePast(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{RecordBytes: 1 << 20})
	for i := range 200 {
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
			return notes.Set(w.State(), []string{fmt.Sprint(i, strings.Repeat("x", 1000))})
		}))
	}
	v := view(t, m, "ann")
	require.Zero(t, v.Oldest)
	require.NoError(t, m.Close())
	whole := entries(t, db)
	require.Less(t, len(whole), 300)
	for key := range whole {
		if key == annsHead {
			continue
		}
		without := maps.Clone(whole)
		delete(without, key)
		write(t, db, without)
		other := open(t, db, workspace.Options{})
		_, err := other.Verify(t.Context(), "ann")
		require.ErrorIs(t, err, workspace.ErrCorrupt, key)
		require.NoError(t, other.Close())
	}
}
