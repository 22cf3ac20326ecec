package ledger

import (
	"math"
	"strings"
	"testing"

	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/workspace/work"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestUserEncoding(t *testing.T) {
	for user, want := range map[string]string{
		"ann": "ann", "a/b": "a%2Fb", "A_-9": "A_-9", "é": "%C3%A9", "%": "%25", "..": "%2E%2E", "a b\x00": "a%20b%00",
	} {
		require.Equal(t, want, EncodeUser(user))
	}
	property.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if a == "" || b == "" {
			return
		}
		again, err := decodeUser(EncodeUser(a))
		if err != nil || again != a {
			t.Fatalf("%q became %q: %v", a, again, err)
		}
		if a != b && EncodeUser(a)+"/" == EncodeUser(b)+"/" {
			t.Fatalf("%q and %q have the same key", a, b)
		}
	})
	for _, text := range []string{"", "%", "%2", "%zz", "a/b", "%61", "%2f", "%FF"} {
		_, err := decodeUser(text)
		require.Error(t, err, text)
	}
}

func TestHeadKeyLimits(t *testing.T) {
	for _, user := range []string{"", "\xff", strings.Repeat("x", 500), strings.Repeat("é", 100)} {
		_, err := HeadKey(user)
		require.ErrorIs(t, err, work.ErrInvalid, user)
	}
	key, err := HeadKey(strings.Repeat("x", 400))
	require.NoError(t, err)
	require.Equal(t, headPrefix+strings.Repeat("x", 400), key)
}

func TestBlobNames(t *testing.T) {
	s := &blobStore{}
	data := []byte("content")
	name := s.newBlobName(77, data)
	exp, ok := blobSeq(name)
	require.True(t, ok)
	require.EqualValues(t, 77, exp)
	require.True(t, nameFits(name, data))
	require.False(t, nameFits(name, []byte("other content")))
	require.NotEqual(t, name, s.newBlobName(77, data))
	require.NotContains(t, name, listSeparator)
	require.LessOrEqual(t, len(s.newBlobName(math.MaxUint64, data)), maxBlobName)
	for _, name := range []string{"", "x", "1-2", "!-aaaaaaaaaaaa"} {
		_, ok := blobSeq(name)
		require.False(t, ok, name)
	}
}
