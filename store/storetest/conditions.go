package storetest

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// foreignRevisions are revisions that no write has.
var foreignRevisions = []store.Revision{
	"", "0", "1", "-1", "none", "null", "*", "%", "' OR '1'='1", "18446744073709551616", "9223372036854775808", "1.5", "1 ", "ключ", "a\x00", "\xff",
	"00000000000000000000000000000000", store.Revision(strings.Repeat("f", 600)),
}

var conditionTests = []storeTest{
	{"AlwaysWritesAndOverwrites", func(f *fixture) {
		f.requireEntry("key", "first", f.put("key", "first", store.Always))
		f.requireEntry("key", "second", f.put("key", "second", store.Always))
	}},
	{"IfAbsentCreates", func(f *fixture) {
		f.requireEntry("key", "first", f.put("key", "first", store.IfAbsent))
	}},
	{"IfAbsentAfterDelete", func(f *fixture) {
		f.put("key", "first", store.IfAbsent)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
		f.requireEntry("key", "second", f.put("key", "second", store.IfAbsent))
	}},
	{"IfRevisionOverwrites", func(f *fixture) {
		revision := f.put("key", "0", store.IfAbsent)
		for _, value := range []string{"1", "2", "2", ""} {
			revision = f.put("key", value, store.IfRevision(revision))
			f.requireEntry("key", value, revision)
		}
	}},
	{"Delete", func(f *fixture) {
		f.put("key", "value", store.Always)
		other := f.put("key 2", "value", store.Always)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
		f.requireMissing("key")
		f.requireEntry("key 2", "value", other)
		f.requireEntry("key", "again", f.put("key", "again", store.IfAbsent))
	}},
	{"DeleteMissing", func(f *fixture) {
		f.put("gone", "value", store.Always)
		for _, key := range []string{"gone", "gone", "never"} {
			require.NoError(f, store.Delete(f.ctx, f.s, key, store.Always))
			f.requireMissing(key)
		}
	}},
	{"DeleteIfRevision", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)))
		f.requireMissing("key")
	}},
}

// refusalData is what is there when a store has to refuse a write: the entries
// key and other, and no more the entry gone.
type refusalData struct {
	stale, former, current store.Revision // of key: each has written the same value
	other, gone            store.Revision
}

// refusals are writes that a store must refuse, alone and in each place of a
// batch, with what they have to be refused with.
var refusals = []struct {
	name     string
	sentinel error
	writes   func(d refusalData) []store.Write
}{
	{"IfAbsentRefusesExisting", store.ErrConflict, func(refusalData) []store.Write {
		return []store.Write{{Key: "key", Cond: store.IfAbsent}, {Key: "key", Value: []byte("value"), Cond: store.IfAbsent}}
	}},
	{"IfRevisionRefusesStale", store.ErrConflict, func(d refusalData) []store.Write {
		return []store.Write{{Key: "key", Cond: store.IfRevision(d.stale)}, {Key: "key", Cond: store.IfRevision(d.former)}}
	}},
	{"IfRevisionRefusesMissing", store.ErrConflict, func(d refusalData) []store.Write {
		return []store.Write{
			{Key: "gone", Cond: store.IfRevision(d.gone)},
			{Key: "never", Cond: store.IfRevision(d.gone)},
			{Key: "never", Cond: store.IfRevision("")},
		}
	}},
	{"IfRevisionRefusesOtherKey", store.ErrConflict, func(d refusalData) []store.Write {
		return []store.Write{{Key: "key", Cond: store.IfRevision(d.other)}}
	}},
	{"IfRevisionRefusesForeign", store.ErrConflict, func(d refusalData) (writes []store.Write) {
		for _, foreign := range append(foreignRevisions, d.current+"0", " "+d.current) {
			writes = append(writes, store.Write{Key: "key", Cond: store.IfRevision(foreign)}, store.Write{Key: "never", Cond: store.IfRevision(foreign)})
		}
		return writes
	}},
	{"DeleteIfAbsentIsInvalid", store.ErrInvalid, func(refusalData) []store.Write {
		return []store.Write{{Key: "key", Delete: true, Cond: store.IfAbsent}, {Key: "never", Delete: true, Cond: store.IfAbsent}}
	}},
	{"InvalidKey", store.ErrInvalidKey, func(refusalData) (writes []store.Write) {
		for _, key := range invalidKeys {
			writes = append(writes, store.Write{Key: key}, store.Write{Key: key, Cond: store.IfAbsent})
		}
		return writes
	}},
}

// refusalTests returns a test for each of the refusals. What a condition refuses
// to write, it refuses to delete.
func refusalTests() (tests []storeTest) {
	for _, row := range refusals {
		tests = append(tests, storeTest{row.name, func(f *fixture) {
			d := refusalData{}
			d.stale = f.put("key", "value", store.Always)
			d.former = f.put("key", "value", store.IfRevision(d.stale))
			d.current = f.put("key", "value", store.Always)
			d.other = f.put("other", "value", store.Always)
			d.gone = f.put("gone", "value", store.IfAbsent)
			require.NoError(f, store.Delete(f.ctx, f.s, "gone", store.IfRevision(d.gone)))
			for _, w := range row.writes(d) {
				if w.Value == nil && !w.Delete {
					w.Value = []byte("lost")
				}
				f.requireRefusal(w, row.sentinel)
				if _, conditional := w.Cond.Revision(); conditional {
					f.requireRefusal(store.Write{Key: w.Key, Delete: true, Cond: w.Cond}, row.sentinel)
				}
			}
		}})
	}
	return tests
}

// requireRefusal requires that a store refuses a write, alone and in each place
// of a batch, and changes nothing.
func (f *fixture) requireRefusal(w store.Write, sentinel error) {
	f.Helper()
	innocent := []store.Write{
		{Key: "new", Value: []byte("lost"), Cond: store.IfAbsent},
		{Key: "other", Delete: true},
	}
	for _, writes := range [][]store.Write{
		{w},
		slices.Insert(slices.Clone(innocent), 0, w),
		slices.Insert(slices.Clone(innocent), 1, w),
		append(slices.Clone(innocent), w),
	} {
		f.requireRefused(sentinel, func() error {
			_, err := f.s.Batch(f.ctx, writes)
			return err
		})
	}
}
