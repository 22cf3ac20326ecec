package number_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/number"
)

func TestNormalizeChoosesTheExactType(t *testing.T) {
	for text, want := range map[json.Number]any{
		"":                     int64(0),
		"-0":                   int64(0),
		"12":                   int64(12),
		"1.0":                  1.0,
		"12e1":                 120.0,
		"5E0":                  5.0,
		"9007199254740993.0":   int64(9007199254740993),
		"18446744073709551615": uint64(math.MaxUint64),
		"18446744073709551616": 1 << 64 * 1.0,
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
		if short := float32(f); !math.IsInf(float64(short), 0) {
			want, err = json.Marshal(short)
			require.NoError(t, err)
			require.Equal(t, string(want), string(number.AppendFloat(nil, float64(short), 32)))
		}
	}
}

// What Append writes is the same number to encoding/json, and the same kind of
// number to Normalize.
func TestAppendKeepsTheKind(t *testing.T) {
	for _, n := range []any{
		0.0, math.Copysign(0, -1), 5.0, -5.5, 1e20, 1e21, 1e23, 1e-7, math.MaxFloat64, float64(1 << 63), float64(1 << 53),
		int64(5), int64(math.MinInt64), uint64(math.MaxUint64),
	} {
		checkKind(t, n)
	}
	require.Equal(t, "5.0", string(number.Append(nil, 5.0)))
	require.Equal(t, "1e+21", string(number.Append(nil, 1e21)))
}

func checkKind(t *testing.T, n any) {
	text := number.Append(nil, n)
	back, ok := number.Normalize(json.Number(text))
	require.True(t, ok, "%s", text)
	require.Equal(t, n, back, "%s", text)
	if f, isFloat := n.(float64); isFloat {
		require.Equal(t, math.Signbit(f), math.Signbit(back.(float64)), "%s", text)
		var decoded float64
		require.NoError(t, json.Unmarshal(text, &decoded))
		require.Equal(t, f, decoded)
	}
}

// Any text is refused, or is a number whose kind its spelling says and which
// does not change when it is written and read again.
func FuzzNormalize(f *testing.F) {
	for _, text := range []string{"", "0", "-0", "-0.0", "5", "5.0", "1e3", "1E+3", "9007199254740993", "9007199254740993.0", "18446744073709551615", "1e400", "1e-400", "0.1", "100000000000000000000", "01", "1."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := number.Normalize(json.Number(text))
		if !ok {
			return
		}
		require.True(t, number.IsValid(text))
		require.True(t, text == "" || json.Valid([]byte(text)))
		checkKind(t, n)
		if _, isFloat := n.(float64); isFloat && !strings.ContainsAny(text, ".eE") {
			_, noInt := strconv.ParseInt(text, 10, 64)
			_, noUint := strconv.ParseUint(text, 10, 64)
			require.Error(t, noInt, "an integer that fits is one")
			require.Error(t, noUint, "an integer that fits is one")
		}
	})
}
