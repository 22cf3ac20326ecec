package state_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// The tests of this file prove that Redact finds a secret in whatever Go value
// it is, and that values that JSON changes cannot be secrets.

// secretShape is a secret field of one Go type, a value for it, and the parts
// of the value that Redact must find.
type secretShape struct {
	name    string
	part    state.Part
	replace func(*state.State) error
	texts   []string // found in every encoding
	numbers []string // found as they are
}

func shapeOf[T any](name string, v T, texts ...string) secretShape {
	f := &state.Field[T]{Name: "f", Secret: true}
	return secretShape{name: name, part: f, replace: func(st *state.State) error { return f.Replace(st, v) }, texts: texts}
}

func (s secretShape) with(numbers ...string) secretShape {
	s.numbers = append(s.numbers, numbers...)
	return s
}

type (
	shapeToken   string
	shapeBytes   []byte
	shapeDigest  [20]byte
	shapeLetter  uint8
	shapeNumber  int64
	shapePointer *string
	shapeEmbed   struct{ Inner string }
	shapeTagged  struct {
		Key     []byte            `json:"k,omitempty"`
		ByName  map[string]string `json:"m"`
		Retries int64             `json:"r"`
		shapeEmbed
	}
)

// shapeOpaque keeps its text in a field that only its methods show.
type shapeOpaque struct{ text string }

func (o shapeOpaque) MarshalText() ([]byte, error)  { return []byte("opaque:" + o.text), nil }
func (o *shapeOpaque) UnmarshalText(b []byte) error { o.text = string(b[len("opaque:"):]); return nil }

// shapeEnvelope keeps bytes, names and a text and writes them in other words.
type shapeEnvelope struct {
	key   []byte
	names map[string]string
	text  *string
}

type shapeEnvelopeJSON struct {
	Key   string            `json:"wrapped_key"`
	Names map[string]string `json:"names"`
	Text  string            `json:"text"`
}

func (e shapeEnvelope) MarshalJSON() ([]byte, error) {
	return json.Marshal(shapeEnvelopeJSON{"v1." + hex.EncodeToString(e.key), e.names, "v1." + *e.text})
}

func (e *shapeEnvelope) UnmarshalJSON(data []byte) (err error) {
	var in shapeEnvelopeJSON
	if err = json.Unmarshal(data, &in); err != nil || in.Key == "" {
		return err
	}
	text := strings.TrimPrefix(in.Text, "v1.")
	e.names, e.text = in.Names, &text
	e.key, err = hex.DecodeString(strings.TrimPrefix(in.Key, "v1."))
	return err
}

// shapeMapKey is the key of a map with a text of its own.
type shapeMapKey struct{ Name string }

func (k shapeMapKey) MarshalText() ([]byte, error)  { return []byte("key/" + k.Name), nil }
func (k *shapeMapKey) UnmarshalText(b []byte) error { k.Name = string(b[len("key/"):]); return nil }

// shapeGrade is a byte that is written as a text.
type shapeGrade uint8

func (g shapeGrade) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "grade number %03d", uint8(g)), nil
}
func (g *shapeGrade) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "grade number %d", (*uint8)(g))
	return err
}

