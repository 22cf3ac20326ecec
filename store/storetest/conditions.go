package storetest

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// foreignRevisions are revisions that no write has.
var foreignRevisions = []store.Revision{
	"", "0", "1", "-1", "none", "null", "*", "%", "' OR '1'='1", "18446744073709551616", "9223372036854775808", "1.5",
	"1 ", "ключ", "a\x00", "\xff",
	"00000000000000000000000000000000", store.Revision(strings.Repeat("f", 600)),
}

var conditionTests = []storeTest{
	{"Hold", func(f *fixture) {
		other := f.put("key 2", "value", store.Always)
		for range 2 {
			f.requireEntry("key", "created", f.put("key", "created", store.IfAbsent))
			revision := f.put("key", "overwritten", store.Always)
			f.requireEntry("key", "overwritten", revision)
			revision = f.put("key", "overwritten", store.IfRevision(revision))
			f.requireEntry("key", "overwritten", revision)
			require.NoError(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)))
			f.requireMissing("key")
			f.put("key", "created", store.Always)
			require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
			f.requireMissing("key")
		}
		f.requireEntry("key 2", "value", other)
	}},
	{"DeleteMissing", func(f *fixture) {
		f.put("gone", "value", store.Always)
		for _, key := range []string{"gone", "gone", "never"} {
			require.NoError(f, store.Delete(f.ctx, f.s, key, store.Always))
			f.requireMissing(key)
		}
	}},
}

// revisionTests rely on fixture.put, which requires that each revision is new.
var revisionTests = []storeTest{
	{"ChangeWithEachWrite", func(f *fixture) {
		for range 20 {
			f.requireEntry("key", "the same value", f.put("key", "the same value", store.Always))
		}
	}},
	{"NotReusedAfterDelete", func(f *fixture) {
		for i := range 30 {
			revision := f.put("key", "value", store.IfAbsent)
			if i%2 == 0 {
				revision = f.put("key", "value", store.IfRevision(revision))
			}
			if i%3 == 0 { // what is left of revisions is in the data set
				require.NoError(f, f.s.Close())
				f.s = f.open()
			}
			require.NoError(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)))
		}
	}},
	{"NotSharedByKeys", func(f *fixture) {
		for _, key := range numbered("key ", 30) {
			f.put(key, "value", store.IfAbsent)
		}
	}},
}

// refusalData is what is there when a store has to refuse a write: the entries
// key and other, and no more the entry gone.
type refusalData struct {
	stale, former, current store.Revision // of key, which was deleted after the first: each has written the same value
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
			writes = append(writes, store.Write{Key: "key", Cond: store.IfRevision(foreign)},
				store.Write{Key: "never", Cond: store.IfRevision(foreign)})
		}
		return writes
	}},
	{"DeleteIfAbsentIsInvalid", store.ErrInvalid, func(refusalData) []store.Write {
		return []store.Write{
			{Key: "key", Delete: true, Cond: store.IfAbsent}, {Key: "never", Delete: true, Cond: store.IfAbsent},
		}
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
			require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
			d.former = f.put("key", "value", store.IfAbsent)
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
