package workspace

import (
	"strings"
	"testing"

	"github.com/agentstate/state/internal/effort/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestUserEncoding(t *testing.T) {
	for user, want := range map[string]string{
		"ann": "ann", "a/b": "a%2Fb", "A_-9": "A_-9", "é": "%C3%A9", "%": "%25", "..": "%2E%2E", "a b\x00": "a%20b%00",
	} {
		require.Equal(t, want, encodeUser(user))
	}
	property.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if a == "" || b == "" {
			return
		}
		again, err := decodeUser(encodeUser(a))
		if err != nil || again != a {
			t.Fatalf("%q became %q: %v", a, again, err)
		}
		if a != b && encodeUser(a)+blobInfix == encodeUser(b)+blobInfix {
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
		_, err := headKey(user)
		require.ErrorIs(t, err, ErrInvalid, user)
	}
	key, err := headKey(strings.Repeat("x", 400))
	require.NoError(t, err)
	require.Equal(t, headPrefix+strings.Repeat("x", 400), key)
}

func TestBlobNames(t *testing.T) {
	exp, ok := blobExpiry(newBlobName(77))
	require.True(t, ok)
	require.EqualValues(t, 77, exp)
	require.NotEqual(t, newBlobName(1), newBlobName(1))
	for _, name := range []string{"", "x", "1-2", "000000000000000g-aa"} {
		_, ok := blobExpiry(name)
		require.False(t, ok, name)
	}
}
