package value_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/internal/value"
)

type (
	point struct{ X, Y int }
	base  struct {
		ID string `json:"id"`
	}
	Base struct {
		ID   string   `json:"id"`
		Tags []string `json:"tags,omitempty"`
	}
	document struct {
		Base
		Title  string            `json:"title"`
		Score  float64           `json:"score,omitempty"`
		Meta   map[string]string `json:"meta"`
		Next   *point            `json:"next"`
		Extra  any               `json:"extra"`
		Blob   []byte            `json:"blob"`
		At     time.Time         `json:"at,omitzero"`
		Points [2]point          `json:"points"`
	}
	byPointer struct {
		*Base
		N int
	}
	unexportedBase struct {
		base
		N int
	}
	node   struct{ Kids []node }
	circle *circle
	linked struct {
		Next *linked
		Val  any
	}
	mood    int
	secret  struct{ hidden []byte }
	cloner  struct{ list []int }
	grumpy  struct{ A int }
	stamped struct {
		time.Time
		Note string
	}
	// overrides embeds a coding type but codes itself.
	overrides struct {
		time.Time
		Note string
	}
	Tiny     struct{}
	labelled struct {
		Tiny
		Note string
	}
	writeOnly struct{ A int }
	thing     interface{ thing() }
	stone     struct{ text string }
	shadowed  struct {
		Base
		ID int `json:"id"`
	}
)

func (m mood) MarshalText() ([]byte, error) { return []byte([]string{"calm", "cross"}[m]), nil }
func (m *mood) UnmarshalText(b []byte) error {
	switch string(b) {
	case "calm":
		*m = 0
	case "cross":
		*m = 1
	default:
		return errors.New("no mood: " + string(b))
	}
	return nil
}
func (s secret) MarshalJSON() ([]byte, error)     { return json.Marshal(string(s.hidden)) }
func (s *secret) UnmarshalJSON(b []byte) error    { return json.Unmarshal(b, (*text)(&s.hidden)) }
func (c cloner) MarshalJSON() ([]byte, error)     { return json.Marshal(c.list) }
func (c *cloner) UnmarshalJSON(b []byte) error    { return json.Unmarshal(b, &c.list) }
func (c cloner) Clone() cloner                    { return cloner{append(make([]int, 0, 99), c.list...)} }
func (grumpy) MarshalJSON() ([]byte, error)       { panic("secret content") }
func (*grumpy) UnmarshalJSON([]byte) error        { return nil }
func (o overrides) MarshalJSON() ([]byte, error)  { return json.Marshal(o.Note) }
func (o *overrides) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &o.Note) }
func (writeOnly) MarshalJSON() ([]byte, error)    { return []byte(`{"written":1.0}`), nil }
func (Tiny) MarshalText() ([]byte, error)         { return nil, nil }
func (*Tiny) UnmarshalText([]byte) error          { return nil }
func (stone) thing()                              {}

type text []byte

func (t *text) UnmarshalText(b []byte) error { *t = append((*t)[:0], b...); return nil }

func init() {
	internal.OpaqueTypes = append(internal.OpaqueTypes, internal.OpaqueType{
		Type:   reflect.TypeFor[thing](),
		Encode: func(x any) ([]byte, error) { return json.Marshal(map[string]string{"stone": x.(stone).text}) },
		Decode: func(b []byte) (any, error) {
			var m map[string]string
			if err := json.Unmarshal(b, &m); err != nil || m["stone"] == "" {
				return nil, errors.New("no stone")
			}
			return stone{m["stone"]}, nil
		},
		Size: func(x any) (int, error) { return len(x.(stone).text), nil },
	})
	internal.RefusedTypes[reflect.TypeFor[standIn]()] = true
}

// twice is made here, since vet refuses to see it written down.
var twice = reflect.StructOf([]reflect.StructField{
	{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"a"`},
	{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"a"`},
})

func plan[T any](t testing.TB) *value.Plan {
	t.Helper()
	p, err := value.For(reflect.TypeFor[T]())
	require.NoError(t, err)
	return p
}

// of returns the reflect.Value of x as its static type.
func of[T any](x T) reflect.Value { return reflect.ValueOf(&x).Elem() }

