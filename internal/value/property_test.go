package value_test

import (
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/internal/value"
)

// everything has one field for each kind of part.
type everything struct {
	Base
	B     bool
	I8    int8
	U64   uint64
	F32   float32
	F64   float64 `json:",omitempty"`
	S     string  `json:"a name - with marks,omitempty"`
	Num   json.Number
	List  [][]string
	Array [2][]int
	Map   map[string][]point
	Ints  map[int16]*string
	Moods map[mood]any
	Addrs map[netip.Addr]uint8
	Ptr   *Base
	Any   any
	Anys  []any
	Blob  []byte
	Raw   json.RawMessage
	At    time.Time `json:",omitzero"`
	Own   secret
	Clone cloner
	Big   *big.Int
	Mood  mood
	Thing thing
	Cross overrides
}

var representative = []reflect.Type{
	reflect.TypeFor[everything](), reflect.TypeFor[[]everything](), reflect.TypeFor[*everything](), reflect.TypeFor[document](),
	reflect.TypeFor[byPointer](), reflect.TypeFor[unexportedBase](), reflect.TypeFor[any](), reflect.TypeFor[[]any](),
	reflect.TypeFor[map[string]any](), reflect.TypeFor[float64](), reflect.TypeFor[float32](), reflect.TypeFor[int64](),
	reflect.TypeFor[uint64](), reflect.TypeFor[string](), reflect.TypeFor[time.Time](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[**int](), reflect.TypeFor[map[uint]map[string]*[]byte](), reflect.TypeFor[[]mood](), reflect.TypeFor[[]thing](),
}

var (
	texts  = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "<&>\u2028", "\x00\"\\", "😀", "$.a[0]", "null", "1"}))
	floats = rapid.OneOf(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 0.1, 3,
		1 << 53, 1<<53 + 2, 1 << 60, 1 << 63, 1 << 64, 1 << 65, 1e20, 1e21, 1e30, 1e-7, 5e-324, math.MaxFloat64, -(1 << 63)}))
	float32s = rapid.OneOf(rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32), rapid.SampledFrom([]float32{0.1, 1e21, 1e-7, 1 << 25, math.SmallestNonzeroFloat32}))
	numbers  = rapid.SampledFrom([]json.Number{"", "0", "-0.0", "1.50", "1e3", "9007199254740993", "9007199254740993.0", "18446744073709551615", "1e30", "0.1"})
)

// normalised draws what Normalise accepts and, mostly, returns.
func normalised(t *rapid.T, depth int) any {
	n := 10
	if depth == 0 {
		n = 8
	}
	switch rapid.IntRange(0, n-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Int64().Draw(t, "int")
	case 3:
		return rapid.Uint64().Draw(t, "uint")
	case 4:
		return floats.Draw(t, "float")
	case 5:
		return numbers.Draw(t, "number")
	case 6, 7:
		return texts.Draw(t, "text")
	case 8:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "len"))
		for i := range list {
			list[i] = normalised(t, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			object[texts.Draw(t, "name")] = normalised(t, depth-1)
		}
		return object
	}
}

// fill sets v to something its plan can store.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *any:
		*p = normalised(t, min(depth, 2))
		return
	case *json.Number:
		*p = numbers.Draw(t, "number")
		return
	case *json.RawMessage:
		text, err := json.Marshal(normalised(t, 2))
		require.NoError(t, err)
		*p = rapid.SampledFrom([]json.RawMessage{nil, text, []byte(` { "b":1.0, "a":[ ] } `)}).Draw(t, "raw")
		return
	case *time.Time:
		zone := time.FixedZone("", rapid.SampledFrom([]int{0, 3600, -5400, 1172, 90000}).Draw(t, "zone"))
		*p = time.Unix(rapid.Int64Range(-62135000000, 253370000000).Draw(t, "sec"), rapid.Int64Range(0, 999999999).Draw(t, "nsec")).In(zone)
		return
	case *secret:
		p.hidden = []byte(texts.Draw(t, "secret"))
		return
	case *cloner:
		p.list = rapid.SliceOfN(rapid.Int(), 0, 3).Draw(t, "cloner")
		return
	case *big.Int:
		p.SetString(strconv.FormatUint(rapid.Uint64().Draw(t, "big"), 10)+"00000000000000000000", 10)
		return
	case *mood:
		*p = mood(rapid.IntRange(0, 1).Draw(t, "mood"))
		return
	case *netip.Addr:
		*p = netip.AddrFrom4([4]byte{127, 0, 0, rapid.Byte().Draw(t, "addr")})
		return
	case *thing:
		*p = stone{"a" + texts.Draw(t, "stone")}
		return
	case *overrides:
		p.Note = texts.Draw(t, "note")
		return
	case *float64:
		*p = floats.Draw(t, "float64")
		return
	case *float32:
		*p = float32s.Draw(t, "float32")
		return
	}
	if depth == 0 && v.Kind() != reflect.Struct && v.Kind() != reflect.Array {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.String:
		v.SetString(texts.Draw(t, "string"))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int") >> (64 - v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint") >> (64 - v.Type().Bits()))
	case reflect.Slice:
		if n := rapid.IntRange(-1, 3).Draw(t, "len"); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n+1))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth-1)
		}
	case reflect.Map:
		n := rapid.IntRange(-1, 3).Draw(t, "len")
		if n >= 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
		for range n {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth)
			fill(t, elem, depth-1)
			v.SetMapIndex(key, elem)
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "pointer") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(t, f, depth-1)
			} else {
				fill(t, f.Field(0), depth) // base
			}
		}
	default:
		t.Fatalf("cannot fill %s", v.Type())
	}
}

