package storetest

import (
	"strings"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
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
	{"IfAbsentRefusesExisting", func(f *fixture) {
		revision := f.put("key", "first", store.Always)
		_, err := store.Put(f.ctx, f.s, "key", []byte("second"), store.IfAbsent)
		f.requireRefused(err, store.ErrConflict, "key", "first", revision)
		_, err = store.Put(f.ctx, f.s, "key", []byte("first"), store.IfAbsent)
		f.requireRefused(err, store.ErrConflict, "key", "first", revision)
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
	{"IfRevisionRefusesStale", func(f *fixture) {
		stale := f.put("key", "first", store.IfAbsent)
		current := f.put("key", "second", store.IfRevision(stale))
		for range 2 {
			_, err := store.Put(f.ctx, f.s, "key", []byte("third"), store.IfRevision(stale))
			f.requireRefused(err, store.ErrConflict, "key", "second", current)
		}
		// A write of the old value does not restore the old revision.
		current = f.put("key", "first", store.IfRevision(current))
		_, err := store.Put(f.ctx, f.s, "key", []byte("third"), store.IfRevision(stale))
		f.requireRefused(err, store.ErrConflict, "key", "first", current)
	}},
	{"IfRevisionRefusesMissing", func(f *fixture) {
		revision := f.put("key", "first", store.IfAbsent)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)))
		for _, key := range []string{"key", "never"} {
			_, err := store.Put(f.ctx, f.s, key, []byte("second"), store.IfRevision(revision))
			require.ErrorIs(f, err, store.ErrConflict)
			require.NotErrorIs(f, err, store.ErrUnknownOutcome)
			f.requireMissing(key)
		}
	}},
	{"IfRevisionRefusesOtherKey", func(f *fixture) {
		one, two := f.put("one", "value", store.IfAbsent), f.put("two", "value", store.IfAbsent)
		_, err := store.Put(f.ctx, f.s, "one", []byte("lost"), store.IfRevision(two))
		f.requireRefused(err, store.ErrConflict, "one", "value", one)
		f.requireRefused(store.Delete(f.ctx, f.s, "one", store.IfRevision(two)), store.ErrConflict, "one", "value", one)
	}},
	{"IfRevisionRefusesForeign", func(f *fixture) {
		revision := f.put("key", "value", store.IfAbsent)
		for _, foreign := range append(foreignRevisions, revision+"0", " "+revision) {
			_, err := store.Put(f.ctx, f.s, "key", []byte("lost"), store.IfRevision(foreign))
			f.requireRefused(err, store.ErrConflict, "key", "value", revision)
			_, err = store.Put(f.ctx, f.s, "never", []byte("lost"), store.IfRevision(foreign))
			require.ErrorIs(f, err, store.ErrConflict)
			f.requireMissing("never")
			f.requireRefused(store.Delete(f.ctx, f.s, "key", store.IfRevision(foreign)), store.ErrConflict, "key", "value", revision)
		}
	}},
	{"ConflictChangesNothing", func(f *fixture) {
		stale := f.put("key", "first", store.IfAbsent)
		current := f.put("key", "second", store.Always)
		other := f.put("other", "value", store.Always)
		_, err := store.Put(f.ctx, f.s, "key", []byte("lost"), store.IfRevision(stale))
		f.requireRefused(err, store.ErrConflict, "key", "second", current)
		_, err = store.Put(f.ctx, f.s, "key", []byte("lost"), store.IfAbsent)
		f.requireRefused(err, store.ErrConflict, "key", "second", current)
		_, err = store.Put(f.ctx, f.s, "never", []byte("lost"), store.IfRevision(stale))
		require.ErrorIs(f, err, store.ErrConflict)
		f.requireEntry("other", "value", other)
		require.Equal(f, []string{"key", "other"}, f.listKeys("", ""))
	}},
}

var deleteTests = []storeTest{
	{"Existing", func(f *fixture) {
		f.put("key", "value", store.Always)
		other := f.put("key 2", "value", store.Always)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always))
		f.requireMissing("key")
		f.requireEntry("key 2", "value", other)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.Always), "second delete")
		f.requireEntry("key", "again", f.put("key", "again", store.IfAbsent))
	}},
	{"Missing", func(f *fixture) {
		require.NoError(f, store.Delete(f.ctx, f.s, "never", store.Always))
		f.requireMissing("never")
	}},
	{"IfRevision", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)))
		f.requireMissing("key")
	}},
	{"IfRevisionRefusesStale", func(f *fixture) {
		stale := f.put("key", "first", store.Always)
		current := f.put("key", "second", store.Always)
		f.requireRefused(store.Delete(f.ctx, f.s, "key", store.IfRevision(stale)), store.ErrConflict, "key", "second", current)
	}},
	{"IfRevisionRefusesMissing", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		require.NoError(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)))
		require.ErrorIs(f, store.Delete(f.ctx, f.s, "key", store.IfRevision(revision)), store.ErrConflict)
		require.ErrorIs(f, store.Delete(f.ctx, f.s, "never", store.IfRevision(revision)), store.ErrConflict)
		require.ErrorIs(f, store.Delete(f.ctx, f.s, "never", store.IfRevision("")), store.ErrConflict)
	}},
	{"IfAbsentIsInvalid", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		f.requireRefused(store.Delete(f.ctx, f.s, "key", store.IfAbsent), store.ErrInvalid, "key", "value", revision)
		require.ErrorIs(f, store.Delete(f.ctx, f.s, "never", store.IfAbsent), store.ErrInvalid)
	}},
}

var durabilityTests = []storeTest{
	{"IsOneOfTheConstants", func(f *fixture) {
		all := []store.Durability{store.DurabilityProcess, store.DurabilityServer, store.DurabilityPower, store.DurabilityFailover}
		require.Contains(f, all, f.s.Durability())
		require.Equal(f, f.s.Durability(), f.open().Durability())
	}},
}
