package storetest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

var valueTests = []storeTest{
	{"EmptyIsNotMissing", func(f *fixture) {
		for name, value := range map[string][]byte{"nil": nil, "empty": {}} {
			revision, err := store.Put(f.ctx, f.s, name, value, store.IfAbsent)
			require.NoError(f, err)
			f.requireEntry(name, "", revision)
			f.requireRefused(store.ErrConflict, func() error { return put(f.ctx, f.s, name, store.IfAbsent) })
			f.requireEntry(name, "full", f.put(name, "full", store.IfRevision(revision)))
			revision = f.put(name, "", store.Always)
			f.requireEntry(name, "", revision)
			require.NoError(f, store.Delete(f.ctx, f.s, name, store.IfRevision(revision)))
			f.requireMissing(name)
		}
	}},
	roundTrip("AllBytes", func() string {
		var all []byte
		for b := range 256 {
			all = append(all, byte(b))
		}
		return string(all) + string(all)
	}()),
	roundTrip("NUL", "\x00", "\x00\x00", "a\x00b", "a\x00"),
	roundTrip("TrailingSpace", "a ", "a\n", "a\r\n", " a", " ", "\n", "\ufeffa"),
	roundTrip("NotUTF8", "\xff\xfe", "caf\xc3", "\xed\xa0\x80"),
	roundTrip("JSONText", `{"a":"b"}`, `{ "b" : 1.0, "a" : 1e2, "a" : 12345678901234567890 }`, `"text"`, "123", "1.0", "true", "null", "[]",
		`{"__overwrite__":1}`),
	roundTrip("LooksEncoded", "aGVsbG8=", "%41", `\x41`, `\\x41`, "0x41", "NULL", "\x1f\x8b\x08"),
	roundTrip("300KB", string(randomBytes(300<<10))),
	roundTrip("900KB", string(randomBytes(900<<10))),
	roundTrip("ShorterOverLonger", strings.Repeat("long", 30000), "short", "", "s"),
	{"HugeIsWholeOrTooLarge", func(f *fixture) {
		huge := randomBytes(20 << 20)
		before := f.put("key", "before", store.Always)
		revision, err := store.Put(f.ctx, f.s, "key", huge, store.IfRevision(before))
		if err != nil {
			f.requireRefused(store.ErrTooLarge, func() error { return err })
			f.requireEntry("key", "before", before)
			return
		}
		f.requireEntry("key", string(huge), revision)
	}},
}

// roundTrip tests that Get and List return values unchanged. Each value takes the
// place of the one before.
func roundTrip(name string, values ...string) storeTest {
	return storeTest{name, func(f *fixture) {
		for _, value := range values {
			f.requireEntry("key", value, f.put("key", value, store.Always))
		}
	}}
}

// A store neither keeps the slices that it receives nor returns slices that it
// keeps.
var aliasingTests = []storeTest{
	{"GivenBytes", func(f *fixture) {
		room := []byte("value and the rest of the array")
		given := room[:5]
		revisions, err := f.s.Batch(f.ctx, []store.Write{{Key: "key", Value: given}, {Key: "other", Value: given}})
		require.NoError(f, err)
		require.Equal(f, "value and the rest of the array", string(room))
		overwriteBytes(given)
		f.requireEntry("key", "value", revisions[0])
		f.requireEntry("other", "value", revisions[1])
	}},
	{"BytesOfGet", func(f *fixture) {
		revision := f.put("key", "value", store.Always)
		for range 2 {
			entries, err := f.s.Get(f.ctx, "key", "key")
			require.NoError(f, err)
			overwriteBytes(entries[0].Value)
			require.Equal(f, "value", string(entries[1].Value), "two entries have the same bytes")
			overwriteBytes(entries[1].Value)
			f.requireEntry("key", "value", revision)
		}
	}},
	{"BytesOfList", func(f *fixture) {
		f.put("key 1", "value 1", store.Always)
		second := f.put("key 2", "value 2", store.Always)
		entries := f.listAll("", "")
		first := f.put("key 1", "other 1", store.Always)
		f.listAll("", "")
		for i, value := range []string{"value 1", "value 2"} {
			require.Equal(f, value, string(entries[i].Value), "the value changed after List had yielded it")
			overwriteBytes(entries[i].Value)
		}
		f.requireEntry("key 1", "other 1", first)
		f.requireEntry("key 2", "value 2", second)
	}},
}

func overwriteBytes(value []byte) {
	for i := range value {
		value[i] = '!'
	}
	_ = append(value, '!')
}