func TestTypesThatCannotBeStored(t *testing.T) {
	for _, tt := range []struct {
		typ       reflect.Type
		path, got string
	}{
		{reflect.TypeFor[chan int](), "$", "chan int"},
		{reflect.TypeFor[func()](), "$", "func()"},
		{reflect.TypeFor[complex128](), "$", "complex128"},
		{reflect.TypeFor[uintptr](), "$", "uintptr"},
		{reflect.TypeFor[error](), "$", "interface error"},
		{reflect.TypeFor[struct {
			A []map[string]chan int `json:"a b"`
		}](), `$["a b"][][]`, "chan int"},
		{reflect.TypeFor[circle](), "$", "points to nothing but itself"},
		{reflect.TypeFor[map[string]circle](), "$[]", "points to nothing but itself"},
		{reflect.TypeFor[struct{ a int }](), "$", "unexported field a"},
		{reflect.TypeFor[struct {
			A int `json:"-"`
		}](), "$", "field A"},
		{reflect.TypeFor[struct{ *base }](), "$", "embedded pointer to the unexported"},
		{twice, "$", `JSON name "a"`},
		{reflect.TypeFor[shadowed](), "$", `JSON name "id"`},
		{reflect.TypeFor[struct {
			A int `json:",string"`
		}](), "$", "option string"},
		{reflect.TypeFor[map[float64]int](), "$", "keys of type float64"},
		{reflect.TypeFor[map[any]int](), "$", "keys of type interface"},
		{reflect.TypeFor[writeOnly](), "$", "only one of MarshalJSON"},
		{reflect.TypeFor[text](), "$", "only one of MarshalText"},
		{reflect.TypeFor[stamped](), "$", "other fields would be lost"},
		{reflect.TypeFor[labelled](), "$", "other fields would be lost"},
	} {
		_, err := value.For(tt.typ)
		var e *fault.Error
		require.ErrorAs(t, err, &e, tt.typ)
		require.Equal(t, tt.path, e.Path, tt.typ)
		require.Contains(t, e.Got, tt.got)
	}
	_, err := value.For(nil)
	require.Error(t, err)
}

func TestPlanOfTypes(t *testing.T) {
	for _, tt := range []struct {
		plan      *value.Plan
		describe  string
		immutable bool
	}{
		{plan[bool](t), "boolean", true},
		{plan[uint8](t), "integer", true},
		{plan[float32](t), "number", true},
		{plan[time.Duration](t), "integer", true},
		{plan[json.Number](t), "number", true},
		{plan[string](t), "string", true},
		{plan[mood](t), "string", true},
		{plan[time.Time](t), "date", true},
		{plan[point](t), "object", true},
		{plan[[2]point](t), "list of object", true},
		{plan[[]point](t), "list of object", false},
		{plan[struct{ P *int }](t), "object", false},
		{plan[[]byte](t), "string", false},
		{plan[map[string]int](t), "object", false},
		{plan[any](t), "any", false},
		{plan[[]any](t), "list of any", false},
		{plan[thing](t), "object", true},
		{plan[secret](t), "any", false},
		{plan[overrides](t), "any", true},
	} {
		require.Equal(t, tt.describe, tt.plan.Describe(), tt.plan.Type())
		require.Equal(t, tt.immutable, tt.plan.Immutable(), tt.plan.Type())
	}
	require.Same(t, plan[document](t), plan[document](t))
}

func TestForIsConcurrent(t *testing.T) {
	type fresh struct{ A, B []document }
	var wg sync.WaitGroup
	plans := make([]*value.Plan, 8)
	for i := range plans {
		wg.Go(func() { plans[i], _ = value.For(reflect.TypeFor[fresh]()) })
	}
	wg.Wait()
	for _, p := range plans {
		require.Same(t, plans[0], p)
	}
}

