package storetest

import (
	"errors"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// Each list contains keys that a careless store confuses with each other or
// interprets as a pattern or a command.
var keyTests = []storeTest{
	distinctKeys("Case", "Foo", "foo", "FOO", "fOO", "ÄRGER", "Ärger", "ärger", "ß", "ss", "ſ", "s", "İ", "i", "I"),
	distinctKeys("TrailingSpace", "alice", "alice ", "alice  ", "alice\t", "alice\u00a0"),
	distinctKeys("TrailingNewline", "alice", "alice\n", "alice\r\n", "alice\n\n"),
	distinctKeys("LeadingSpace", "alice", " alice", "  alice", "\talice", " ", "  ", "\ufeffalice"),
	distinctKeys("LikeMetacharacters", "user_1", "userX1", "a%b", "axxb", "ab", `a\%b`, `a\_b`, `a\b`, `\`, `\\`,
		"%", "_", "%%", "^a", "$"),
	distinctKeys("GlobMetacharacters", "star*", "starX", "star", "q?m", "qXm", "br[ack]et", "brXacXket", "bra", "brc", "plus+", "plusX",
		"[a-z]", "b", "*", "?", "[", "{a,b}", "(x|y)", "x", "a.c", "abc"),
	distinctKeys("Quotes", "O'Brien's", `"quoted"`, "`tick`", "''''", `""`, "'", `"`, "--", "#", ";", "/* */",
		"a'--", "$1", ":1", "?1", "@p"),
	distinctKeys("SQLInjection", "x'; DROP TABLE state; --", "' OR '1'='1", "') OR 1=1 --", "access') = 'public' OR '1'='1' OR json_extract(value, '$.",
		"' UNION SELECT 1,2,3 --", "1; DELETE FROM state", `\'; DROP TABLE state; --`),
	distinctKeys("NUL", "a", "a\x00", "a\x00b", "a\x00\x00", "\x00", "\x00a", "b"),
	distinctKeys("ControlCharacters", "a\x01b", "a\x02b", "a\x1bb", "a\x7fb", "a\rb", "a\nb", "a\r\nb", "a\tb",
		"a\u0085b", "a\u2028b", "ab"),
	distinctKeys("UnicodeForms", "caf\u00e9", "cafe\u0301", "cafe", "\ufb01", "fi", "\u212b", "\u00c5",
		"A\u030a", "A", "a", "\uff41"),
	distinctKeys("InvisibleCharacters", "ab", "a\u200bb", "a\u200db", "a\u202eb", "a\u00adb", "a\ufe0fb"),
	distinctKeys("NonASCII", "ключ", "鍵", "مفتاح", "🔑", "🔑🏽", "\U0010ffff", "\uffff", "\ufffd", "a鍵z"),
	distinctKeys("Numbers", "1", "01", "1.0", "1e0", "+1", "-1", "0", "-0", "00", "0x1", "9007199254740993",
		"9007199254740992", "NaN", "Inf", "true", "null", "NULL"),
	distinctKeys("NATSSubjects", "a.b", "a.*", "a.>", "a", "a.", ".a", "a..b", "*", ">", "a b", "a=b",
		"$JS", "$KV.a", "_", "-", "."),
	distinctKeys("Separators", "a/b", "a//b", "/a/b", "a/b/", "a", "..", "../a", "a/../b", `a\b`, "a:b", "a::b", "a||b",
		"a||b||c", "{a}", "{a}:b", "{}", "CON", "con"),
	distinctKeys("ReservedNames", "__proto__", "__overwrite__", "__remove_all__", "constructor", "_id", "id", "key",
		"value", "revision", "langgraph"),
	distinctKeys("Length512", strings.Repeat("k", 512), strings.Repeat("k", 511), strings.Repeat("k", 511)+"l",
		strings.Repeat("🔑", 128), strings.Repeat("🔑", 127)+"🔐", strings.Repeat("\x00", 512), strings.Repeat("%", 512),
		strings.Repeat(" ", 512)),
}

// invalidKeys are keys that a store must refuse.
var invalidKeys = []string{
	"", strings.Repeat("k", store.MaxKey+1), strings.Repeat("k", 1<<20), "a\xffb", "caf\xc3", "a\xed\xa0\x80", "a\xc0\x80",
}

// distinctKeys tests that a store does not confuse keys in any method.
func distinctKeys(name string, keys ...string) storeTest {
	return storeTest{name, func(f *fixture) {
		revisions := map[string]store.Revision{}
		for _, key := range keys {
			revision, err := store.Put(f.ctx, f.s, key, []byte("value of "+key), store.IfAbsent)
			if errors.Is(err, store.ErrConflict) {
				f.Fatalf("%q is confused with another key of %q", key, keys)
			}
			require.NoError(f, err, "Put %q", key)
			revisions[key] = revision
		}
		sorted := slices.Sorted(slices.Values(keys))
		require.Equal(f, sorted, f.listKeys("", ""), "list of all keys")
		for _, key := range keys {
			f.requireEntry(key, "value of "+key, revisions[key])
			require.Equal(f, keysInRange(sorted, key, ""), f.listKeys(key, ""), "list with prefix %q", key)
			require.Equal(f, keysInRange(sorted, "", key), f.listKeys("", key), "list after %q", key)
		}
		for i, key := range keys {
			require.NoError(f, store.Delete(f.ctx, f.s, key, store.IfRevision(revisions[key])))
			f.requireMissing(key)
			require.Equal(f, slices.Sorted(slices.Values(keys[i+1:])), f.listKeys("", ""), "after deleting %q", key)
		}
	}}
}

// keysInRange returns those of the sorted keys that a list must yield.
func keysInRange(sorted []string, prefix, after string) []string {
	var found []string
	for _, key := range sorted {
		if strings.HasPrefix(key, prefix) && key > after {
			found = append(found, key)
		}
	}
	return found
}
