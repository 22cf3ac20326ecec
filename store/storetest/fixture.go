package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// storeTest is one test of a store, on its own data set.
type storeTest struct {
	name string
	run  func(f *fixture)
}

// fixture is the data set of a test. It is empty when the test begins.
type fixture struct {
	*testing.T
	ctx  context.Context
	s    store.Store        // the first handle
	open func() store.Store // opens another handle

	revisions map[store.Revision]bool // of earlier writes
}

func newFixture(t *testing.T, open func() store.Store) *fixture {
	f := &fixture{T: t, ctx: t.Context(), revisions: map[store.Revision]bool{}}
	f.open = func() store.Store {
		s := open()
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	f.s = f.open()
	return f
}

// subtest runs a part of a test on the same data.
func (f *fixture) subtest(name string, run func(f *fixture)) {
	f.Run(name, func(t *testing.T) {
		part := *f
		part.T = t
		run(&part)
	})
}

// put writes a value and requires that this succeeds and returns a new
// revision.
func (f *fixture) put(key, value string, cond store.Condition) store.Revision {
	f.Helper()
	revision, err := store.Put(f.ctx, f.s, key, []byte(value), cond)
	require.NoError(f, err)
	f.requireNew(revision)
	return revision
}

// requireNew requires that no earlier write has a revision.
func (f *fixture) requireNew(revision store.Revision) {
	f.Helper()
	require.NotEmpty(f, revision, "empty revision")
	require.False(f, f.revisions[revision], "the revision %q is reused", revision)
	f.revisions[revision] = true
}

// requireEntry requires that Get and List return an entry.
func (f *fixture) requireEntry(key, value string, revision store.Revision) {
	f.Helper()
	want := store.Entry{Key: key, Value: []byte(value), Revision: revision}
	entry, err := store.Get(f.ctx, f.s, key)
	require.NoError(f, err)
	require.Equal(f, printable(want), printable(entry), "Get")
	entries := f.listAll(key, "")
	require.NotEmpty(f, entries, "List does not yield %q", key)
	require.Equal(f, printable(want), printable(entries[0]), "List")
}

// requireMissing requires that neither Get nor List return a key.
func (f *fixture) requireMissing(key string) {
	f.Helper()
	entry, err := store.Get(f.ctx, f.s, key)
	require.ErrorIs(f, err, store.ErrNotFound)
	require.Zero(f, entry)
	require.NotContains(f, f.listKeys(key, ""), key)
}

// requireRefused requires that a call fails with an error and changes nothing.
func (f *fixture) requireRefused(sentinel error, call func() error) {
	f.Helper()
	before := printableEntries(f.listAll("", ""))
	err := call()
	require.ErrorIs(f, err, sentinel)
	require.NotErrorIs(f, err, store.ErrUnknownOutcome)
	require.Equal(f, before, printableEntries(f.listAll("", "")))
	for _, e := range before {
		f.requireEntry(e.Key, e.Value, e.Revision)
	}
}

// listAll returns the entries of a list.
func (f *fixture) listAll(prefix, after string) []store.Entry {
	f.Helper()
	return f.list(prefix, after, true)
}

func (f *fixture) list(prefix, after string, values bool) []store.Entry {
	f.Helper()
	var entries []store.Entry
	for entry, err := range f.s.List(f.ctx, prefix, after, values) {
		require.NoError(f, err)
		entries = append(entries, entry)
	}
	return entries
}

// listKeys returns the keys of a list, and requires that they do not depend on
// whether it has values.
func (f *fixture) listKeys(prefix, after string) []string {
	f.Helper()
	keys := keysOf(f.list(prefix, after, false))
	require.Equal(f, keysOf(f.listAll(prefix, after)), keys, "prefix %q, after %q: the list without values is another one", prefix, after)
	return keys
}

func keysOf(entries []store.Entry) []string {
	var keys []string
	for _, entry := range entries {
		keys = append(keys, entry.Key)
	}
	return keys
}

// putKeys writes keys concurrently. The value of each key is the key.
func (f *fixture) putKeys(keys []string) {
	f.Helper()
	f.runWorkers(8, func(worker int) error {
		for i := worker; i < len(keys); i += 8 {
			if _, err := store.Put(f.ctx, f.s, keys[i], []byte(keys[i]), store.IfAbsent); err != nil {
				return err
			}
		}
		return nil
	})
}

// runWorkers runs n workers concurrently and requires that all succeed.
func (f *fixture) runWorkers(n int, work func(worker int) error) {
	f.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for worker := range n {
		wg.Go(func() { errs[worker] = work(worker) })
	}
	wg.Wait()
	require.NoError(f, errors.Join(errs...))
}

// patience, if not zero, limits the duration of a call that should end. Only
// tests of stores that hang on purpose set it. For others, the limit depends on
// the -timeout of go test, because a slow machine is not a fault of the store.
var patience time.Duration

// hangLimit returns a channel that receives when a call has to be abandoned.
// Without patience, this is shortly before go test would end the process
// without the name of the call.
func (f *fixture) hangLimit() <-chan time.Time {
	if patience > 0 {
		return time.After(patience)
	}
	if deadline, ok := f.Deadline(); ok {
		left := time.Until(deadline)
		return time.After(left - left/10)
	}
	return nil
}

// mustEnd fails the test if a call hangs.
func (f *fixture) mustEnd(what string, call func()) {
	f.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-f.hangLimit():
		f.Fatalf("%s does not end", what)
	}
}

// printableEntry is an entry in a form that a failed comparison prints well.
type printableEntry struct {
	Key, Value string
	Revision   store.Revision
}

func printable(entry store.Entry) printableEntry {
	return printableEntry{entry.Key, string(entry.Value), entry.Revision}
}