func TestCheck(t *testing.T) {
	huge := strings.Repeat("x", 64<<20)
	deep := any(1)
	for range 100_000 {
		deep = []any{deep}
	}
	cyclicMap := map[string]any{"z": 1}
	cyclicMap["a"], cyclicMap["b"] = cyclicMap, cyclicMap
	cyclicList := []any{nil}
	cyclicList[0] = cyclicList
	var pointers any
	pointers = &pointers
	loop := &linked{}
	loop.Next, loop.Val = loop, loop

	for _, tt := range []struct {
		name  string
		value any
		lim   value.Limits
		path  string
		want  string // or the name of the limit
	}{
		{"NaN", []float64{0, math.NaN()}, value.Limits{}, "$[1]", "a finite number"},
		{"infinity", struct{ F float32 }{float32(math.Inf(1))}, value.Limits{}, "$.F", "a finite number"},
		{"UTF-8", map[string][]string{"a": {"\xff"}}, value.Limits{}, "$.a[0]", "valid UTF-8"},
		{"key", map[string]int{"\xff": 1}, value.Limits{}, "$", "valid UTF-8"},
		{"surrogate", "\xed\xa0\x80", value.Limits{}, "$", "valid UTF-8"},
		{"number", json.Number("0x1"), value.Limits{}, "$", "a number"},
		{"year", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), value.Limits{}, "$", "a year from 0 to 9999"},
		{"raw", json.RawMessage(`{"a":1,"a":2}`), value.Limits{}, "$", "JSON written by json.RawMessage"},
		{"panic", grumpy{}, value.Limits{}, "$", "value_test.grumpy that can be written"},
		{"mood", []mood{0, 7}, value.Limits{}, "$[1]", "value_test.mood that can be written"},
		{"any", []any{1, json.Number("1e400")}, value.Limits{}, "$[1]", "a number that int64, uint64 or float64 holds"},
		{"any big", []any{big.NewInt(0).Exp(big.NewInt(7), big.NewInt(90), nil)}, value.Limits{}, "$[0]", "a number that int64, uint64 or float64 holds"},
		{"any chan", map[string]any{"x": make(chan int)}, value.Limits{}, "$.x", "a value that can be stored"},
		{"bytes", huge, value.Limits{Bytes: 1 << 20}, "$", "ValueBytes"},
		{"bytes of many", make([]int, 1<<20), value.Limits{Bytes: 1 << 20}, "$", "ValueBytes"},
		{"bytes inside", map[string]any{"a": []string{"b", huge}}, value.Limits{Bytes: 1 << 20}, "$.a[1]", "ValueBytes"},
		{"depth", [][]int{{1}}, value.Limits{Depth: 1}, "$[0]", "Depth"},
		{"depth of text", []json.RawMessage{json.RawMessage(`[[]]`)}, value.Limits{Depth: 2}, "$[0]", "Depth"},
		{"depth of any", []any{[]any{}}, value.Limits{Depth: 1}, "$[0]", "Depth"},
		{"deep", deep, value.Limits{}, "", "Depth"},
		{"cyclic map", cyclicMap, value.Limits{}, "", "Depth"},
		{"cyclic list", cyclicList, value.Limits{}, "", "Depth"},
		{"cyclic pointer", pointers, value.Limits{}, "", "Depth"},
		{"cyclic struct", loop, value.Limits{}, "", "Depth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			verify := func(err error) {
				t.Helper()
				var wrong *fault.Error
				var limit *fault.LimitError
				switch {
				case errors.As(err, &wrong):
					require.Equal(t, tt.want, wrong.Want)
					require.Equal(t, tt.path, wrong.Path)
				case errors.As(err, &limit):
					require.Equal(t, tt.want, limit.Name)
					require.Greater(t, limit.Got, limit.Limit)
					require.Less(t, len(limit.Path), 1000)
					if tt.path != "" {
						require.Equal(t, tt.path, limit.Path)
					}
				default:
					require.Fail(t, "no error", "%v", err)
				}
				require.NotContains(t, err.Error(), "secret content")
			}
			_, _, err := value.Normalise(tt.value, tt.lim)
			verify(err)
			p, err := value.For(reflect.TypeOf(tt.value))
			if err != nil {
				return // only readable
			}
			_, err = p.Check(reflect.ValueOf(tt.value), tt.lim)
			verify(err)
			_, _, err = p.Copy(reflect.ValueOf(tt.value), tt.lim)
			verify(err)
		})
	}
}

