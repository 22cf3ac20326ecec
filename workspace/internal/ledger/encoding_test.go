package ledger

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/workspace/work"
)

// fill gives all exported members of a value random values, many of which are
// zero.
func fill(rng *rand.Rand, v reflect.Value) {
	switch some := rng.IntN(3) > 0; {
	case v.Type() == reflect.TypeFor[time.Time]():
		if some {
			v.Set(reflect.ValueOf(time.Unix(rng.Int64N(1e10), rng.Int64N(1e9)).UTC()))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fill(rng, v.Field(i))
			}
		}
	case !some:
	case v.Type() == reflect.TypeFor[state.JSON]():
		v.SetString(`{"a": [1, "<&>"]}`)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes([]byte(` {"a":[1 ]}`))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Interface: // messages
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+rng.IntN(2), 3))
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(rng, v.Elem())
	case v.Kind() == reflect.String:
		v.SetString([]string{"text", "\"\\\n\x01\u00e9<&>", "0123456789ab"}[rng.IntN(3)])
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(rng.Int64N(1 << 40))
	case v.CanUint():
		v.SetUint(rng.Uint64())
	}
}

func storedEffects(t *testing.T, effects []state.Effect) (texts []json.RawMessage) {
	for i := range effects {
		text, err := appendEffect(nil, &effects[i])
		require.NoError(t, err)
		texts = append(texts, text)
	}
	return texts
}

// The encoders write what encoding/json would write.
func TestEncodersWriteWhatEncodingJSONWrites(t *testing.T) {
	type (
		plainHead    Head
		plainMessage Message
		plainRecord  struct {
			work.Record
			Effects []json.RawMessage `json:"effects,omitempty"`
		}
	)
	for seed := range uint64(effort.Runs(2000)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var h Head
		fill(rng, reflect.ValueOf(&h).Elem())
		if h.Run != nil {
			short := h.shortRun()
			h.Run = &short
		}
		want, err := jsontext.Marshal(plainHead(h))
		require.NoError(t, err)
		want = bytes.Replace(want, []byte(`"base":{"version":18446744073709551615,"chain":""},`), nil, 1) // sameBase
		want = bytes.Replace(want, []byte(`,"base":{"version":18446744073709551615,"chain":""}`), nil, 1)
		require.Equal(t, string(want), string(h.appendJSON(nil)))

		var m Message
		fill(rng, reflect.ValueOf(&m).Elem())
		want, err = jsontext.Marshal(plainMessage(m))
		require.NoError(t, err)
		require.Equal(t, string(want), string(m.appendJSON(nil)))

		var r work.Record
		fill(rng, reflect.ValueOf(&r).Elem())
		for i := range r.Effects {
			r.Effects[i].Kind, r.Effects[i].Value = state.EffectSet, "1"
		}
		want, err = jsontext.Marshal(plainRecord{r, storedEffects(t, r.Effects)})
		require.NoError(t, err)
		got, err := appendRecord(nil, &r)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}