// secretShapes returns a value of every shape, all with new secrets.
func secretShapes(rng *rand.Rand) []secretShape {
	text := func() string { return secretText(rng) }
	number := func() int64 { return 1e12 + rng.Int64N(8e17) }
	data := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	listed := func(b []byte) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(b), " ", ","), "[]") }
	a, b, c, d := text(), text(), text(), text()
	n, m := number(), number()
	N, M := strconv.FormatInt(n, 10), strconv.FormatInt(m, 10)
	long, short := data(32+rng.IntN(200)), data(8)
	key32, digest := [32]byte(data(32)), shapeDigest(data(20))
	pa := &a
	private := ed25519.NewKeyFromSeed(data(32))
	raw, _ := json.Marshal(map[string]any{a: []any{b, map[string]any{c: n}}})
	blob := base64.StdEncoding.EncodeToString(long)
	address := netip.AddrFrom16([16]byte(data(16)))
	when := time.Unix(rng.Int64N(4e9), rng.Int64N(1e9)).UTC()
	letters := make([]shapeLetter, len(long))
	for i, x := range long {
		letters[i] = shapeLetter(x)
	}
	bigNumber := new(big.Int).Mul(big.NewInt(n), big.NewInt(m))
	fraction := float64(rng.IntN(1e6)) + 0.123456789 + float64(rng.IntN(1e6))/1e6
	return []secretShape{
		shapeOf("string", a, a),
		shapeOf("named string", shapeToken(a), a),
		shapeOf("pointer", pa, a),
		shapeOf("pointer to pointer", &pa, a),
		shapeOf("named pointer", shapePointer(pa), a),
		shapeOf("strings", []string{a, b}, a, b),
		shapeOf("array of strings", [2]string{a, b}, a, b),
		shapeOf("lists of lists", [][]string{{a}, {b, c}}, a, b, c),
		shapeOf("map", map[string]string{a: b}, a, b),
		shapeOf("named keys", map[shapeToken]shapeToken{shapeToken(a): shapeToken(b)}, a, b),
		shapeOf("map of maps", map[string]map[string]string{a: {b: c}}, a, b, c),
		shapeOf("map of lists", map[string][]string{a: {b, c}}, a, b, c),
		shapeOf("list of maps", []map[string]int64{{a: n}}, a).with(N),
		shapeOf("keys that are numbers", map[int64]string{n: a}, a).with(N),
		shapeOf("keys with methods", map[shapeMapKey]int{{a}: 1}, a, "key/"+a),
		shapeOf("struct", shapeTagged{Key: long, ByName: map[string]string{a: b}, Retries: n, shapeEmbed: shapeEmbed{c}},
			string(long), a, b, c).with(N),
		shapeOf("pointers to structs", []*shapeTagged{{Key: short, ByName: map[string]string{a: b}}}, string(short), a, b),
		shapeOf("struct with a map of structs", struct{ M map[string]shapeEmbed }{map[string]shapeEmbed{a: {b}}}, a, b),
		shapeOf("bytes", long, string(long)),
		shapeOf("named bytes", shapeBytes(long), string(long)),
		shapeOf("bytes of a named type", letters, string(long)),
		shapeOf("bytes with methods", []shapeGrade{shapeGrade(long[0]), 7}, fmt.Sprintf("grade number %03d", long[0]), "grade number 007"),
		shapeOf("lists of bytes", [][]byte{long, short}, string(long), string(short)),
		shapeOf("map of bytes", map[string][]byte{a: long}, a, string(long)),
		shapeOf("key", private, string(private)),
		shapeOf("array of bytes", key32, string(key32[:]), listed(key32[:])),
		shapeOf("pointer to an array of bytes", &key32, string(key32[:])),
		shapeOf("named array of bytes", digest, string(digest[:])),
		shapeOf("arrays of bytes", map[string][32]byte{a: key32}, a, string(key32[:])),
		shapeOf[any]("any text", a, a),
		shapeOf[any]("any list", []any{a, []any{b, n}}, a, b).with(N),
		shapeOf[any]("any object", map[string]any{a: map[string]any{b: []any{map[string]any{c: d}}}}, a, b, c, d),
		shapeOf[any]("any struct", shapeTagged{Key: long, ByName: map[string]string{a: b}, Retries: n}, string(long), a, b).with(N),
		shapeOf[any]("any bytes", long, string(long), blob),
		shapeOf[any]("any array of bytes", key32, string(key32[:])),
		shapeOf[any]("any number", n).with(N),
		shapeOf("struct with any", struct{ V any }{map[string]any{a: long}}, a, string(long)),
		shapeOf("map of any", map[string]any{a: map[string]any{b: key32}}, a, b, string(key32[:])),
		shapeOf("raw message", json.RawMessage(raw), a, b, c).with(N),
		shapeOf("JSON", state.JSON(raw), a, b, c).with(N),
		shapeOf("JSON in a struct", struct{ V []state.JSON }{[]state.JSON{state.JSON(raw)}}, a, b, c).with(N),
		shapeOf("JSON with bytes", state.JSONText(blob), blob, string(long)),
		shapeOf("text of its own", shapeOpaque{a}, a, "opaque:"+a),
		shapeOf("JSON of its own", shapeEnvelope{long, map[string]string{a: b}, pa}, string(long), a, b, "v1."+a),
		shapeOf("JSON of its own in a map", map[string]*shapeEnvelope{b: {short, nil, pa}}, string(short), a, b),
		shapeOf("address", address, address.String()),
		shapeOf("time", when, when.Format(time.RFC3339Nano)),
		shapeOf("times", []state.Time{state.TimeOf(when)}, when.Format(time.RFC3339Nano)),
		shapeOf("number", n).with(N),
		shapeOf("unsigned", uint64(n)).with(N),
		shapeOf("named number", shapeNumber(n)).with(N),
		shapeOf("numbers", []int64{n, m}).with(N, M),
		shapeOf("array of numbers", [2]int64{n, m}).with(N, M),
		shapeOf("float", fraction).with(fmt.Sprint(fraction)),
		shapeOf("short float", float32(fraction)).with(fmt.Sprint(float32(fraction))),
		shapeOf("whole float", float64(n/1e6*1e6)).with(fmt.Sprint(float64(n/1e6*1e6)), strconv.FormatInt(n/1e6*1e6, 10)),
		shapeOf("small float", 1/float64(n)).with(fmt.Sprint(1/float64(n)), strconv.FormatFloat(1/float64(n), 'f', -1, 64)),
		shapeOf("text of a number", json.Number(N+".50")).with(N + ".50"),
		shapeOf("big number", bigNumber).with(bigNumber.String()),
		shapeOf("message", []state.Message{state.UserText(a)}, a),
	}
}