func TestErrorsAreTheSameEveryTime(t *testing.T) {
	bad := map[string]any{}
	for _, name := range strings.Split("hgfedcba", "") {
		bad[name] = map[string]float64{name: math.NaN(), "zz": math.NaN()}
	}
	for range 20 {
		_, _, err := value.Normalise(bad, value.Limits{})
		require.ErrorContains(t, err, "$.a.a:")
		_, _, err = plan[map[string]map[string]int](t).Convert(map[string]any{"b": "x", "c": 1, "a": true}, value.Limits{})
		require.ErrorContains(t, err, "$.a:")
	}
}

func TestLimitsAreInclusive(t *testing.T) {
	v := of(map[string][]int{"a": {1, 2}})
	p := plan[map[string][]int](t)
	size, err := p.Check(v, value.Limits{Depth: 2})
	require.NoError(t, err)
	_, err = p.Check(v, value.Limits{Bytes: size})
	require.NoError(t, err)
	_, err = p.Check(v, value.Limits{Bytes: size - 1})
	require.Error(t, err)
	for _, p := range []*value.Plan{plan[int](t), plan[string](t)} {
		_, err = p.Check(reflect.Zero(p.Type()), value.Limits{Bytes: 1})
		require.Error(t, err, p.Type())
	}
	size, err = plan[string](t).Check(of("1234"), value.Limits{Bytes: 6})
	require.NoError(t, err)
	require.Equal(t, 6, size)
}

