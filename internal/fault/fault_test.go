package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/fault"
)

func TestErrorText(t *testing.T) {
	require.EqualError(t, &fault.Error{Path: "$.a", Want: "number", Got: "string"}, "$.a: want number, got string")
	require.EqualError(t, &fault.Error{Path: "$.a", Got: "the member occurs twice"}, "$.a: the member occurs twice")
	require.EqualError(t, &fault.LimitError{Path: "$", Name: "Depth", Limit: 2, Got: 3}, "$: limit Depth: 3 is more than 2")
}

func TestCauseIsFoundButNotShown(t *testing.T) {
	cause := errors.New("secret")
	err := fault.Under("$.a", &fault.Error{Path: "$", Got: "x", Cause: cause})
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "$.a: x")
}

func TestANameIsOneLineOfVisibleText(t *testing.T) {
	for _, name := range []string{"a", "größe", "a b", "a\"b", "ready?"} {
		require.Nil(t, fault.CheckName("name", name), "%q", name)
	}
	for name, want := range map[string]string{
		"":         "name: want a name, got nothing",
		"\xff":     "name: want valid UTF-8, got other bytes",
		"a\nb":     "name: want one line of visible text, got U+000A",
		"a\u202eb": "name: want one line of visible text, got U+202E",
		"\u2028":   "name: want one line of visible text, got U+2028",
		"\ufeffa":  "name: want one line of visible text, got U+FEFF",
	} {
		require.EqualError(t, fault.CheckName("name", name), want)
	}
}

func TestUnderMovesThePath(t *testing.T) {
	require.EqualError(t, fault.Under("$.list[3]", &fault.Error{Path: "$.a", Got: "x"}), "$.list[3].a: x")
	require.EqualError(t, fault.Under("$[0]", &fault.LimitError{Path: "$", Name: "Bytes", Limit: 1, Got: 2}), "$[0]: limit Bytes: 2 is more than 1")
	other := errors.New("other")
	require.Equal(t, other, fault.Under("$.a", other))
	require.NoError(t, fault.Under("$.a", nil))
}

func TestAsFindsWrappedErrors(t *testing.T) {
	e, l := &fault.Error{Path: "$"}, &fault.LimitError{Path: "$"}
	require.Same(t, e, fault.As(fmt.Errorf("state: %w", e)))
	require.Same(t, l, fault.AsLimit(fmt.Errorf("state: %w", l)))
	require.Nil(t, fault.As(l))
	require.Nil(t, fault.AsLimit(nil))
}

// Texts used to be cut inside a rune in one of several copies of this function.
func TestClipNeverCutsARune(t *testing.T) {
	for n := range 8 {
		for _, r := range []string{"é", "語", "😀"} {
			text := strings.Repeat("a", n) + strings.Repeat(r, 50)
			clipped := fault.Clip(text)
			require.True(t, utf8.ValidString(clipped), "%q", clipped)
			require.True(t, strings.HasSuffix(clipped, "…"))
			require.LessOrEqual(t, len(clipped), 64+len("…"))
		}
	}
	require.Equal(t, "short", fault.Clip("short"))
	require.Equal(t, `"a\n"`, fault.Quote("a\n"))
}