// spoil changes all memory that v, but not a copy of it, can reach.
func spoil(v reflect.Value) {
	if v.CanAddr() && v.Addr().CanInterface() {
		switch p := v.Addr().Interface().(type) {
		case *secret:
			for i := range p.hidden {
				p.hidden[i] ^= 1
			}
			return
		case *cloner:
			for i := range p.list {
				p.list[i]++
			}
			return
		case *big.Int:
			for i := range p.Bits() {
				p.Bits()[i] ^= 1
			}
			return
		}
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spoil(v.Index(i))
			if v.Kind() == reflect.Slice {
				v.Index(i).SetZero()
			}
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			spoil(iter.Value())
		}
		v.Clear()
	case reflect.Pointer:
		if !v.IsNil() {
			spoil(v.Elem())
			v.Elem().SetZero()
		}
	case reflect.Interface:
		if !v.IsNil() && v.NumMethod() == 0 {
			spoil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != reflect.TypeFor[time.Time]() && v.Type() != reflect.TypeFor[overrides]() {
				spoil(v.Field(i))
			}
		}
	}
}

func drawn(t *rapid.T) (*value.Plan, reflect.Value) {
	typ := rapid.SampledFrom(representative).Draw(t, "type")
	p, err := value.For(typ)
	require.NoError(t, err)
	v := reflect.New(typ).Elem()
	fill(t, v, 4)
	return p, v
}

func jsonOf(t require.TestingT, p *value.Plan, v reflect.Value) string {
	text, err := p.AppendJSON(nil, v)
	require.NoError(t, err)
	return string(text)
}

func decode(t require.TestingT, text string) any {
	x, err := jsontext.Decode([]byte(text), jsontext.Limits{})
	require.NoError(t, err, "%s", text)
	return x
}

func TestCopiesAreIsolated(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		p, v := drawn(t)
		stored, _, err := p.Copy(v, value.Limits{})
		require.NoError(t, err)
		require.True(t, p.Equal(v, stored))
		text := jsonOf(t, p, stored)

		spoil(v)
		require.Equal(t, text, jsonOf(t, p, stored), "the original changed its copy")

		out := p.Clone(stored)
		require.Equal(t, text, jsonOf(t, p, out))
		spoil(out)
		require.Equal(t, text, jsonOf(t, p, stored), "the clone changed its original")
	})
}

func TestRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		p, v := drawn(t)
		stored, size, err := p.Copy(v, value.Limits{})
		require.NoError(t, err)
		checked, err := p.Check(stored, value.Limits{})
		require.NoError(t, err)
		text := jsonOf(t, p, stored)
		require.Equal(t, size, checked)
		require.LessOrEqual(t, checked, 16*len(text), "the size is about the length of the JSON")
		require.GreaterOrEqual(t, 16*checked, len(text))

		read, _, err := p.Convert(decode(t, text), value.Limits{})
		require.NoError(t, err, "%s", text)
		require.True(t, p.Equal(stored, read), "%s", text)
		require.True(t, p.Equal(read, stored))
		if p.Type() != reflect.TypeFor[json.RawMessage]() { // keeps its spelling only in memory
			again, _, err := p.Convert(decode(t, jsonOf(t, p, read)), value.Limits{})
			require.NoError(t, err)
			require.Equal(t, jsonOf(t, p, read), jsonOf(t, p, again))
		}
	})
}