func TestConvert(t *testing.T) {
	instant := time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, tt := range []struct {
		src, want any // the type of want is the target
	}{
		{3.0, 3}, {int8(3), uint64(3)}, {uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{json.Number("3.0"), 3}, {json.Number("3e2"), int16(300)}, {json.Number("0.3e1"), 3},
		{json.Number("9223372036854775807"), int64(math.MaxInt64)},
		{json.Number("-9223372036854775808"), int64(math.MinInt64)},
		{json.Number("18446744073709551615"), uint64(math.MaxUint64)},
		{json.Number("9007199254740993.0"), int64(9007199254740993)},
		{int64(1 << 53), float64(1 << 53)}, {json.Number("9007199254740992"), float64(1 << 53)},
		{json.Number("1e30"), 1e30}, {json.Number("36893488147419103232"), float64(1 << 65)},
		{json.Number("36893488147419103000"), float64(1 << 65)}, {json.Number("0.1"), float32(0.1)}, {0.1, float32(0.1)},
		{float32(0.5), 0.5}, {3, json.Number("3")}, {json.Number("1.50"), json.Number("1.50")},
		{time.Duration(5), 5}, {5, time.Duration(5)},
		{[]any{"a", "b"}, []string{"a", "b"}}, {"a", []string{"a"}}, {[]any{}, []string{}}, {nil, []string{}},
		{[2]int{1, 2}, []int64{1, 2}}, {[]int{1, 2}, [2]uint8{1, 2}},
		{map[string]any{"X": 1.0}, []point{{X: 1}}}, {map[string]any{"X": 1}, point{X: 1}},
		{point{1, 2}, map[string]int{"X": 1, "Y": 2}}, {&point{1, 2}, point{1, 2}}, {point{1, 2}, &point{1, 2}},
		{nil, map[string]int{}}, {nil, (*point)(nil)}, {nil, []byte{}},
		{map[int]string{-1: "a"}, map[string]string{"-1": "a"}}, {map[string]any{"-1": "a"}, map[int8]string{-1: "a"}},
		{map[mood]int{1: 2}, map[string]any{"cross": int64(2)}}, {map[string]int{"cross": 2}, map[mood]int{1: 2}},
		{"2025-01-02T03:04:05.000000006Z", instant}, {instant, "2025-01-02T03:04:05.000000006Z"},
		{"cross", mood(1)}, {mood(1), "cross"}, {"cross", []mood{1}},
		{"aGk=", []byte("hi")}, {[]byte("hi"), "aGk="}, {"aGk=", [][]byte{[]byte("hi")}},
		{json.RawMessage(`{"X":1,"Y":2}`), point{1, 2}}, {point{1, 2}, json.RawMessage(`{"X":1,"Y":2}`)},
		{writeOnly{}, map[string]float64{"written": 1}}, {[]writeOnly{{}}, []any{map[string]any{"written": 1.0}}},
		{json.Number("123456789012345678901234567890"), mustBig("123456789012345678901234567890")},
		{map[string]any{"id": "a", "N": 1}, byPointer{&Base{ID: "a"}, 1}}, {map[string]any{"N": 1}, byPointer{nil, 1}},
		{map[string]any{"id": "a", "N": 1}, unexportedBase{base{"a"}, 1}},
		{map[string]any{"stone": "a"}, []thing{stone{"a"}}}, {[]any{stone{"b"}}, []thing{stone{"b"}}},
		{[]stone{{"c"}}, []any{map[string]any{"stone": "c"}}},
	} {
		p, err := value.For(reflect.TypeOf(tt.want))
		require.NoError(t, err)
		got, size, err := p.Convert(tt.src, value.Limits{Depth: 9, Bytes: 999})
		require.NoError(t, err, "%T %v", tt.src, tt.src)
		require.Equal(t, tt.want, got.Interface())
		checked, err := p.Check(got, value.Limits{})
		require.NoError(t, err)
		require.Equal(t, checked, size)
	}
}

func mustBig(s string) *big.Int { n, _ := new(big.Int).SetString(s, 10); return n }

func TestConvertRefuses(t *testing.T) {
	for _, tt := range []struct {
		src  any
		to   reflect.Type
		path string
		got  string
	}{
		{3.5, reflect.TypeFor[int](), "$", "a number it cannot hold"},
		{300, reflect.TypeFor[uint8](), "$", "a number it cannot hold"},
		{-1, reflect.TypeFor[uint](), "$", "a number it cannot hold"},
		{float64(1 << 63), reflect.TypeFor[int64](), "$", "a number it cannot hold"},
		{float64(1 << 64), reflect.TypeFor[uint64](), "$", "a number it cannot hold"},
		{json.Number("9223372036854775808"), reflect.TypeFor[int64](), "$", "a number it cannot hold"},
		{json.Number("18446744073709551616"), reflect.TypeFor[uint64](), "$", "a number it cannot hold"},
		{int64(1<<53 + 1), reflect.TypeFor[float64](), "$", "a number it cannot hold"},
		{json.Number("9007199254740993"), reflect.TypeFor[float64](), "$", "a number it cannot hold"},
		{json.Number("9007199254740993.0"), reflect.TypeFor[float64](), "$", "a number it cannot hold"},
		{json.Number("1e400"), reflect.TypeFor[float64](), "$", "a number it cannot hold"},
		{json.Number("1e-400"), reflect.TypeFor[float64](), "$", "a number it cannot hold"},
		{json.Number("1e99999999999999999999"), reflect.TypeFor[int](), "$", "a number it cannot hold"},
		{1e300, reflect.TypeFor[float32](), "$", "a number it cannot hold"},
		{0.123456789, reflect.TypeFor[float32](), "$", "a number it cannot hold"},
		{true, reflect.TypeFor[int](), "$", "boolean"}, {1, reflect.TypeFor[bool](), "$", "number"},
		{1, reflect.TypeFor[string](), "$", "number"}, {"1", reflect.TypeFor[int](), "$", "string"},
		{"1", reflect.TypeFor[json.Number](), "$", "string"}, {json.Number("1"), reflect.TypeFor[string](), "$", "number"},
		{nil, reflect.TypeFor[string](), "$", "null"}, {nil, reflect.TypeFor[point](), "$", "null"},
		{nil, reflect.TypeFor[time.Time](), "$", "null"}, {nil, reflect.TypeFor[thing](), "$", "null"},
		{nil, reflect.TypeFor[[2]int](), "$", "null"},
		{[]any{1, nil}, reflect.TypeFor[[]int](), "$[1]", "null"},
		{[]byte("a"), reflect.TypeFor[[]string](), "$", "string"},
		{"a", reflect.TypeFor[[][]string](), "$", "string"},
		{[]any{1}, reflect.TypeFor[[2]int](), "$", "a list of 1"},
		{map[string]any{"x": 1}, reflect.TypeFor[point](), "$.x", "an unknown one"},
		{map[string]any{"X": "1"}, reflect.TypeFor[[]point](), "$.X", "string"},
		{map[string]any{"points": []any{1}}, reflect.TypeFor[document](), "$.points", "a list of 1"},
		{map[string]any{"extra": []any{json.Number("1e400")}}, reflect.TypeFor[document](), "$.extra[0]", "another number"},
		{"2025-01-02", reflect.TypeFor[time.Time](), "$", "other text"},
		{"sad", reflect.TypeFor[mood](), "$", "another string"},
		{map[string]any{"sad": 1}, reflect.TypeFor[map[mood]int](), "$.sad", "another"},
		{map[string]any{"1": 1, "01": 1}, reflect.TypeFor[map[int]int](), "$[\"1\"]", "the same key again"},
		{map[string]any{"300": 1}, reflect.TypeFor[map[uint8]int](), "$[\"300\"]", "another"},
		{map[string]any{"wood": "a"}, reflect.TypeFor[thing](), "$", "another object"},
		{"a!", reflect.TypeFor[[]byte](), "$", "other text"},
		{"\xff", reflect.TypeFor[string](), "$", "other bytes"}, {[]any{"\xff"}, reflect.TypeFor[[]string](), "$[0]", "other bytes"},
	} {
		p, err := value.For(tt.to)
		require.NoError(t, err)
		_, _, err = p.Convert(tt.src, value.Limits{})
		var e *fault.Error
		require.ErrorAs(t, err, &e, "%T %v to %s", tt.src, tt.src, tt.to)
		require.Equal(t, tt.path, e.Path, "%v to %s", tt.src, tt.to)
		require.Equal(t, tt.got, e.Got, "%v to %s", tt.src, tt.to)
	}
}

func TestConvertKeepsLimits(t *testing.T) {
	var limit *fault.LimitError
	_, _, err := plan[[]int](t).Convert(make([]any, 1<<20), value.Limits{Bytes: 1 << 20})
	require.ErrorAs(t, err, &limit)
	_, _, err = plan[[]point](t).Convert([]any{map[string]any{}}, value.Limits{Bytes: 10})
	require.ErrorAs(t, err, &limit, "the result is larger than the source")
	_, _, err = plan[[]string](t).Convert("a", value.Limits{Depth: 0, Bytes: 3})
	require.ErrorAs(t, err, &limit)
	cyclic := map[string]any{}
	cyclic["a"] = cyclic
	_, _, err = plan[document](t).Convert(cyclic, value.Limits{})
	require.ErrorAs(t, err, &limit)
	_, _, err = plan[json.RawMessage](t).Convert(cyclic, value.Limits{})
	require.ErrorAs(t, err, &limit)
}

func TestNormalise(t *testing.T) {
	instant := time.Date(2025, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	odd := time.Date(1900, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 1172))
	for _, tt := range []struct{ src, want any }{
		{nil, nil}, {true, true}, {"a", "a"}, {int8(1), int64(1)}, {uint64(1), int64(1)},
		{uint64(math.MaxUint64), uint64(math.MaxUint64)}, {3.0, 3.0}, {3.5, 3.5}, {math.Copysign(0, -1), math.Copysign(0, -1)},
		{float64(1 << 63), float64(1 << 63)}, {float64(1 << 64), float64(1 << 64)}, {-float64(1 << 63), -float64(1 << 63)},
		{float32(0.5), 0.5}, {json.Number("-0.0"), math.Copysign(0, -1)}, {json.Number("1e3"), 1000.0}, {json.Number(""), int64(0)},
		{json.Number("14836394043272784000"), uint64(14836394043272784000)}, {json.Number("0.1"), 0.1},
		{mood(1), "cross"}, {time.Duration(7), int64(7)}, {[]byte("hi"), "aGk="},
		{instant, "2025-01-02T03:04:05.000000006+01:00"}, {odd, "1899-12-31T23:40:28Z"},
		{[]int(nil), []any{}}, {map[string]int(nil), map[string]any{}}, {(*point)(nil), nil}, {&point{1, 2}, map[string]any{"X": int64(1), "Y": int64(2)}},
		{map[int]any{1: nil}, map[string]any{"1": nil}}, {[]any{[]string{"a"}, point{}}, []any{[]any{"a"}, map[string]any{"X": int64(0), "Y": int64(0)}}},
		{json.RawMessage(`{"a":[1.0,2.5]}`), map[string]any{"a": []any{1.0, 2.5}}}, {json.RawMessage(nil), nil},
		{node{[]node{{}, {}}}, map[string]any{"Kids": []any{map[string]any{"Kids": []any{}}, map[string]any{"Kids": []any{}}}}},
		{linked{Val: 2.0}, map[string]any{"Next": nil, "Val": 2.0}}, {stone{"a"}, map[string]any{"stone": "a"}},
		{struct{ E error }{}, map[string]any{"E": nil}},
	} {
		got, _, err := value.Normalise(tt.src, value.Limits{})
		require.NoError(t, err, "%T", tt.src)
		require.Equal(t, tt.want, got, "%T", tt.src)
		v, _, err := plan[any](t).Convert(tt.src, value.Limits{})
		require.NoError(t, err)
		require.Equal(t, tt.want, v.Interface(), "%T", tt.src)
		if tt.src != nil {
			v, _, err = plan[[]any](t).Copy(of([]any{tt.src}), value.Limits{})
			require.NoError(t, err)
			require.Equal(t, []any{tt.want}, v.Interface(), "%T", tt.src)
			require.True(t, plan[any](t).Equal(of(tt.src), of(tt.want)), "%T", tt.src)
		}
	}
	for _, bad := range []any{json.Number("18446744073709551617"), json.Number("1e400"), json.Number("01"), errors.New("x"), complex(1, 2)} {
		_, _, err := value.Normalise(bad, value.Limits{})
		require.Error(t, err, "%v", bad)
	}
}

func TestAppendJSON(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"<&>\n\u2028", "\"<&>\\n\u2028\""}, {[]string(nil), `[]`}, {map[string]int(nil), `{}`}, {(*int)(nil), `null`},
		{map[string]int{"b": 1, "a": 2}, `{"a":2,"b":1}`}, {map[int]int{10: 1, 9: 2}, `{"10":1,"9":2}`},
		{1e21, `1e+21`}, {1e-7, `1e-7`}, {1.5e-10, `1.5e-10`}, {float32(0.1), `0.1`}, {math.Copysign(0, -1), `-0`}, {int64(math.MaxInt64), `9223372036854775807`},
		{Base{ID: "a"}, `{"id":"a"}`}, {byPointer{N: 1}, `{"N":1}`}, {json.RawMessage(" {\"b\" : 1, \"a\": 2 } "), `{"b":1,"a":2}`},
		{struct {
			A time.Time `json:",omitzero"`
			B []int     `json:",omitzero"`
			C *int      `json:",omitempty"`
			D any       `json:",omitempty"`
			E point     `json:",omitempty"`
		}{B: []int{}}, `{"B":[],"E":{"X":0,"Y":0}}`},
		{[]byte(nil), `""`}, {json.Number(""), `0`}, {[]thing{stone{"a"}}, `[{"stone":"a"}]`},
	} {
		p, err := value.For(reflect.TypeOf(tt.value))
		require.NoError(t, err)
		got, err := p.AppendJSON([]byte("x"), reflect.ValueOf(tt.value))
		require.NoError(t, err)
		require.Equal(t, "x"+tt.want, string(got))
	}
}

