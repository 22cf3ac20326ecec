package browsertest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormsUnderAnotherName sends forms of pages that come over plain HTTP from a
// host that is not localhost. Browsers do not say there from which site a form
// comes, except in the header Origin.
func TestFormsUnderAnotherName(t *testing.T) {
	m := openDesk(t, newDesk(t))
	origin := strings.Replace(serve(t, m, everything), "127.0.0.1", otherName, 1)
	tb := newTab(t, origin)
	tb.open("/workspace?user=carol")
	require.False(t, evaluate[bool](tb, "isSecureContext"))
	tb.click("Discard…")
	tb.click("Discard")
	require.Contains(t, tb.text(), "The message was dropped.")
	v, err := m.View(t.Context(), "carol")
	require.NoError(t, err)
	require.Empty(t, v.DeadLetters)
	for _, fault := range tb.forgive() {
		require.Contains(t, fault, "Cross-Origin-Opener-Policy", "which browsers ignore there")
	}
}
