package ledger

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace/work"
)

const (
	sealHome  = "agent:workspace:u1"
	sealPlace = sealHome + "/b/0000000000000040-00"
)

func sealKey(id string, c byte) Key { return Key{ID: id, Secret: bytes.Repeat([]byte{c}, 32)} }

func mustSealer(t testing.TB, keys ...Key) *Sealer {
	s, err := NewSealer(keys)
	require.NoError(t, err)
	return s
}

func TestSealOpens(t *testing.T) {
	s := mustSealer(t, sealKey("k", 1))
	for _, plain := range []string{"", "a", "{}\n{}", strings.Repeat("long ", 20_000)} {
		sealed := s.seal(sealHome, sealPlace, []byte(plain))
		got, err := s.open(sealHome, sealPlace, sealed)
		require.NoError(t, err)
		require.Equal(t, plain, string(got))
		require.NotEqual(t, sealed, s.seal(sealHome, sealPlace, []byte(plain)), "a nonce was used twice")
		require.True(t, bytes.HasPrefix(sealed, []byte(`{"format":1,"key":"k","sealed":true}`+"\n")))
		require.Len(t, sealed, len(`{"format":1,"key":"k","sealed":true}`+"\n")+12+len(plain)+16)
	}
}

// Sealed values can be opened by an independent implementation of the format.
// So neither the label nor the additional data may change.
func TestSealIsAsDescribed(t *testing.T) {
	k := sealKey("k", 1)
	sealed := mustSealer(t, k).seal(sealHome, sealPlace, []byte("plain"))
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	// HKDF of RFC 5869, without salt, for one block of the hash.
	derived := mac(mac(make([]byte, sha256.Size), string(k.Secret)), "agentstate workspace seal 1 "+sealHome+"\x01")
	block, err := aes.NewCipher(derived)
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	header, box, _ := bytes.Cut(sealed, []byte("\n"))
	plain, err := aead.Open(nil, box[:12], box[12:], fmt.Appendf(nil, "%s\n%s\n", sealPlace, header))
	require.NoError(t, err)
	require.Equal(t, "plain", string(plain))
}

func TestSealRefuses(t *testing.T) {
	one, two := sealKey("one", 1), sealKey("two", 2)
	s := mustSealer(t, one)
	sealed := s.seal(sealHome, sealPlace, []byte("plain"))
	body := sealed[bytes.IndexByte(sealed, '\n'):]
	other := func(header string) []byte { return append([]byte(header), body...) }
	for name, c := range map[string]struct {
		keys      []Key
		workspace string
		place     string
		data      []byte
		want      error
	}{
		"other key":                {[]Key{two}, sealHome, sealPlace, sealed, work.ErrInvalidKey},
		"no key":                   {nil, sealHome, sealPlace, sealed, work.ErrInvalidKey},
		"other secret":             {[]Key{{ID: "one", Secret: two.Secret}}, sealHome, sealPlace, sealed, work.ErrCorrupt},
		"longer secret":            {[]Key{{ID: "one", Secret: append(one.Secret[:32:32], 0)}}, sealHome, sealPlace, sealed, work.ErrCorrupt},
		"other place":              {[]Key{one}, sealHome, sealPlace + "0", sealed, work.ErrCorrupt},
		"head":                     {[]Key{one}, sealHome, sealHome, sealed, work.ErrCorrupt},
		"other workspace":          {[]Key{one}, sealHome + "1", sealPlace, sealed, work.ErrCorrupt},
		"part of the key in front": {[]Key{one}, "agent:workspace:u", "1" + sealPlace, sealed, work.ErrCorrupt},
		"not sealed":               {[]Key{one}, sealHome, sealPlace, []byte(`{"format":1}`), work.ErrInvalidKey},
		"nothing":                  {[]Key{one}, sealHome, sealPlace, nil, work.ErrInvalidKey},
		"header of another key":    {[]Key{one, two}, sealHome, sealPlace, other(`{"format":1,"key":"two","sealed":true}`), work.ErrCorrupt},
		"its key under two IDs":    {[]Key{one, {ID: "two", Secret: one.Secret}}, sealHome, sealPlace, other(`{"format":1,"key":"two","sealed":true}`), work.ErrCorrupt},
		"header with space":        {[]Key{one}, sealHome, sealPlace, other(`{"format":1,"key":"one","sealed":true} `), work.ErrCorrupt},
		"header in other order":    {[]Key{one}, sealHome, sealPlace, other(`{"key":"one","format":1,"sealed":true}`), work.ErrCorrupt},
		"no format":                {[]Key{one}, sealHome, sealPlace, other(`{"format":0,"key":"one","sealed":true}`), work.ErrCorrupt},
		"newer":                    {[]Key{one}, sealHome, sealPlace, other(`{"format":2,"key":"one","sealed":true,"more":[1]}`), work.ErrNewerFormat},
		"newer without a key":      {nil, sealHome, sealPlace, other(`{"format":2,"sealed":true}`), work.ErrNewerFormat},
		"only a header":            {[]Key{one}, sealHome, sealPlace, []byte(`{"format":1,"key":"one","sealed":true}` + "\n"), work.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			plain, err := mustSealer(t, c.keys...).open(c.workspace, c.place, c.data)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.place)
			require.Nil(t, plain)
		})
	}
}