func TestEqual(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		a, b any
		want bool
	}{
		{[]int(nil), []int{}, true}, {[]int{1}, []int{2}, false}, {map[string]int(nil), map[string]int{}, true},
		{map[string]int{"a": 1}, map[string]int{"b": 1}, false}, {now, now.UTC().Round(0), true}, {now, now.Add(1), false},
		{[]any{1}, []any{1.0}, false}, {[]any{1}, []any{uint8(1)}, true}, {[]any{1.0}, []any{json.Number("1e0")}, true}, {[]any{1}, []any{"1"}, false}, {[]any{[]string{}}, []any{[]any{}}, true},
		{new(int), (*int)(nil), false}, {new(*int), (**int)(nil), true}, {&point{1, 2}, &point{1, 2}, true}, {point{1, 2}, point{1, 3}, false},
		{json.RawMessage(`{"a":1,"b":2}`), json.RawMessage(`{"b":2, "a":1}`), true}, {json.RawMessage(`1`), json.RawMessage(`2`), false},
		{[]byte("a"), []byte("b"), false}, {byPointer{&Base{}, 1}, byPointer{nil, 1}, false}, {[]thing{stone{"a"}}, []thing{stone{"b"}}, false},
		{netip.MustParseAddr("::1"), netip.MustParseAddr("::1"), true}, {mood(0), mood(1), false}, {"a", "b", false}, {1.5, 2.5, false},
	} {
		p, err := value.For(reflect.TypeOf(tt.a))
		require.NoError(t, err)
		require.Equal(t, tt.want, p.Equal(reflect.ValueOf(tt.a), reflect.ValueOf(tt.b)), "%v %v", tt.a, tt.b)
	}
}