// secretText returns a text that occurs in no other text by accident.
func secretText(rng *rand.Rand) string {
	letters := []rune("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789")
	if rng.IntN(3) == 0 {
		letters = append(letters, []rune("\"\\\n\t<>&;%+= €日🔑'/?{}[],:")...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%x", rng.Uint32()|1<<31)
	for range 8 + rng.IntN(60) {
		b.WriteRune(letters[rng.IntN(len(letters))])
	}
	return b.String() + "z"
}

// spellings returns the encodings of a text that Redact promises to find.
func spellings(text string) map[string]string {
	plain, _ := json.Marshal(text)
	std, lower := base64.StdEncoding.EncodeToString([]byte(text)), hex.EncodeToString([]byte(text))
	forms := map[string]string{
		"base64": std, "raw base64": base64.RawStdEncoding.EncodeToString([]byte(text)),
		"URL base64": base64.URLEncoding.EncodeToString([]byte(text)), "raw URL base64": base64.RawURLEncoding.EncodeToString([]byte(text)),
		"hex": lower, "HEX": strings.ToUpper(lower),
		"query": url.QueryEscape(text), "path": url.PathEscape(text),
		"raw":              text,
		"in larger base64": base64.StdEncoding.EncodeToString([]byte("user:" + text)),
	}
	if strings.ToValidUTF8(text, "") == text { // JSON replaces other bytes
		forms["JSON"] = string(plain[1 : len(plain)-1])
	}
	return forms
}

// TestSecretOfEveryShapeIsRedacted looks for every part of values of every shape
// in every encoding.
func TestSecretOfEveryShapeIsRedacted(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range effort.Runs(500) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		shapes := secretShapes(rng)
		shape := shapes[rng.IntN(len(shapes))]
		st := state.New(state.MustSchema(shape.part))
		require.NoError(t, shape.replace(st), shape.name)
		if rng.IntN(3) == 0 { // and as an import has it
			data, err := st.Export()
			require.NoError(t, err, shape.name)
			st, err = state.Import(state.MustSchema(shape.part), data)
			require.NoError(t, err, shape.name)
		}
		for _, text := range shape.texts {
			for form, spelled := range spellings(text) {
				requireRedacted(t, st, spelled, fmt.Sprintf("program %d: %s, %s of %q", i, shape.name, form, text))
			}
		}
		for _, number := range shape.numbers {
			requireRedacted(t, st, number, fmt.Sprintf("program %d: %s, number %s", i, shape.name, number))
			data := st.Redact(`{"n":` + number + `,"list":[` + number + `]}`)
			require.NotContains(t, data, number, shape.name)
			require.True(t, json.Valid([]byte(data)), "%s: %s", shape.name, data)
		}
	}
}

func requireRedacted(t *testing.T, st *state.State, spelled, where string) {
	t.Helper()
	got := st.Redact("before " + spelled + " after")
	require.NotContains(t, got, spelled, where)
	require.Contains(t, got, "[SECRET]", where)
	require.True(t, strings.HasPrefix(got, "before ") && strings.HasSuffix(got, " after"), "%s: %q", where, got)
}

// Bytes in an array used to be 32 secrets, which were masked wherever a number
// of up to 255 stood.
func TestSecretBytesAreNotSecretNumbers(t *testing.T) {
	key := [32]byte{}
	for i := range key {
		key[i] = byte(i * 7)
	}
	const text = "we have 7 items and 14 boxes"
	for _, shape := range []secretShape{
		shapeOf("array", key), shapeOf[any]("any", key), shapeOf("struct", struct{ K [32]byte }{key}), shapeOf("slice", key[:]),
	} {
		st := state.New(state.MustSchema(shape.part))
		require.NoError(t, shape.replace(st))
		require.Equal(t, text, st.Redact(text), shape.name)
	}
}

// The words that a type uses to write a struct are no secrets, and neither are
// the numbers that it is made of.
func TestSecretsAreNotTheNamesOfMembers(t *testing.T) {
	text := "text"
	for _, shape := range []secretShape{
		shapeOf("struct", shapeTagged{Retries: 123456}),
		shapeOf("methods", shapeEnvelope{[]byte("123456"), nil, &text}),
		shapeOf("address", netip.MustParseAddr("10.1.2.3")),
		shapeOf("times", time.Date(2020, 1, 2, 3, 4, 5, 0, time.Local)),
	} {
		st := state.New(state.MustSchema(shape.part))
		require.NoError(t, shape.replace(st))
		const plain = "wrapped_key names Inner 0 1 281470681743360 Local UTC"
		require.Equal(t, plain, st.Redact(plain), shape.name)
	}
}

// shapeMasked masks itself, so that an export would not hold it.
type shapeMasked string

func (shapeMasked) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }
func (m *shapeMasked) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, (*string)(m))
}

