package storetest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

var valueTests = []storeTest{
	{"EmptyIsNotMissing", func(f *fixture) {
		for name, value := range map[string][]byte{"Nil": nil, "Empty": {}} {
			f.subtest(name, func(f *fixture) {
				revision, err := store.Put(f.ctx, f.s, name, value, store.IfAbsent)
				require.NoError(f, err)
				f.requireEntry(name, "", revision)
				f.requireRefused(store.ErrConflict, func() error { return put(f.ctx, f.s, name, store.IfAbsent) })
				f.requireEntry(name, "full", f.put(name, "full", store.IfRevision(revision)))
				revision = f.put(name, "", store.Always)
				f.requireEntry(name, "", revision)
				require.NoError(f, store.Delete(f.ctx, f.s, name, store.IfRevision(revision)))
				f.requireMissing(name)
			})
		}
	}},
	roundTrip("AllBytes", func() []byte {
		var all []byte
		for b := range 256 {
			all = append(all, byte(b))
		}
		return append(all, all...)
	}()),
	roundTrip("NUL", []byte("\x00"), []byte("\x00\x00"), []byte("a\x00b"), []byte("a\x00")),
	roundTrip("TrailingSpace", []byte("a "), []byte("a\n"), []byte("a\r\n"), []byte(" a"), []byte(" "), []byte("\n"), []byte("\ufeffa")),
	roundTrip("NotUTF8", []byte("\xff\xfe"), []byte("caf\xc3"), []byte("\xed\xa0\x80")),
	roundTrip("JSONText", []byte(`{"a":"b"}`), []byte(`{ "b" : 1.0, "a" : 1e2, "a" : 12345678901234567890 }`), []byte(`"text"`), []byte("123"), []byte("1.0"),
		[]byte("true"), []byte("null"), []byte("[]"), []byte(`{"__overwrite__":1}`)),
	roundTrip("LooksEncoded", []byte("aGVsbG8="), []byte("%41"), []byte(`\x41`), []byte(`\\x41`), []byte("0x41"), []byte("NULL"), []byte("\x1f\x8b\x08")),
	roundTrip("300KB", randomBytes(300<<10)),
	roundTrip("900KB", randomBytes(900<<10)),
	{"ShorterOverLonger", func(f *fixture) {
		for _, value := range []string{strings.Repeat("long", 30000), "short", "", "s"} {
			f.requireEntry("key", value, f.put("key", value, store.Always))
		}
	}},
	{"HugeIsWholeOrTooLarge", func(f *fixture) {
		huge := randomBytes(20 << 20)
		before := f.put("key", "before", store.Always)
		revision, err := store.Put(f.ctx, f.s, "key", huge, store.IfRevision(before))
		if err != nil {
			f.requireRefused(store.ErrTooLarge, func() error { return err })
			f.requireEntry("key", "before", before)
			return
		}
		entry, err := store.Get(f.ctx, f.s, "key")
		require.NoError(f, err)
		require.Equal(f, revision, entry.Revision)
		require.True(f, bytes.Equal(huge, entry.Value), "the store changed the value: %d of %d bytes", len(entry.Value), len(huge))
	}},
}

// roundTrip tests that Get and Scan return values unchanged.
func roundTrip(name string, values ...[]byte) storeTest {
	return storeTest{name, func(f *fixture) {
		for _, value := range values {
			shown := value[:min(len(value), 32)]
			revision, err := store.Put(f.ctx, f.s, "key", value, store.Always)
			if errors.Is(err, store.ErrTooLarge) {
				f.Fatalf("values of %d bytes are too large for the store", len(value))
			}
			require.NoError(f, err)
			entry, err := store.Get(f.ctx, f.s, "key")
			require.NoError(f, err)
			require.Equal(f, revision, entry.Revision)
			require.True(f, bytes.Equal(value, entry.Value), "Get changed %q…: %d of %d bytes", shown, len(entry.Value), len(value))
			entries := f.listAll("", "")
			require.Len(f, entries, 1)
			require.True(f, bytes.Equal(value, entries[0].Value), "Scan changed %q…: %d of %d bytes", shown, len(entries[0].Value), len(value))
		}
	}}
}

// randomBytes returns n bytes that do not compress. They are the same in each
// call.
func randomBytes(n int) []byte {
	value := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(value) // never fails
	return value
}
