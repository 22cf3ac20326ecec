package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
	for _, name := range []string{"a", "größe", "a b", "a\"b", "ready?", "注文", "😀", "e\u0301", "नमस्ते"} {
		require.Nil(t, fault.CheckName("name", name), "%q", name)
	}
	for name, want := range map[string]string{
		"":             "name: want a name, got nothing",
		"\xff":         "name: want valid UTF-8, got other bytes",
		" ":            "name: want a name without space around it, got outer space",
		"a ":           "name: want a name without space around it, got outer space",
		" a":           "name: want a name without space around it, got outer space",
		"a\nb":         "name: want one line of visible text, got U+000A",
		"a\u202eb":     "name: want one line of visible text, got U+202E",
		"\u2028":       "name: want one line of visible text, got U+2028",
		"\ufeffa":      "name: want one line of visible text, got U+FEFF",
		"a\u200b":      "name: want one line of visible text, got U+200B",
		"a\u200db":     "name: want one line of visible text, got U+200D",
		"a\u2060b":     "name: want one line of visible text, got U+2060",
		"a\u00adb":     "name: want one line of visible text, got U+00AD",
		"a\u00a0b":     "name: want one line of visible text, got U+00A0",
		"a\ufe0f":      "name: want one line of visible text, got U+FE0F",
		"a\U000e0101":  "name: want one line of visible text, got U+E0101",
		"a\U000e0041":  "name: want one line of visible text, got U+E0041",
		"\u3164":       "name: want one line of visible text, got U+3164",
		"\u2800":       "name: want one line of visible text, got U+2800",
		"\uffa0":       "name: want one line of visible text, got U+FFA0",
		"\u115f\u1160": "name: want one line of visible text, got U+115F",
		"\u034f":       "name: want one line of visible text, got U+034F",
		"\u17b4":       "name: want one line of visible text, got U+17B4",
		"a\uffff":      "name: want one line of visible text, got U+FFFF",
		"a\ue000":      "name: want one line of visible text, got U+E000",
		"a\u0378":      "name: want one line of visible text, got U+0378",
	} {
		require.EqualError(t, fault.CheckName("name", name), want)
	}
}

func TestATitleMayHaveWhatScriptsNeed(t *testing.T) {
	for _, title := range []string{"a", "می\u200cخواهم", "👩\u200d🚀", "❤\ufe0f", "a\u00a0b", "a "} {
		require.Nil(t, fault.CheckTitle("key", title), "%q", title)
	}
	for _, title := range []string{"", "\xff", "a\nb", "a\u202eb", "\u2028", "\ufeffa"} {
		require.NotNil(t, fault.CheckTitle("key", title), "%q", title)
	}
}

func TestSuggestNamesWhatIsMeantOrWhatThereIs(t *testing.T) {
	known := []string{"messages", "order_id", "customer", "x"}
	for name, want := range map[string]string{
		"order-id":       `; did you mean "order_id"?`,
		"OrderID":        `; did you mean "order_id"?`,
		"custmer":        `; did you mean "customer"?`,
		"message":        `; did you mean "messages"?`,
		"y":              `; there are "messages", "order_id", "customer", "x"`,
		"something else": `; there are "messages", "order_id", "customer", "x"`,
	} {
		require.Equal(t, want, fault.Suggest(name, known), name)
	}
	require.Empty(t, fault.Suggest("a", nil))
	require.Empty(t, fault.Suggest("zzzzzz", make([]string, 9)))
}

func TestAppendVisibleKeepsTheMeaningOfJSON(t *testing.T) {
	const text = "a b\u00a0é注\u200b\u202e\u2800\U000e0041\U0010ffff"
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	shown := fault.AppendVisible(nil, string(quoted))
	require.Equal(t, "\"a b\u00a0é注\\u200b\\u202e\\u2800\\udb40\\udc41\\udbff\\udfff\"", string(shown))
	var back string
	require.NoError(t, json.Unmarshal(shown, &back))
	require.Equal(t, text, back)
}

// FuzzNames proves that a name is shown as it is, and that no two names that
// differ only in what does not show are accepted.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"a", "größe", "a b", " a", "a\u200b", "\u202eabc", "\u3164", "a\ufe0f", "\xff", "a\nb", "\U000e0041"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if err := fault.CheckName("name", text); err != nil {
			require.Equal(t, "name", err.Path)
			require.True(t, utf8.ValidString(err.Error()))
			return
		}
		require.Equal(t, text, string(fault.AppendVisible(nil, text)), "it is shown as it is")
		require.Equal(t, strconv.Quote(text), strconv.Quote(strings.TrimSpace(text)))
		require.NotContains(t, strings.NewReplacer(`\\`, "", `\"`, "").Replace(strconv.Quote(text)), `\`, "nothing is escaped")
		for _, hidden := range []string{"\u200b", "\ufe0f", "\u00ad", " ", "\u3164", "\U000e0041"} {
			require.NotNil(t, fault.CheckName("name", text+hidden), "%q", text+hidden)
		}
	})
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