// shapeSly masks itself unless it is empty.
type shapeSly struct{ text string }

func (s shapeSly) MarshalText() ([]byte, error) { return []byte(s.text[:min(len(s.text), 2)]), nil }
func (s *shapeSly) UnmarshalText(b []byte) error {
	s.text = string(b)
	return nil
}

func TestSecretThatItsJSONDoesNotGiveBackIsRefused(t *testing.T) {
	_, err := state.NewSchema(&state.Field[shapeMasked]{Name: "f", Secret: true})
	require.EqualError(t, err, `state: field "f": cannot be Secret: the JSON of state_test.shapeMasked does not give the value back`)
	_, err = state.NewSchema(&state.Field[struct{ V shapeMasked }]{Name: "f", Secret: true})
	require.ErrorContains(t, err, "cannot be Secret")
	_, err = state.NewSchema(&state.Field[shapeMasked]{Name: "f"})
	require.NoError(t, err, "what is no secret may mask itself")

	const text = "sk-live-99887766"
	f := &state.Field[shapeSly]{Name: "f", Secret: true}
	l := &state.Field[[]shapeSly]{Name: "l", Secret: true}
	m := &state.Field[map[string]any]{Name: "m"}
	own := &state.Field[[]shapeSly]{Name: "own", Secret: true,
		Handler: state.NewHandler("own", func(_ []shapeSly, _ bool, u []shapeSly) ([]shapeSly, error) {
			return []shapeSly{{text}}, nil
		})}
	st := state.New(state.MustSchema(f, l, m, own))
	require.NoError(t, f.Set(st, shapeSly{"sk"}))
	for name, err := range map[string]error{
		"set":     f.Set(st, shapeSly{text}),
		"replace": f.Replace(st, shapeSly{text}),
		"update":  f.Update(st, func(shapeSly) (shapeSly, error) { return shapeSly{text}, nil }),
		"by name": st.KV().Set("f", shapeSly{text}),
		"patch":   st.Patch(map[string]any{"f": shapeSly{text}}),
		"append":  l.Set(st, []shapeSly{{"a"}, {text}}),
		"handler": own.Set(st, []shapeSly{{"a"}}),
	} {
		require.ErrorIs(t, err, state.ErrWrongType, name)
		require.ErrorContains(t, err, "want a secret that its JSON gives back", name)
		require.NotContains(t, err.Error(), text, name)
	}
	require.Equal(t, shapeSly{"sk"}, f.Or(st, shapeSly{}))
	require.NoError(t, m.Set(st, map[string]any{"k": shapeSly{text}}))
}

// FuzzSecrets looks for a text in values that hold it at different places.
func FuzzSecrets(f *testing.F) {
	for _, text := range []string{"sk-live-99887766", "correct horse battery", "\"quoted\"\\", "日本語のかぎ", "a\nb\nc\nd", "12345678", "c2stbGl2ZQ=="} {
		f.Add(text, uint8(0))
		f.Add(text, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, shape uint8) {
		if len(text) < 8 || strings.ToValidUTF8(text, "") != text || strings.Contains("before  after [SECRET]", text) {
			return
		}
		raw, err := json.Marshal(map[string]any{"k": []string{text}})
		require.NoError(t, err)
		shapes := []secretShape{
			shapeOf("string", text), shapeOf("key", map[string]map[string]int{"k": {text: 1}}), shapeOf("bytes", shapeBytes(text)),
			shapeOf[any]("any", []any{map[string]any{text: nil}}), shapeOf("JSON", state.JSON(raw)), shapeOf("methods", shapeOpaque{text}),
			shapeOf[any]("any bytes", []byte(text)),
		}
		s := shapes[int(shape)%len(shapes)]
		st := state.New(state.MustSchema(s.part))
		if err := s.replace(st); err != nil {
			require.NotContains(t, err.Error(), text)
			return
		}
		for _, form := range slices.Sorted(maps.Keys(spellings(text))) {
			spelled := spellings(text)[form]
			require.NotContains(t, st.Redact("before "+spelled+" after"), spelled, "%s, %s of %q", s.name, form, text)
		}
	})
}