// Every flipped bit and every truncation is found.
func TestSealNoticesDamage(t *testing.T) {
	s := mustSealer(t, sealKey("k", 1))
	sealed := s.seal(sealHome, sealPlace, []byte("a small value"))
	refused := func(data []byte, header bool) {
		t.Helper()
		plain, err := s.open(sealHome, sealPlace, data)
		require.Nil(t, plain)
		if header {
			requireOneOf(t, err, work.ErrCorrupt, work.ErrInvalidKey, work.ErrNewerFormat)
		} else {
			require.ErrorIs(t, err, work.ErrCorrupt)
		}
	}
	end := bytes.IndexByte(sealed, '\n')
	for bit := range len(sealed) * 8 {
		damaged := bytes.Clone(sealed)
		damaged[bit/8] ^= 1 << (bit % 8)
		refused(damaged, bit/8 <= end)
	}
	for n := range sealed {
		refused(sealed[:n], n <= end)
		refused(append(sealed[:n:n], sealed[n+1:]...), n <= end)
	}
	refused(append(bytes.Clone(sealed), 0), false)
	refused(append(bytes.Clone(sealed), sealed...), false)
}

func requireOneOf(t testing.TB, err error, targets ...error) {
	t.Helper()
	if !slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) }) {
		require.Fail(t, "another error", "%v", err)
	}
}

func TestSealRotation(t *testing.T) {
	old, fresh := sealKey("2024", 1), sealKey("2025", 2)
	before := mustSealer(t, old).seal(sealHome, sealPlace, []byte("plain"))
	during := mustSealer(t, fresh, old)
	plain, err := during.open(sealHome, sealPlace, before)
	require.NoError(t, err)
	after := during.seal(sealHome, sealPlace, plain)
	plain, err = mustSealer(t, fresh).open(sealHome, sealPlace, after)
	require.NoError(t, err, "the first key seals")
	require.Equal(t, "plain", string(plain))
	_, err = mustSealer(t, fresh).open(sealHome, sealPlace, before)
	require.EqualError(t, err, `workspace: wrong key: `+sealPlace+`: sealed with key "2024", which is not given`)
}

