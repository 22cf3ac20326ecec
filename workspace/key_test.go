package workspace

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyShowsNoSecret(t *testing.T) {
	const secret = "Xq7canaryZ.Xq7canaryZ.Xq7canaryZ."
	k := Key{ID: "2025", Secret: []byte(secret)}
	outs := shownForms(t, k, &k, []Key{k}, map[string]Key{"k": k}, struct{ Key Key }{k})
	s, err := newSealer([]Key{k})
	require.NoError(t, err)
	outs = append(outs, fmt.Sprintf("%+v %#v", s, *s))
	requireHidden(t, secret, outs...)
	require.Equal(t, `key "2025" [SECRET]`, k.String())
}

// shownForms returns all forms in which values are shown.
func shownForms(t testing.TB, values ...any) []string {
	var outs []string
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%10.3v"} {
			outs = append(outs, fmt.Sprintf(verb, v))
		}
		outs = append(outs, fmt.Sprint(v), fmt.Errorf("%w: %v", ErrInvalid, v).Error())
		data, err := json.Marshal(v)
		require.NoError(t, err)
		outs = append(outs, string(data))
		if data, err = xml.Marshal(v); err == nil { // not of maps
			outs = append(outs, string(data))
		}
		var b bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
			slog.New(h).With("with", v).Info("x", "v", v, slog.Group("g", "v", v))
		}
		outs = append(outs, b.String())
	}
	return outs
}

// requireHidden searches for a secret as it is and in its usual encodings.
func requireHidden(t testing.TB, secret string, outs ...string) {
	t.Helper()
	numbers := fmt.Sprint([]byte(secret))
	quoted, list := fmt.Sprintf("%q", secret), fmt.Sprintf("%#v", []byte(secret))
	forms := []string{
		secret, quoted[1 : len(quoted)-1], hex.EncodeToString([]byte(secret)), fmt.Sprintf("%X", secret), fmt.Sprintf("% x", secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), numbers[1 : len(numbers)-1], strings.ReplaceAll(numbers[1:len(numbers)-1], " ", ","),
		list[len("[]byte{") : len(list)-1],
	}
	for _, out := range outs {
		for _, form := range forms {
			if strings.Contains(out, form) {
				require.Fail(t, "a secret is shown", "%q in %q", form, out)
			}
		}
	}
}
