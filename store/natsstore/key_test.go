package natsstore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

func TestSubjects(t *testing.T) {
	for key, subject := range map[string]string{
		"users/42/visits_a-b": "users.42.visits_a-b",
		"/":                   "=.=",
		"a//b":                "a.=.b",
		"a.b":                 "a=2Eb",
		"*/>":                 "=2A.=3E",
		"=":                   "=3D",
		"=/=2F":               "=3D.=3D2F",
		"ü\x00\n":             "=C3=BC=00=0A",
	} {
		require.Equal(t, subject, encodeKey(key), key)
	}
	for _, foreign := range []string{"", ".", "a..b", "a=2", "a=2e", "=61", "a=", "=2F", "a b", "=FF", "a/b"} {
		_, ok := decodeKey(foreign)
		require.False(t, ok, foreign)
	}
}

func FuzzKey(f *testing.F) {
	for _, key := range []string{"a", "a/b", "//", "=.", "ü*>", "\x00", "=2F/=", "a.b"} {
		f.Add(key, 1)
	}
	f.Fuzz(func(t *testing.T, key string, cut int) {
		if store.CheckKey(key) != nil {
			return
		}
		subject := encodeKey(key)
		require.Regexp(t, `^[-_=a-zA-Z0-9]+(\.[-_=a-zA-Z0-9]+)*$`, subject)
		decoded, ok := decodeKey(subject)
		require.True(t, ok)
		require.Equal(t, key, decoded)
		prefix := key[:uint(cut)%uint(len(key)+1)]
		for _, last := range []string{">", "*"} {
			filter := subjectFilter(prefix, last)
			below := strings.Contains(key[len(prefix):], "/")
			require.Equal(t, last == ">" || !below, matches(subject, filter), "%q for %q", filter, prefix)
		}
	})
}

// matches reports whether a subject matches a filter that ends with > or *.
func matches(subject, filter string) bool {
	rest, ok := strings.CutPrefix(subject, filter[:len(filter)-1])
	return ok && rest != "" && (strings.HasSuffix(filter, ">") || !strings.Contains(rest, "."))
}