func TestWithoutKeysNothingIsSealed(t *testing.T) {
	s := mustSealer(t)
	require.Nil(t, s)
	for _, plain := range []string{"", "{}", `{"format":1}`, `{"format":2,"nonce":"x"}` + "\n", "\n", strings.Repeat("x", 5000) + "\n"} {
		require.Equal(t, plain, string(s.seal(sealHome, sealPlace, []byte(plain))))
		got, err := s.open(sealHome, sealPlace, []byte(plain))
		require.NoError(t, err)
		require.Equal(t, plain, string(got))
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	good := sealKey("k", 1)
	secret := strings.Repeat("Xq7canaryZ", 3)
	for name, keys := range map[string][]Key{
		"no ID":           {{Secret: good.Secret}},
		"long ID":         {{ID: strings.Repeat("k", 65), Secret: good.Secret}},
		"two lines":       {{ID: "a\nb", Secret: good.Secret}},
		"space":           {{ID: "a b", Secret: good.Secret}},
		"not ASCII":       {{ID: "schlüssel", Secret: good.Secret}},
		"delete":          {{ID: "a\x7f", Secret: good.Secret}},
		"no secret":       {{ID: "k"}},
		"short secret":    {{ID: "k", Secret: []byte(secret)}},
		"twice":           {good, {ID: "k", Secret: bytes.Repeat([]byte{2}, 32)}},
		"second is wrong": {good, {ID: "l", Secret: []byte(secret)}},
		"taken for an ID": {{ID: secret + " " + secret, Secret: good.Secret}},
	} {
		_, err := NewSealer(keys)
		require.ErrorIs(t, err, work.ErrInvalid, name)
		require.NotContains(t, err.Error(), "canary")
	}
	for _, id := range []string{"k", strings.Repeat("~", 64), `"\<&>{}`} {
		s := mustSealer(t, Key{ID: id, Secret: bytes.Repeat([]byte{1}, 33)})
		plain, err := s.open(sealHome, sealPlace, s.seal(sealHome, sealPlace, []byte("plain")))
		require.NoError(t, err)
		require.Equal(t, "plain", string(plain))
	}
}

// The caller may wipe a secret after Open.
func TestSealerKeepsItsKeys(t *testing.T) {
	k := sealKey("k", 1)
	s := mustSealer(t, k)
	sealed := s.seal(sealHome, sealPlace, []byte("plain"))
	clear(k.Secret)
	_, err := s.open(sealHome, sealPlace, sealed)
	require.NoError(t, err)
}

// Values that were sealed once with the keys of FuzzOpen, by key in the store.
var sealedOnce = map[string][2]string{
	`{"format":1,"key":"k","sealed":true}` + "\n" + unhex("f548cbcf4ff7d0103e9146a95e0562181a0ff28e13197208ba91abc70055dbf3962366"): {sealPlace, `{"a":1}`},
	`{"format":1,"key":"k","sealed":true}` + "\n" + unhex("fa8a03244be34743534a4882c6736ded91739eba7ac785491b9d1e30"):               {sealHome, ""},
}

func unhex(text string) string {
	data, _ := hex.DecodeString(text)
	return string(data)
}

// FuzzOpen opens arbitrary data. Only sealed values can be opened, and values
// sealed by earlier versions still can.
func FuzzOpen(f *testing.F) {
	for data := range sealedOnce {
		f.Add([]byte(data))
	}
	for _, data := range []string{
		"", "\n", "{}", `{"format":1,"key":"k","sealed":true}`, `{"format":1,"key":"k","sealed":true}` + "\n", `{"format":1,"key":"l","sealed":true}` + "\n0123456789012345678901234567",
		`{"format":2,"key":"k","sealed":true}` + "\n", `{"format":1e400,"key":"k","sealed":true}` + "\n", `{"format":1,"key":7,"sealed":true}` + "\n", `{"format":-1,"Key":"\ud83d","SEALED":true}` + "\n",
		`{"format":1,"key":"` + strings.Repeat("k", 1000) + `","sealed":true}` + "\n", `{"format":1,"key":"k","sealed":false}` + "\nplain", "null\n", "[1]\nx",
	} {
		f.Add([]byte(data))
	}
	s, none := mustSealer(f, sealKey("l", 2), sealKey("k", 1)), mustSealer(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, place := range []string{sealHome, sealPlace} {
			plain, err := s.open(sealHome, place, data)
			if once, known := sealedOnce[string(data)]; known && once[0] == place {
				require.NoError(t, err)
				require.Equal(t, once[1], string(plain))
			} else {
				requireOneOf(t, err, work.ErrCorrupt, work.ErrInvalidKey, work.ErrNewerFormat)
				require.Less(t, len(err.Error()), 1000)
			}
		}
		plain, err := s.open(sealHome, sealPlace, s.seal(sealHome, sealPlace, data))
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, plain))

		if plain, err = none.open(sealHome, sealPlace, data); err != nil {
			requireOneOf(t, err, work.ErrInvalidKey, work.ErrNewerFormat)
		} else {
			require.True(t, bytes.Equal(data, plain))
		}
	})
}
