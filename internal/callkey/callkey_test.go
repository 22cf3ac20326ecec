package callkey_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/callkey"
)

func TestKeysAreRandomAndFitEverywhere(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		key := callkey.New()
		require.Regexp(t, regexp.MustCompile(`^c[A-Za-z0-9_-]{14}$`), key)
		require.True(t, callkey.Valid(key))
		require.False(t, callkey.Repeats(key))
		require.False(t, seen[key], "a key was drawn twice")
		seen[key] = true
	}
}

func TestRepeatedIDsChangeOnlyTheKind(t *testing.T) {
	key := callkey.New()
	again := callkey.Repeat(key)
	require.True(t, callkey.Repeats(again))
	require.Equal(t, key[1:], again[1:])
	require.Equal(t, callkey.WireID(key), callkey.WireID(again))
}

func TestDerivedKeysFollowFromTheirParts(t *testing.T) {
	require.Equal(t, callkey.Derive("ann", "pay", "1"), callkey.Derive("ann", "pay", "1"))
	require.NotEqual(t, callkey.Derive("an", "npay", "1"), callkey.Derive("ann", "pay", "1"))
	require.NotEqual(t, callkey.Derive("ann", "pay"), callkey.Derive("ann", "pay", ""))
}

func TestNestedCallsHaveKeysOfTheirPlace(t *testing.T) {
	key := callkey.New()
	require.Equal(t, key+".0", callkey.Child(key, 0))
	require.NotEqual(t, callkey.Child(key, 1), callkey.Child(key, 11))
	deep := key
	for range 100 {
		deep = callkey.Child(deep, 9)
		require.True(t, callkey.Valid(deep), deep)
	}
}

func TestOtherTextsAreNoKeys(t *testing.T) {
	for _, text := range []string{"", "a b", "a/b", "ä", "\x00", "<b>", string(make([]byte, 65))} {
		require.False(t, callkey.Valid(text), "%q", text)
	}
}

func TestMasksNumberKeysInTheOrderInWhichTheyAppear(t *testing.T) {
	a, b, c := callkey.New(), callkey.New(), callkey.Repeat(callkey.New())
	text := func(a, b, c string) string {
		return `{"tools":[{"id":"` + b + `","key":"` + a + `"},{"key": "` + b + `"
			}]} {"tool":{"key":"` + c + `"}} ` + b + ` {"key":"characteristics","n":1}`
	}
	m := callkey.Masks{}
	require.Equal(t, text("key_1", "key_2", "key_3"), m.Mask(text(a, b, c)))
	require.Equal(t, "refund key_2, key_1.1", m.Mask("refund "+b+", "+a+".1"))
	m.Add("")
	require.Equal(t, "x", m.Mask("x"))
}