func TestConversionsAreIsolated(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		p, v := drawn(t)
		for _, target := range []reflect.Type{p.Type(), reflect.PointerTo(p.Type()), reflect.SliceOf(p.Type()), reflect.TypeFor[any]()} {
			to, err := value.For(target)
			require.NoError(t, err)
			if v.Kind() == reflect.Interface && v.IsNil() {
				continue
			}
			c := p.Clone(v)
			got, size, err := to.Convert(c.Interface(), value.Limits{})
			if err != nil { // a list makes no list of lists, a float no float32
				continue
			}
			checked, err := to.Check(got, value.Limits{})
			require.NoError(t, err)
			require.Equal(t, checked, size)
			text := jsonOf(t, to, got)
			spoil(c)
			require.Equal(t, text, jsonOf(t, to, got))
		}
	})
}

func TestNormalisedIsStable(tb *testing.T) {
	property.Check(tb, func(t *rapid.T) {
		x, size, err := value.Normalise(normalised(t, 3), value.Limits{})
		require.NoError(t, err)
		again, sizeAgain, err := value.Normalise(x, value.Limits{})
		require.NoError(t, err)
		require.Equal(t, x, again)
		require.Equal(t, size, sizeAgain)

		p := plan[any](tb)
		text := jsonOf(t, p, of(x))
		read, sizeRead, err := p.Convert(decode(t, text), value.Limits{})
		require.NoError(t, err)
		require.Equal(t, size, sizeRead)
		require.Equal(t, x, read.Interface(), "live is not what is reloaded")
	})
}

// Every struct in an any field becomes what its JSON says.
func TestNormalisedIsItsJSON(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		p, v := drawn(t)
		if d, ok := v.Addr().Interface().(*document); ok {
			d.Score = 0.1
		}
		if p.Type() == reflect.TypeFor[float32]() || p.Type() == reflect.TypeFor[float64]() || p.Type() == reflect.TypeFor[everything]() ||
			p.Type().Kind() == reflect.Pointer || p.Type() == reflect.TypeFor[[]everything]() {
			t.Skip("floats keep their exact value, a big.Int may not fit")
		}
		got, _, err := value.Normalise(v.Interface(), value.Limits{})
		require.NoError(t, err)
		stored, _, err := p.Copy(v, value.Limits{})
		require.NoError(t, err)
		want, _, err := value.Normalise(decode(t, jsonOf(t, p, stored)), value.Limits{})
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func FuzzConvert(f *testing.F) {
	for _, seed := range []string{`null`, `{"id":"a","score":1e3,"meta":{},"next":null,"extra":[18446744073709551615],"blob":"aGk=","points":[{},{}]}`,
		`[1.0,-0,0.1e1,9007199254740993,1e400,123456789012345678901]`, `{"at":"2025-01-02T03:04:05+23:59"}`, `{"tags":"a","title":"\ud83d\ude00"}`, `[[[]]]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := jsontext.Decode(data, jsontext.Limits{Depth: 100})
		if err != nil {
			return
		}
		for _, typ := range []reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[document](), reflect.TypeFor[[]float64](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[map[int]uint64]()} {
			p, err := value.For(typ)
			require.NoError(t, err)
			v, _, err := p.Convert(x, value.Limits{Bytes: 1 << 20, Depth: 50})
			if err != nil {
				continue
			}
			read, _, err := p.Convert(decode(t, jsonOf(t, p, v)), value.Limits{})
			require.NoError(t, err)
			require.True(t, p.Equal(v, read))
		}
	})
}

// Integers are exact in any text that jsontext accepts as a number.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0", "1e2", "9007199254740993.0", "18446744073709551616", "0.00001e5", "1e-400", "1E+5", "01", "1.", "-", "1e", "1e+-5", "123e-2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		valid := json.Valid([]byte(text)) && len(text) > 0 && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') && text[len(text)-1] >= '0'
		p, err := value.For(reflect.TypeFor[json.Number]())
		require.NoError(t, err)
		_, err = p.Check(of(json.Number(text)), value.Limits{})
		require.Equal(t, valid || text == "", err == nil)
		if !valid || len(text) > 40 {
			return
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			return // an exponent too large to expand
		}
		ints, err := value.For(reflect.TypeFor[int64]())
		require.NoError(t, err)
		n, _, err := ints.Convert(json.Number(text), value.Limits{})
		require.Equal(t, exact.IsInt() && exact.Num().IsInt64(), err == nil)
		if err == nil {
			require.Zero(t, exact.Cmp(new(big.Rat).SetInt64(n.Int())))
		}
	})
}

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
