package view

import (
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

func TestSecretsAreMaskedBeforeTextsAreClipped(t *testing.T) {
	card := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(card))
	require.NoError(t, card.Set(st, "0123456789"))
	m := masker{secrets: st.Redactor()}
	for n := range 20 {
		for _, more := range []int{0, previewBytes, 5 * previewBytes} { // a long text is masked as a stream
			long := strings.Repeat("x", previewBytes-n) + "0123456789" + strings.Repeat("x", more)
			require.NotContains(t, m.line(long).Text, "0")
		}
	}
}

func TestTextsEndWithAWholeCharacter(t *testing.T) {
	m := masker{}
	for n := range 4 {
		shown := m.line(strings.Repeat("x", previewBytes-n) + "€€").Text
		require.NotContains(t, shown, "\ufffd")
		require.NotContains(t, shown, `\x`)
	}
}

func TestWithoutASchemaOnlyNamesAreShown(t *testing.T) {
	m := masker{Blind: true}
	require.Equal(t, text("…"), m.id("4711"))
	require.Empty(t, m.id(""))
	require.Equal(t, text("order_id"), m.name("order_id"))
}
