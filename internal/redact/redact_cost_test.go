package redact

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/cost"
	"github.com/agentstate/state/internal/test/effort"
)

// attacks are texts that a clever scan could take long for, from a piece that is
// repeated, with the secrets that make it so.
var attacks = []struct {
	name    string
	secrets []string
	piece   string
}{
	{"tokens that touch", []string{"ab1!"}, "ab1!"},
	{"tokens that hang on one another", []string{"ab", "-a", "a"}, "-aab"},
	{"a repetitive secret", []string{strings.Repeat("a", 5000)}, "a"},
	{"almost the secret", []string{strings.Repeat("a", 5000) + "b"}, "a"},
	{"backslashes", []string{`\n"\abcdef`}, `\`},
	{"percents", []string{"%25%25secret"}, "%25"},
	{"ampersands", []string{"&amp;secret"}, "&amp;amp;"},
	{"all escapes", []string{`\u0041%41&lt;é`}, `\u005cu0025%5cu0041&#x5c;u0041\x2541`},
	{"base64", []string{"secret", "AAAAAAAA"}, "QUFB"},
	{"lines of base64", []string{"secret", "AAAAAAAA"}, "QUFB\n"},
	{"white space", []string{"secret"}, "A \n"},
	{"wide gaps", []string{"secret"}, "A" + strings.Repeat(" ", 85) + "\n"},
	{"masks", []string{"secret"}, mask},
	{"beginnings of masks", []string{"secret"}, mask[:7]},
	{"brackets", []string{"secret", "["}, "["},
	{"digits of JSON", []string{"12345", "secret"}, "[12345,"},
	{"beginnings of the secret", []string{strings.Repeat("ab", 30) + "c"}, "ab"},
}

// A text of twice the length takes twice the work, whatever it is.
func TestRedactIsLinear(t *testing.T) {
	effort.Cost(t)
	for _, attack := range attacks {
		work := func(n int) int {
			r := texts(attack.secrets)
			s := scan{r: r}
			s.find([]byte(strings.Repeat(attack.piece, n/len(attack.piece)+1)[:n]), 0, noRune, false)
			return s.steps
		}
		small, large := work(40_000), work(160_000)
		require.LessOrEqual(t, large, 5*small, attack.name)
		require.LessOrEqual(t, large, 160_000*120, attack.name)
	}
}

// Writing a text byte by byte takes a bounded number of steps for each.
func TestWriterIsLinear(t *testing.T) {
	effort.Cost(t)
	for _, attack := range attacks {
		work := func(n int) int {
			w := texts(attack.secrets).Writer(io.Discard)
			text := strings.Repeat(attack.piece, n/len(attack.piece)+1)[:n]
			for i := range n {
				_, err := w.Write([]byte(text[i : i+1]))
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			return w.scan.steps
		}
		small, large := work(1_000), work(4_000)
		require.LessOrEqual(t, large, 6*small, attack.name)
	}
}

func randomBytes(rng *rand.Rand, n int, letters string) string {
	var b strings.Builder
	for range n {
		b.WriteByte(letters[rng.IntN(len(letters))])
	}
	return b.String()
}

func TestMemoryOfARedactor(t *testing.T) {
	effort.Cost(t)
	const token, awkward = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", "\"\\\n<&%+ \x00\xff\xc3\xa9~"
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name       string
		count, len int
		letters    string
		factor     int
	}{
		{"tokens", 1000, 40, token, 96},
		{"longer tokens", 100, 4000, token, 64},
		{"awkward", 100, 40, awkward, 1024},
		{"awkward and longer", 100, 2000, awkward, 1024},
		{"64 KB", 1, 64 << 10, awkward, 64},
		{"16 MiB", 1, 16 << 20, awkward, 2},
	} {
		var secrets []string
		for range tt.count {
			secrets = append(secrets, randomBytes(rng, tt.len, tt.letters))
		}
		var r *Redactor
		got := cost.Grew(func() any { r = texts(secrets); return r })
		require.LessOrEqual(t, got, tt.factor*tt.count*tt.len+(32<<10), tt.name)
		require.LessOrEqual(t, got, 64<<20, tt.name)
		t.Logf("%s: %d × the secrets", tt.name, got/tt.count/tt.len)
	}
}

func TestManySecretsTakeBoundedMemory(t *testing.T) {
	effort.Cost(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var secrets []string
	for range 20_000 {
		secrets = append(secrets, randomBytes(rng, 100, "\"\\\n<&%+ abcdef"))
	}
	var r *Redactor
	require.LessOrEqual(t, cost.Grew(func() any { r = texts(secrets); return r }), 400<<20)
	for _, i := range []int{0, 7, 19_999} {
		require.Equal(t, "x"+mask+"y", r.Redact("x"+secrets[i]+"y"))
		require.Contains(t, r.Redact("x"+inJSON(secrets[i])+"y"), mask)
	}
}

func TestLongSecrets(t *testing.T) {
	effort.Cost(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{63, 64, 65, 300, 5000, 100_000, 4 << 20} {
		secret := "z" + randomBytes(rng, n-2, "abc\"\n %") + "z"
		r := texts([]string{secret, "another secret"})
		encoded := base64.StdEncoding.EncodeToString([]byte("x" + secret))
		for name, form := range map[string]string{"raw": secret, "json": inJSON(secret), "base64": encoded} {
			if n > 1<<20 && name != "raw" {
				continue
			}
			got := r.Redact("before " + form + " after")
			if n > 1<<20 {
				require.Equal(t, "before "+mask+" after", got)
			}
			require.Contains(t, got, mask, "%s of %d", name, n)
			require.Less(t, len(got), 40, "%s of %d", name, n)
		}
		if n > 1<<20 {
			continue // the race detector is slow
		}
		almost := secret[:n-1] + "y"
		require.Equal(t, almost, r.Redact(almost))
		require.Equal(t, secret[:n-1], r.Redact(secret[:n-1]))

		var out bytes.Buffer
		w := r.Writer(&out)
		_, err := io.Copy(w, strings.NewReader("before "+secret+" "+almost))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.Equal(t, "before "+mask+" "+almost, out.String(), "%d", n)
	}
}

func TestRedactDoesNotAllocate(t *testing.T) {
	effort.Cost(t)
	var secrets []string
	for i := range 1000 {
		secrets = append(secrets, fmt.Sprintf("sk-live-%032d", i))
	}
	r := texts(secrets)
	text := strings.Repeat("the customer agreed to the refund ", 6)
	least := 100.0
	for range 20 {
		least = min(least, testing.AllocsPerRun(1, func() { r.Redact(text) }))
	}
	require.Zero(t, least)
}
