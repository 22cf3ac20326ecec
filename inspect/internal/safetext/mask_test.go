package safetext_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/stretchr/testify/require"
)

func TestSecretsAreMaskedBeforeTextsAreClipped(t *testing.T) {
	card := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(card))
	require.NoError(t, card.Set(st, "0123456789"))
	m := safetext.Mask{Secrets: st.Redactor()}
	const limit = 64
	for n := range 20 {
		for _, more := range []int{0, limit, 5 * limit} { // a long text is masked as a stream
			text := strings.Repeat("x", limit-n) + "0123456789" + strings.Repeat("x", more)
			require.NotContains(t, m.Line(text, limit), "0")
		}
	}
}

func TestTextsEndWithAWholeCharacter(t *testing.T) {
	m := safetext.Mask{}
	for n := range 4 {
		text := m.Line(strings.Repeat("x", 64-n)+"€€", 64)
		require.NotContains(t, text, "\ufffd")
		require.NotContains(t, text, `\x`)
	}
}

func TestWithoutASchemaOnlyNamesAreShown(t *testing.T) {
	m := safetext.Mask{Blind: true}
	require.Equal(t, "…", m.Line("4711", 64))
	require.Empty(t, m.Line("", 64))
	require.Equal(t, "order_id", m.Name("order_id", 64))
}
