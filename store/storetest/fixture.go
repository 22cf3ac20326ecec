package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// storeTest is one test of a store, on its own data set.
type storeTest struct {
	name string
	run  func(f *fixture)
}

// fixture is the data set of a test. It is empty when the test begins. A call
// that hangs ends with the -timeout of go test, which names the test.
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

// openHandles opens n handles.
func (f *fixture) openHandles(n int) []store.Store {
	handles := make([]store.Store, n)
	for i := range handles {
		handles[i] = f.open()
	}
	return handles
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

// putKeys writes keys. The value of each key is the key.
func (f *fixture) putKeys(keys []string) {
	f.Helper()
	for part := range slices.Chunk(keys, 100) {
		var writes []store.Write
		for _, key := range part {
			writes = append(writes, store.Write{Key: key, Value: []byte(key), Cond: store.IfAbsent})
		}
		_, err := f.s.Batch(f.ctx, writes)
		require.NoError(f, err)
	}
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
	want := printable(store.Entry{Key: key, Value: []byte(value), Revision: revision})
	require.Equal(f, want, f.getAll(key)[0], "Get")
	entries := f.listAll(key, "")
	require.NotEmpty(f, entries, "List does not yield %q", key)
	require.Equal(f, want, printable(entries[0]), "List")
}

// requireMissing requires that neither Get nor List return a key.
func (f *fixture) requireMissing(key string) {
	f.Helper()
	require.Equal(f, []printableEntry{{Key: key}}, f.getAll(key))
	require.NotContains(f, f.listKeys(key, ""), key)
}

// requireRefused requires that a call fails with an error and changes nothing.
func (f *fixture) requireRefused(sentinel error, call func() error) {
	f.Helper()
	before := f.listAll("", "")
	err := call()
	require.ErrorIs(f, err, sentinel)
	require.NotErrorIs(f, err, store.ErrUnknownOutcome)
	require.Equal(f, printableEntries(before), printableEntries(f.listAll("", "")))
	require.Equal(f, printableEntries(before), f.getAll(keysOf(before)...))
}

// getAll returns the entries that Get returns.
func (f *fixture) getAll(keys ...string) []printableEntry {
	f.Helper()
	entries, err := f.s.Get(f.ctx, keys...)
	require.NoError(f, err)
	return printableEntries(entries)
}

// listAll returns the entries of a list.
func (f *fixture) listAll(prefix, after string) []store.Entry {
	f.Helper()
	return f.list(prefix, after, true)
}

func (f *fixture) list(prefix, after string, values bool) []store.Entry {
	f.Helper()
	entries, err := collect(f.s.List(f.ctx, prefix, after, values))
	require.NoError(f, err)
	return entries
}

// collect returns what a list yields.
func collect(list iter.Seq2[store.Entry, error]) (entries []store.Entry, last error) {
	for entry, err := range list {
		if last != nil {
			return entries, errors.New("the list goes on after an error")
		}
		if last = err; err == nil {
			entries = append(entries, entry)
		}
	}
	return entries, last
}

// listKeys returns the keys of a list, and requires that they do not depend on
// whether it has values.
func (f *fixture) listKeys(prefix, after string) []string {
	f.Helper()
	keys := keysOf(f.list(prefix, after, false))
	require.Equal(f, keysOf(f.listAll(prefix, after)), keys,
		"prefix %q, after %q: the list without values is another one", prefix, after)
	return keys
}

func keysOf(entries []store.Entry) []string {
	var keys []string
	for _, entry := range entries {
		keys = append(keys, entry.Key)
	}
	return keys
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

// printableEntry is an entry in a form that a failed comparison prints well.
type printableEntry struct {
	Key, Value string
	Revision   store.Revision
}

func printable(entry store.Entry) printableEntry {
	value := string(entry.Value)
	if len(value) > 200 {
		value = fmt.Sprintf("%q… (%d bytes with the hash %x)", value[:32], len(value), sha256.Sum256(entry.Value))
	}
	return printableEntry{entry.Key, value, entry.Revision}
}

func printableEntries(entries []store.Entry) []printableEntry {
	list := make([]printableEntry, len(entries))
	for i, e := range entries {
		list[i] = printable(e)
	}
	return list
}

// numbered returns keys with the numbers below n, in order.
func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return keys
}

// randomBytes returns n bytes that do not compress. They are the same in each
// call.
func randomBytes(n int) []byte {
	value := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(value) // never fails
	return value
}
