package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"mime/quotedprintable"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
)

// strayBeginnings look like the beginning of an escape sequence, or end in the
// middle of an encoded text.
var strayBeginnings = []string{"", "", "x ", "%", "%4", "&", `\`, `\u00`, "&am", `"`, "=", "\n", "é", "\xc3", "A", "["}

// TestEveryEncodingIsFound writes random secrets in every encoding.
func TestEveryEncodingIsFound(t *testing.T) {
	effort.SkipShort(t)
	seed := effort.LogSeed(t)
	for i := range effort.Runs(500) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		secret := longSecret(rng)
		r := texts([]string{"another secret", secret})
		for _, name := range names {
			requireHidden(t, r, escapers[name](secret), secret, rng, name)
		}
	}
}

func longSecret(rng *rand.Rand) string {
	letters := []rune([]string{
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", "0123456789abcdef",
		"aZ9 \"\\/<>&'+%=é日🔑~\t", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\n",
	}[rng.IntN(4)])
	var b strings.Builder
	b.WriteRune(letters[rng.IntN(10)])
	for range 12 + rng.IntN(300) {
		b.WriteRune(letters[rng.IntN(len(letters))])
	}
	b.WriteString("z")
	return b.String()
}

// requireHidden requires that of an encoded secret nothing but the edges of
// base64 remains, in a text with other things around it.
func requireHidden(t *testing.T, r *Redactor, form, secret string, rng *rand.Rand, name string) {
	before := strayBeginnings[rng.IntN(len(strayBeginnings))]
	if unusual[name] {
		before = "x "
	}
	got := r.Redact("before" + before + form + " after")
	require.Contains(t, got, mask, "%s of %q after %q: %q", name, secret, before, got)
	require.LessOrEqual(t, len(got), len("before"+before+mask+" after")+80, "%s of %q after %q: %q", name, secret, before, got)
	require.Equal(t, got, r.Redact(got), "%s of %q after %q twice", name, secret, before)
}

func TestTextThatOnlyLooksEncodedStays(t *testing.T) {
	secret := "correct horse battery"
	form := base64.StdEncoding.EncodeToString([]byte(secret))
	r := texts([]string{secret})
	for name, text := range map[string]string{
		"words between": form[:10] + " and " + form[10:],
		"spaced hex":    strings.Join(strings.SplitAfterN(hex.EncodeToString([]byte(secret)), "", 5), " "),
		"lines":         form[:10] + "\n" + form[10:],
	} {
		require.Equal(t, text, r.Redact(text), name)
	}

	var quoted bytes.Buffer
	w := quotedprintable.NewWriter(&quoted)
	_, err := w.Write([]byte(secret))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, mask, r.Redact(quoted.String()))
}