func TestClone(t *testing.T) {
	v := of([]cloner{{[]int{1}}})
	c := plan[[]cloner](t).Clone(v)
	require.Equal(t, 99, cap(c.Index(0).Interface().(cloner).list), "by its method")
	s := secret{[]byte("abc")}
	kept := plan[secret](t).Clone(of(s)).Interface().(secret)
	s.hidden[0] = 'x'
	require.Equal(t, "abc", string(kept.hidden), "by its JSON")
	p := point{1, 2}
	flat := plan[point](t).Clone(reflect.ValueOf(&p).Elem())
	p.X = 9
	require.Equal(t, point{1, 2}, flat.Interface(), "of what can be assigned to")
}

func TestScalarsCostNothing(t *testing.T) {
	lim := value.Limits{Bytes: 1 << 10, Depth: 64}
	for _, x := range []any{"a string", 1, true, uint16(7), 1.5} {
		p, err := value.For(reflect.TypeOf(x))
		require.NoError(t, err)
		v := reflect.ValueOf(x)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_, _, _ = p.Copy(v, lim)
			p.Clone(v)
		}), "%T", x)
	}
}

type standIn struct{}

func (standIn) MarshalJSON() ([]byte, error) { return []byte(`"…"`), nil }

func TestRefusedTypesAreNotStoredNorRead(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[standIn](), reflect.TypeFor[*standIn](), reflect.TypeFor[[]standIn]()} {
		_, err := value.For(typ)
		require.Error(t, err, typ)
	}
	for _, v := range []any{standIn{}, &standIn{}, []any{standIn{}}, map[string]any{"a": standIn{}}, struct{ A any }{standIn{}}} {
		_, _, err := value.Normalise(v, value.Limits{})
		require.Error(t, err, "%T", v)
	}
}

