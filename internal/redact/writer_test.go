package redact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
)

// writeChunks writes a text in chunks of up to most bytes and returns what comes
// out.
func writeChunks(t testing.TB, r *Redactor, text string, chunk func() int) string {
	var out strings.Builder
	w := r.Writer(&out)
	written := 0
	for written < len(text) {
		to := min(len(text), written+chunk())
		n, err := w.Write([]byte(text[written:to]))
		require.NoError(t, err)
		require.Equal(t, to-written, n)
		written = to
		require.LessOrEqual(t, len(w.text)-w.safe, maxHeld(r), "held back")
	}
	require.NoError(t, w.Close())
	return out.String()
}

// maxHeld is what a Writer promises to hold back at most.
func maxHeld(r *Redactor) int { return 256 + 40*(r.maxSpelling-64)/32 }

// textPart returns a part of a text that may hold secrets, sometimes escaped
// once more.
func textPart(rng *rand.Rand, secrets []string) string {
	part := plainPart(rng, secrets)
	if rng.IntN(6) == 0 {
		part = escapers[names[rng.IntN(len(names))]](part)
	}
	return part
}

func plainPart(rng *rand.Rand, secrets []string) string {
	secret := secrets[rng.IntN(len(secrets))]
	switch rng.IntN(8) {
	case 0, 1:
		return escapers[names[rng.IntN(len(names))]](secret)
	case 2:
		form := escapers[names[rng.IntN(len(names))]](secret)
		return form[:rng.IntN(len(form)+1)]
	case 3:
		return strings.Repeat(secret, 1+rng.IntN(4))
	case 4:
		return []string{mask, "[", "[SEC", "]", `{"a":`, `[`, `"`, "}", ",", "1", "0.5", "true", ": ", "\n", " "}[rng.IntN(15)]
	case 5:
		return []string{`\`, `\\`, "%", "%4", "&", "&am", `\u00`, "+", "%25", `\x`, ";", "é", "\xc3", "_", "-"}[rng.IntN(15)]
	case 6:
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteByte(" abz09+/=_.\n%\\&u"[rng.IntN(16)])
		}
		return b.String()
	}
	return []string{"pin ", "the ", "x", `{"n":`, "AAAA", "beef", " : "}[rng.IntN(7)]
}

// randomSecret returns a secret, often short or awkward.
func randomSecret(rng *rand.Rand) string {
	letters := []rune([]string{"abcdef0123456789", "aA1 ", "\\\"n%&4+ u0", "xyz/é日🔑\n\t<>", "1234567890", "[]{}:,\"1a"}[rng.IntN(6)])
	var b strings.Builder
	for range 1 + rng.IntN([]int{4, 12, 40}[rng.IntN(3)]) {
		b.WriteRune(letters[rng.IntN(len(letters))])
	}
	if secret := b.String(); len(secret) > 1 {
		switch rng.IntN(20) { // a part of a character
		case 0:
			return secret[1:]
		case 1:
			return secret[:len(secret)-1]
		}
	}
	return b.String()
}

// TestWriterIsRedact writes random texts in random chunks.
func TestWriterIsRedact(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range effort.Runs(500) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		var secrets []string
		for range 1 + rng.IntN(4) {
			secrets = append(secrets, randomSecret(rng))
		}
		var all []Secret
		for _, s := range secrets {
			all = append(all, Secret{s, rng.IntN(4) == 0})
		}
		r := New(all)
		var b strings.Builder
		for range 1 + rng.IntN(12) {
			b.WriteString(textPart(rng, secrets))
		}
		text := b.String()
		want := r.Redact(text)
		require.Equal(t, want, r.Redact(want), "program %d: twice %q of %q", i, text, secrets)
		most := []int{1, 2, 6, 40}[rng.IntN(4)]
		got := writeChunks(t, r, text, func() int { return 1 + rng.IntN(most) })
		require.Equal(t, want, got, "program %d: chunks of up to %d of %q with %q", i, most, text, secrets)
	}
}

// A mask covers escape sequences whole, also if a sequence ends in a later chunk.
func TestWriterMasksWholeEscapes(t *testing.T) {
	slashes := strings.Repeat(`\`, 1000)
	r := New([]Secret{{Text: `hunter2\`}, {Text: `hu\nter2\`}, {Text: "hunter44"}, {Text: "a&%", Number: true}})
	for text, want := range map[string]string{
		`hunter44a&%.`:                  mask + "a&%.",
		`hu\nter2\u0041.`:               mask + ".",
		`hunter2\u0041.`:                mask + ".",
		`hunter2\ud83d\udd11.`:          mask + ".",
		`hunter2\ud83d\\`:               mask + `\\`,
		`hunter2\hunter2\x`:             mask + mask + "x",
		`hunter44` + slashes + "u0041.": mask + slashes + "u0041.",
		`["hunter2\\` + slashes + `"]`:  `["` + mask + slashes[2:] + `"]`,
	} {
		requireEachChunking(t, r, text, want)
	}
}

// Whether a number is a part of one with a fraction depends on two characters
// on either side, each of which may be escaped.
func TestWriterLooksAtTwoCharacters(t *testing.T) {
	r := New([]Secret{{Text: "3", Number: true}})
	for text, want := range map[string]string{
		"x 3.5 3.x 3.":            "x 3.5 " + mask + ".x " + mask + ".",
		"x 3.٣ 3.é":               "x 3.٣ " + mask + ".é",
		`1%2E3 .%2E3`:             `1%2E3 .%2E` + mask,
		`\ud835\udfd9\U0000002e3`: `\ud835\udfd9\U0000002e3`,
	} {
		requireEachChunking(t, r, text, want)
	}
}

// A spelling may be so long that it would have to be held back for too long.
func TestSpellingsThatAreTooLong(t *testing.T) {
	r := texts([]string{"\x01\x02\x03\x04\x05\x06\x07\x01\x02\x03\x04\x05"})
	escaped := func(format string) string {
		var b strings.Builder
		for _, c := range `\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0001\u0002\u0003\u0004\u0005` {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
	requireEachChunking(t, r, escaped("&#x%x;"), mask)
	requireEachChunking(t, r, escaped("&#x%08x;"), escaped("&#x%08x;"))
	requireEachChunking(t, r, escaped("&#x%08x;")+"!", escaped("&#x%08x;")+"!")
}

// A number is held back only as long as it may be one of JSON.
func TestWriterPassesOnLongNumbers(t *testing.T) {
	var out strings.Builder
	w := texts([]string{"hunter22"}).Writer(&out)
	_, err := io.WriteString(w, "["+strings.Repeat("1", maxLiteral))
	require.NoError(t, err)
	require.Equal(t, "[", out.String())
	_, err = io.WriteString(w, "1")
	require.NoError(t, err)
	require.Equal(t, "["+strings.Repeat("1", maxLiteral+1), out.String())
}

// What begins as a long secret is held back until it differs, or not much longer.
func TestWriterHoldsLongSecrets(t *testing.T) {
	secret := strings.Repeat("0123456789abcdef+", 100)
	r := texts([]string{secret})
	requireEachChunking(t, r, "x"+secret+"y", "x"+mask+"y")
	var out strings.Builder
	w := r.Writer(&out)
	_, err := io.WriteString(w, secret[:500])
	require.NoError(t, err)
	require.Empty(t, out.String())
	_, err = io.WriteString(w, strings.Repeat("!", 700))
	require.NoError(t, err)
	require.Len(t, out.String(), 1200)
}

func requireEachChunking(t *testing.T, r *Redactor, text, want string) {
	require.Equal(t, want, r.Redact(text), "%q", text)
	for size := 1; size <= min(len(text), 50); size++ {
		require.Equal(t, want, writeChunks(t, r, text, func() int { return size }), "%q in pieces of %d", text, size)
	}
}

func TestWriterErrors(t *testing.T) {
	r := texts([]string{"hunter22"})
	broken := errors.New("broken")
	w := r.Writer(brokenWriter{broken})
	_, err := w.Write([]byte("hunt"))
	require.NoError(t, err, "nothing is passed on yet")
	_, err = w.Write([]byte("ing "))
	require.ErrorIs(t, err, broken)
	_, err = w.Write([]byte("more"))
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, w.Close(), broken)

	w = r.Writer(shortWriter{})
	_, err = w.Write([]byte("some text "))
	require.ErrorIs(t, err, io.ErrShortWrite)

	var out strings.Builder
	w = r.Writer(&out)
	_, err = w.Write([]byte("hunter2"))
	require.NoError(t, err)
	require.Empty(t, out.String())
	require.NoError(t, w.Close())
	require.Equal(t, "hunter2", out.String())
	require.NoError(t, w.Close())
	_, err = w.Write([]byte("hunter22"))
	require.ErrorIs(t, err, fs.ErrClosed)
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) - 1, nil }

func FuzzWriter(f *testing.F) {
	f.Add("hunter22", "1234", `{"a":"hunter22 1234 \u0068unter22","n":1234}`, uint8(1))
	f.Add("pass word", "a", "pass+word pass%20word cGFzcyB3\nb3Jk 7061737320776f7264 &#112;ass word &#x;", uint8(3))
	f.Add(`secret\`, "hunter22", `secret\\u0068unter22 [SECRET]hunter2[SECRET`, uint8(2))
	f.Fuzz(func(t *testing.T, one, two, text string, chunk uint8) {
		r := New([]Secret{{Text: one}, {Text: two, Number: chunk%2 == 1}})
		want := r.Redact(text)
		require.Equal(t, want, writeChunks(t, r, text, func() int { return 1 + int(chunk) }))
		for _, part := range strings.Split(want, mask) {
			if isLong(one) && !strings.ContainsAny(one, "[]{}:,\" \t\r\n") {
				require.NotContains(t, part, one)
			}
		}
	})
}

func TestNoSecrets(t *testing.T) {
	r := texts([]string{"", ""})
	require.True(t, r.IsEmpty())
	require.Equal(t, "a%", writeChunks(t, r, "a%", func() int { return 1 }))
	require.False(t, r.Finds([]byte("a")))
}

// stuckWriter panics at its first Write.
type stuckWriter struct{ panicked bool }

func (w *stuckWriter) Write(p []byte) (int, error) {
	if !w.panicked {
		w.panicked = true
		panic("stuck")
	}
	return len(p), nil
}

func TestWriterEndsWhereTheNextWriterDidNotReturn(t *testing.T) {
	w := New([]Secret{{Text: "hidden-secret"}}).Writer(&stuckWriter{})
	text := strings.Repeat("text ", 100)
	require.Panics(t, func() { _, _ = io.WriteString(w, text) })
	_, err := io.WriteString(w, text)
	require.ErrorIs(t, err, io.ErrShortWrite, "otherwise the text would have a hole")
	require.ErrorIs(t, w.Close(), io.ErrShortWrite)
}
