package number_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/number"
)

func TestNormalizeChoosesTheExactType(t *testing.T) {
	for text, want := range map[json.Number]any{
		"":                     int64(0),
		"-0":                   int64(0),
		"1.0":                  int64(1),
		"12e1":                 int64(120),
		"-9223372036854775808": int64(math.MinInt64),
		"9223372036854775808":  uint64(1 << 63),
		"0.1":                  0.1,
		"1e23":                 1e23,
	} {
		n, ok := number.Normalize(text)
		require.True(t, ok, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []json.Number{"1e400", "100000000000000000000001", "1e-400", "01", "+1", "1.", ".5", "1e", "0x1"} {
		_, ok := number.Normalize(text)
		require.False(t, ok, text)
	}
}

func TestConversionsThatLoseAreRefused(t *testing.T) {
	for _, tt := range []struct {
		src                any
		asInt, asUint, f32 bool
	}{
		{int64(-1), true, false, true},
		{uint64(1 << 63), false, true, true},
		{1.5, false, false, true},
		{0.1, false, false, true},
		{int64(1<<24 + 1), true, true, false},
		{math.NaN(), false, false, false},
		{json.Number("1e2"), true, true, true},
		{"1", false, false, false},
	} {
		_, asInt := number.ToInt(tt.src)
		_, asUint := number.ToUint(tt.src)
		_, f32 := number.ToFloat(tt.src, 32)
		require.Equal(t, []bool{tt.asInt, tt.asUint, tt.f32}, []bool{asInt, asUint, f32}, "%T %v", tt.src, tt.src)
	}
}

func TestAppendFloatSpellsAsEncodingJSON(t *testing.T) {
	for _, f := range []float64{0, 1, -1.5, 1e20, 1e21, 1e-6, 1e-7, 1e-10, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		want, err := json.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, string(want), string(number.AppendFloat(nil, f, 64)))
		require.Equal(t, string(want), string(number.Append(nil, f)))
		if short := float32(f); !math.IsInf(float64(short), 0) {
			want, err = json.Marshal(short)
			require.NoError(t, err)
			require.Equal(t, string(want), string(number.AppendFloat(nil, float64(short), 32)))
		}
	}
}