// Lists of strings and numbers are measured without a walk.
func TestShortAndLongWaysToMeasureListsAgree(t *testing.T) {
	check := func(t *rapid.T, v any, limits value.Limits) {
		plan, err := value.For(reflect.TypeOf(v))
		require.NoError(t, err)
		size, err := plan.Check(reflect.ValueOf(v), limits)
		outer := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(v)), 1, 1) // a list of lists is walked
		outer.Index(0).Set(reflect.ValueOf(v))
		outerPlan, outerErr := value.For(outer.Type())
		require.NoError(t, outerErr)
		if limits.Bytes > 0 {
			limits.Bytes += 3
		}
		outerSize, outerErr := outerPlan.Check(outer, limits)
		require.Equal(t, outerErr == nil, err == nil)
		if err == nil {
			require.Equal(t, outerSize, size+3)
		}
	}
	property.Check(t, func(t *rapid.T) {
		limits := value.Limits{Bytes: rapid.IntRange(0, 60).Draw(t, "bytes")}
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "\xff", "é"}))
		check(t, rapid.SliceOfN(text, 0, 5).Draw(t, "strings"), limits)
		check(t, rapid.SliceOfN(rapid.Int(), 0, 8).Draw(t, "ints"), limits)
		check(t, rapid.SliceOfN(rapid.Bool(), 0, 8).Draw(t, "bools"), limits)
		check(t, [3]int8{}, limits)
	})
}
