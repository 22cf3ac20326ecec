package value_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/value"
)

func TestDecodeIntoStoresWhatDecodeReturns(t *testing.T) {
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
			want, _, wantErr := plan.Decode([]byte(text), value.Limits{})
			got := reflect.New(typ).Elem()
			err := plan.DecodeInto(got, []byte(text))
			if wantErr != nil {
				require.EqualError(t, err, wantErr.Error(), "%s as %s", text, typ)
				continue
			}
			require.NoError(t, err, "%s as %s", text, typ)
			require.Equal(t, want.Interface(), got.Interface(), "%s as %s", text, typ)
		}
	}
}
