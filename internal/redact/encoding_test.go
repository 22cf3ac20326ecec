package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"math/rand/v2"
	"mime/quotedprintable"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
)

// wrappedEncodings write a text on several lines, as programs do.
var wrappedEncodings = map[string]func(s string) string{
	"base64 -w64":    func(s string) string { return wrapLines(escapers["base64"](s), 64, "\n") },
	"base64":         func(s string) string { return wrapLines(escapers["base64"](s), 76, "\n") },
	"MIME":           func(s string) string { return wrapLines(escapers["base64"](s), 76, "\r\n") },
	"indented":       func(s string) string { return wrapLines(escapers["base64"](s), 60, "\n      ") },
	"trailing space": func(s string) string { return wrapLines(escapers["base64"](s), 64, " \r\n") },
	"xxd -p":         func(s string) string { return wrapLines(escapers["hex"](s), 60, "\n") },
	"HEX of 32":      func(s string) string { return wrapLines(escapers["hex upper"](s), 32, "\r\n") },
	"in JSON":        func(s string) string { return inJSON(wrapLines(escapers["base64"](s), 64, "\n")) },
	"in a URL":       func(s string) string { return escapers["query"](wrapLines(escapers["base64"](s), 64, "\r\n")) },
	"PEM": func(s string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte(s)}))
	},
	"after other bytes": func(s string) string { return wrapLines(escapers["base64"]("user:"+s+"\n"), 64, "\n") },
}

var wrappedNames = slices.Sorted(maps.Keys(wrappedEncodings))

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
		for _, name := range wrappedNames {
			requireHidden(t, r, wrappedEncodings[name](secret), secret, rng, name)
		}
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
	if unusual[name] || name == "in JSON" || name == "in a URL" {
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
		"a wide gap":    form[:10] + "\n" + strings.Repeat(" ", maxBreak) + form[10:],
	} {
		require.Equal(t, text, r.Redact(text), name)
	}
	require.Equal(t, mask, r.Redact(form[:10]+"\n"+strings.Repeat(" ", maxBreak-1)+form[10:]))

	var quoted bytes.Buffer
	w := quotedprintable.NewWriter(&quoted)
	_, err := w.Write([]byte(secret))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, mask, r.Redact(quoted.String()))
}
