package storetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

// Each list has keys that a careless store takes for one another, for a pattern or
// for a command.
var keys = []test{
	distinct("Case", "Foo", "foo", "FOO", "fOO", "ÄRGER", "Ärger", "ärger", "ß", "ss", "ſ", "s", "İ", "i", "I"),
	distinct("TrailingSpace", "alice", "alice ", "alice  ", "alice\t", "alice\u00a0"),
	distinct("TrailingNewline", "alice", "alice\n", "alice\r\n", "alice\n\n"),
	distinct("LeadingSpace", "alice", " alice", "  alice", "\talice", " ", "  ", "\ufeffalice"),
	distinct("LikeMetacharacters", "user_1", "userX1", "a%b", "axxb", "ab", `a\%b`, `a\_b`, `a\b`, `\`, `\\`, "%", "_", "%%", "^a", "$"),
	distinct("GlobMetacharacters", "star*", "starX", "star", "q?m", "qXm", "br[ack]et", "brXacXket", "bra", "brc", "plus+", "plusX",
		"[a-z]", "b", "*", "?", "[", "{a,b}", "(x|y)", "x", "a.c", "abc"),
	distinct("Quotes", "O'Brien's", `"quoted"`, "`tick`", "''''", `""`, "'", `"`, "--", "#", ";", "/* */", "a'--", "$1", ":1", "?1", "@p"),
	distinct("SQLInjection", "x'; DROP TABLE state; --", "' OR '1'='1", "') OR 1=1 --", "access') = 'public' OR '1'='1' OR json_extract(value, '$.",
		"' UNION SELECT 1,2,3 --", "1; DELETE FROM state", `\'; DROP TABLE state; --`),
	distinct("NUL", "a", "a\x00", "a\x00b", "a\x00\x00", "\x00", "\x00a", "b"),
	distinct("ControlCharacters", "a\x01b", "a\x02b", "a\x1bb", "a\x7fb", "a\rb", "a\nb", "a\r\nb", "a\tb", "a\u0085b", "a\u2028b", "ab"),
	distinct("UnicodeForms", "caf\u00e9", "cafe\u0301", "cafe", "\ufb01", "fi", "\u212b", "\u00c5", "A\u030a", "A", "a", "\uff41"),
	distinct("InvisibleCharacters", "ab", "a\u200bb", "a\u200db", "a\u202eb", "a\u00adb", "a\ufe0fb"),
	distinct("NonASCII", "ключ", "鍵", "مفتاح", "🔑", "🔑🏽", "\U0010ffff", "\uffff", "\ufffd", "a鍵z"),
	distinct("Numbers", "1", "01", "1.0", "1e0", "+1", "-1", "0", "-0", "00", "0x1", "9007199254740993", "9007199254740992", "NaN", "Inf", "true", "null", "NULL"),
	distinct("NATSSubjects", "a.b", "a.*", "a.>", "a", "a.", ".a", "a..b", "*", ">", "a b", "a=b", "$JS", "$KV.a", "_", "-", "."),
	distinct("Separators", "a/b", "a//b", "/a/b", "a/b/", "a", "..", "../a", "a/../b", `a\b`, "a:b", "a::b", "a||b", "a||b||c", "{a}", "{a}:b", "{}", "CON", "con"),
	distinct("ReservedNames", "__proto__", "__overwrite__", "__remove_all__", "constructor", "_id", "id", "key", "value", "revision", "langgraph"),
	distinct("Length512", strings.Repeat("k", 512), strings.Repeat("k", 511), strings.Repeat("k", 511)+"l",
		strings.Repeat("🔑", 128), strings.Repeat("🔑", 127)+"🔐", strings.Repeat("\x00", 512), strings.Repeat("%", 512), strings.Repeat(" ", 512)),
	{"Invalid", func(f *fixture) {
		for name, key := range map[string]string{
			"Empty":       "",
			"TooLong":     strings.Repeat("k", store.MaxKey+1),
			"FarTooLong":  strings.Repeat("k", 1<<20),
			"NotUTF8":     "a\xffb",
			"CutRune":     "caf\xc3",
			"Surrogate":   "a\xed\xa0\x80",
			"OverlongNUL": "a\xc0\x80",
		} {
			f.sub(name, func(f *fixture) {
				_, err := f.s.Get(f.ctx, key)
				require.ErrorIs(f, err, store.ErrInvalidKey, "Get")
				for _, cond := range []store.Condition{store.Always, store.IfAbsent, store.IfRevision("1")} {
					_, err = f.s.Put(f.ctx, key, []byte("value"), cond)
					require.ErrorIs(f, err, store.ErrInvalidKey, "Put")
				}
				for _, cond := range []store.Condition{store.Always, store.IfRevision("1")} {
					require.ErrorIs(f, f.s.Delete(f.ctx, key, cond), store.ErrInvalidKey, "Delete")
				}
				require.Empty(f, f.scan("", ""))
			})
		}
	}},
}

// distinct is a test that a store keeps keys apart, in whatever it does.
func distinct(name string, keys ...string) test {
	return test{name, func(f *fixture) {
		revisions := map[string]store.Revision{}
		for _, key := range keys {
			revision, err := f.s.Put(f.ctx, key, []byte("value of "+key), store.IfAbsent)
			if errors.Is(err, store.ErrConflict) {
				f.Fatalf("%q is taken for another key of %q", key, keys)
			}
			require.NoError(f, err, "Put %q", key)
			revisions[key] = revision
		}
		sorted := slices.Sorted(slices.Values(keys))
		require.Equal(f, sorted, f.keys("", ""), "a scan of all")
		for _, key := range keys {
			f.has(key, "value of "+key, revisions[key])
			require.Equal(f, matching(sorted, key, ""), f.keys(key, ""), "a scan with the prefix %q", key)
			require.Equal(f, matching(sorted, "", key), f.keys("", key), "a scan after %q", key)
		}
		for i, key := range keys {
			require.NoError(f, f.s.Delete(f.ctx, key, store.IfRevision(revisions[key])))
			f.hasNot(key)
			require.Equal(f, slices.Sorted(slices.Values(keys[i+1:])), f.keys("", ""), "after the delete of %q", key)
		}
	}}
}

// matching returns the keys, which are sorted, that a scan has to yield.
func matching(sorted []string, prefix, after string) []string {
	var found []string
	for _, key := range sorted {
		if strings.HasPrefix(key, prefix) && key > after {
			found = append(found, key)
		}
	}
	return found
}
