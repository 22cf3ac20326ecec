package value_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/internal/value"
)

func TestDecodeReturnsWhatConvertReturnsOfTheTree(t *testing.T) {
	type named string
	for _, typ := range []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[named](), reflect.TypeFor[bool](), reflect.TypeFor[int](),
		reflect.TypeFor[int8](), reflect.TypeFor[uint8](), reflect.TypeFor[float64](), reflect.TypeFor[[]int](),
		reflect.TypeFor[*int](), reflect.TypeFor[any](),
	} {
		plan, err := value.For(typ)
		require.NoError(t, err)
		for _, text := range []string{
			`""`, `"a\n\u00e9"`, `true`, `false`, `0`, `-1`, `12`, `300`, `1.5`, `2.0`, `1e2`, `-0`,
			`9223372036854775808`, `null`, `[]`, `[1]`, `{}`, `{"a":1}`,
		} {
			tree, err := jsontext.Decode([]byte(text), jsontext.Limits{})
			require.NoError(t, err)
			want, wantSize, wantErr := plan.Convert(tree, value.Limits{})
			decoded, size, decodeErr := plan.Decode([]byte(text), value.Limits{})
			if wantErr == nil {
				require.NoError(t, decodeErr)
				require.Equal(t, want.Interface(), decoded.Interface(), "%s as %s", text, typ)
				require.Equal(t, wantSize, size)
			} else {
				require.EqualError(t, decodeErr, wantErr.Error())
			}
			got := reflect.New(typ).Elem()
			err = plan.DecodeInto(got, []byte(text))
			if wantErr != nil {
				require.EqualError(t, err, wantErr.Error(), "%s as %s", text, typ)
				continue
			}
			require.NoError(t, err, "%s as %s", text, typ)
			require.Equal(t, want.Interface(), got.Interface(), "%s as %s", text, typ)
		}
	}
}

func requireNormal(t require.TestingT, text string, limits value.Limits) {
	tree, err := jsontext.Decode([]byte(text), jsontext.Limits{})
	require.NoError(t, err)
	want, wantSize, wantErr := value.Normalise(tree, limits)
	got, size, err := value.NormaliseJSON([]byte(text), limits)
	require.Equal(t, wantErr, err, text)
	require.Equal(t, want, got, text)
	require.Equal(t, wantSize, size, text)
}

func TestNormaliseJSONReturnsWhatNormaliseReturnsOfTheTree(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, `""`, `"a\u00e9\ud83d\ude00"`, `0`, `-0`, `-0.0`, `1.0`, `1e2`, `10e-1`, `0.1`, `1e-400`, `1e400`, `-1e400`,
		`9223372036854775807`, `-9223372036854775808`, `9223372036854775808`, `18446744073709551615`, `18446744073709551616`, `123456789012345678901`,
		`[]`, `{}`, `[[],{}]`, `{"a":{"b":[1,1.5,null,"x",1e400]},"c":-0}`, ` [ 1 , 2 ] `, ` "a" `, ` 1 `, "true\n", `[[[[1]]]]`,
	} {
		for _, limits := range []value.Limits{{}, {Bytes: 4}, {Bytes: 10}, {Depth: 2}, {Bytes: 1000, Depth: 64}} {
			requireNormal(t, text, limits)
		}
	}
	property.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(normalised(t, 3))
		require.NoError(t, err)
		requireNormal(t, string(text), value.Limits{Bytes: rapid.IntRange(-1, 50).Draw(t, "bytes"), Depth: rapid.IntRange(0, 4).Draw(t, "depth")})
	})
}
