package strict_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/strict"
)

func TestCheckAccepts(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, ` "" `, `0`, `-0`, `-0.0`, `1e400`, `1E+2`, `0.5e-3`, `14836394043272784000`,
		`[]`, `{}`, "[\n1 ,\t2\r]", `{"a":{"a":[{"a":1},{"a":2}]}}`, `{"":1," ":2}`,
		`"\ud83d\ude00\u0000\"\\\/\b\f\n\r\t"`, `"é😀` + "\u2028\x7f" + `"`,
		`{"a":1,"A":2,"á":3,"a\u0301":4}`, // neither case nor Unicode forms are folded
	} {
		require.NoError(t, strict.Check([]byte(text), strict.Limits{}), text)
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{``, `$: want a value, got the end of the text`},
		{` `, `$: want a value, got the end of the text`},
		{`nul`, `$: want a value, at byte 0`},
		{`1 2`, `$: want nothing after the value, at byte 2`},
		{"\ufeff1", `$: want a value, at byte 0`},
		{`01`, `$: want nothing after the value, at byte 1`},
		{`+1`, `$: want a value, at byte 0`},
		{`-`, `$: want a value, got the end of the text`},
		{`1.`, `$: want a digit, got the end of the text`},
		{`.5`, `$: want a value, at byte 0`},
		{`1e+`, `$: want a digit, got the end of the text`},
		{`NaN`, `$: want a value, at byte 0`},
		{`[1,]`, `$[1]: want a value, at byte 3`},
		{`[1 2]`, `$[0]: want ',' or ']' after it, at byte 3`},
		{`[1}`, `$[0]: want ',' or ']' after it, at byte 2`},
		{`[`, `$[0]: want a value, got the end of the text`},
		{`{`, `$: want a member name, got the end of the text`},
		{`{"a":1,}`, `$: want a member name, at byte 7`},
		{`{a:1}`, `$: want a member name, at byte 1`},
		{`{"a" 1}`, `$.a: want ':' after the member name, at byte 5`},
		{`{"a":}`, `$.a: want a value, at byte 5`},
		{`{"a":1]`, `$.a: want ',' or '}' after it, at byte 6`},
		{`{"a":[0,{"b":01}]}`, `$.a[1].b: want ',' or '}' after it, at byte 14`},
		{`{"a":[1],"b":tru}`, `$.b: want a value, at byte 13`},
		{`{"a":1,"b\x":1}`, `$: invalid escape, at byte 9`},
		{`{"odd name":?}`, `$["odd name"]: want a value, at byte 12`},
		{`"a`, `$: want the end of the string, got the end of the text`},
		{"\"a\nb\"", `$: control character in a string, at byte 2`},
		{"[\"a\x00\"]", `$[0]: control character in a string, at byte 3`},
		{"\"\xff\"", `$: invalid UTF-8, at byte 1`},
		{"\"\xed\xa0\x80\"", `$: invalid UTF-8, at byte 1`}, // a surrogate written as UTF-8
		{"\"\xc0\x80\"", `$: invalid UTF-8, at byte 1`},
		{`"\ud83d"`, `$: invalid escape, at byte 1`},
		{`"\ude00"`, `$: invalid escape, at byte 1`},
		{`"\ud83d\u0041"`, `$: invalid escape, at byte 1`},
		{`"\ud83d\ue000"`, `$: invalid escape, at byte 1`},
		{"\"\x1f\"", `$: control character in a string, at byte 1`},
		{`"\ud83d\ud83d"`, `$: invalid escape, at byte 1`},
		{`"\u00g0"`, `$: invalid escape, at byte 1`},
		{`"\u00`, `$: invalid escape, at byte 1`},
		{`"\`, `$: invalid escape, at byte 1`},
		{`{"a":1,"a":2}`, `$.a: the member occurs twice`},
		{`{"a":1,"\u0061":2}`, `$.a: the member occurs twice`},
		{`{"x":[{"b":{},"c":1,"b":2}]}`, `$.x[0].b: the member occurs twice`},
		{`{"role":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0,"role":1}`, `$.role: the member occurs twice`},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0,"j":1}`, `$.j: the member occurs twice`},
	} {
		err := strict.Check([]byte(tt.text), strict.Limits{})
		require.EqualError(t, err, tt.want, "%q", tt.text)
		var problem *strict.Error
		require.ErrorAs(t, err, &problem)
	}
}

func TestCheckLimits(t *testing.T) {
	lim := strict.Limits{Bytes: 20, Depth: 2}
	require.NoError(t, strict.Check([]byte(`{"a":[1]}`), lim))
	require.NoError(t, strict.Check([]byte(strings.Repeat(" ", 19)+"1"), lim))
	require.Equal(t, &strict.LimitError{Path: "$.a[1]", Name: "Depth", Limit: 2, Got: 3},
		strict.Check([]byte(`{"a":[1,{}]}`), lim))
	err := strict.Check([]byte(strings.Repeat(" ", 20)+"1"), lim)
	require.Equal(t, &strict.LimitError{Path: "$", Name: "Bytes", Limit: 20, Got: 21}, err)
	require.EqualError(t, err, "$: Bytes is limited to 20, got 21")
}

func TestDeepNestingIsNoCrash(t *testing.T) {
	const n = 100_000
	open, end := strings.Repeat(`{"a":[`, n), strings.Repeat(`]}`, n)
	v, err := strict.Decode([]byte(open+end), strict.Limits{})
	require.NoError(t, err)
	depth := 0
	for {
		m, ok := v.(map[string]any)
		if !ok {
			break
		}
		depth++
		list := m["a"].([]any)
		if len(list) == 0 {
			break
		}
		v = list[0]
	}
	require.Equal(t, n, depth)

	err = strict.Check([]byte(open), strict.Limits{})
	require.Error(t, err)
	require.Less(t, len(err.Error()), 1000, "the path of the error is bounded")
	require.Contains(t, err.Error(), "$.a[0].a[0]")
	require.Contains(t, err.Error(), "…")

	// A limit is found before the rest is read.
	require.Less(t, testing.AllocsPerRun(10, func() {
		_ = strict.Check([]byte(open), strict.Limits{Depth: 64})
	}), 200.0)
}

func TestManyMembersAreLinear(t *testing.T) {
	var b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	text := `{` + b.String()[1:]
	require.NoError(t, strict.Check([]byte(text+`}`), strict.Limits{}))
	require.EqualError(t, strict.Check([]byte(text+`,"k777":1}`), strict.Limits{}), "$.k777: the member occurs twice")
}

func TestDecode(t *testing.T) {
	got, err := strict.Decode([]byte(` {"n":[1.0,-0,1e400,9007199254740993],"s":"\u00e9\ud83d\ude00\/","o":{},"a":[],"b":[true,false,null]} `), strict.Limits{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"n": []any{json.Number("1.0"), json.Number("-0"), json.Number("1e400"), json.Number("9007199254740993")},
		"s": "é😀/",
		"o": map[string]any{},
		"a": []any{},
		"b": []any{true, false, nil},
	}, got)

	_, err = strict.Decode([]byte(`{"a":1,"a":1}`), strict.Limits{})
	require.Error(t, err)
}

func TestDecodeSharesNothing(t *testing.T) {
	data := []byte(`{"key":"value","n":12}`)
	got, err := strict.Decode(data, strict.Limits{})
	require.NoError(t, err)
	for i := range data {
		data[i] = 'x'
	}
	require.Equal(t, map[string]any{"key": "value", "n": json.Number("12")}, got)
}

func TestMembersAndElements(t *testing.T) {
	data := []byte(" { \"b\" : [1, {\"x\":\"]}\\\"\"}] ,\"\\u0061\":\"q\\\\\" , \"n\":-1.50 } ")
	members, err := strict.Members(data)
	require.NoError(t, err)
	require.Equal(t, []strict.Member{
		{Name: "b", Value: []byte(`[1, {"x":"]}\""}]`)},
		{Name: "a", Value: []byte(`"q\\"`)},
		{Name: "n", Value: []byte(`-1.50`)},
	}, members)
	require.Equal(t, cap(data)-cap(members[1].Value), bytes.Index(data, []byte(`"q`)), "a value tells where it is")

	elements, err := strict.Elements(members[0].Value)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte(`1`), []byte(`{"x":"]}\""}`)}, elements)

	members, err = strict.Members([]byte(`{ }`))
	require.NoError(t, err)
	require.Empty(t, members)
	elements, err = strict.Elements([]byte(`[ ]`))
	require.NoError(t, err)
	require.Empty(t, elements)

	_, err = strict.Members([]byte(`[1]`))
	require.EqualError(t, err, "$: want object, got array")
	_, err = strict.Elements([]byte(`"a"`))
	require.EqualError(t, err, "$: want array, got string")
}

func TestPaths(t *testing.T) {
	require.Equal(t, "$.a_1", strict.Path("$", "a_1"))
	require.Equal(t, `$["1a"]`, strict.Path("$", "1a"))
	require.Equal(t, `$[""]`, strict.Path("$", ""))
	require.Equal(t, `$["a\n\"b"]`, strict.Path("$", "a\n\"b"))
	require.Equal(t, `$["ключ"][3]`, strict.Index(strict.Path("$", "ключ"), 3))
	require.Less(t, len(strict.Path("$", strings.Repeat("é", 1<<20))), 300)
}

func TestAppendString(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `""`},
		{"<a href=\"x\">&\u2028", `"<a href=\"x\">&` + "\u2028" + `"`},
		{"\\\b\f\n\r\t\x00\x1b\x7f", `"\\\b\f\n\r\t\u0000\u001b` + "\x7f" + `"`},
		{"é😀", `"é😀"`},
		{"a\xffb\xed\xa0\x80", `"a` + "\uFFFDb\uFFFD\uFFFD\uFFFD" + `"`},
		{"\uFFFD", "\"\uFFFD\""},
	} {
		require.Equal(t, tt.want, string(strict.AppendQuote(nil, tt.text)))
	}
	require.Equal(t, `x"y"`, string(strict.AppendQuote([]byte("x"), "y")))
}

func TestStringsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		raw := strict.AppendQuote(nil, text)
		require.NoError(t, strict.Check(raw, strict.Limits{}))
		require.Equal(t, text, strict.Unquote(raw))
		escaped, err := json.Marshal(text)
		require.NoError(t, err)
		require.Equal(t, text, strict.Unquote(escaped))
	})
}

func TestCompact(t *testing.T) {
	src := " { \"a b\" : [ 1.0 ,\t-0 ] ,\r\n \"q\\\" \\\\\" : \" x \" } "
	require.Equal(t, "p:{\"a b\":[1.0,-0],\"q\\\" \\\\\":\" x \"}", string(strict.AppendCompact([]byte("p:"), []byte(src))))
}

func TestHashFollowsTheValue(t *testing.T) {
	seed := maphash.MakeSeed()
	hash := func(text string) uint64 { return strict.Hash(seed, []byte(text)) }
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1}`, ` { "b" : [ true , null ] , "\u0061" : 1 } `},
		{`"<é/>"`, `"\u003c\u00e9\/>"`},
		{`[]`, ` [ ] `},
	} {
		for _, text := range same {
			require.Equal(t, hash(same[0]), hash(text), text)
		}
	}
	seen := map[uint64]string{}
	for _, text := range []string{
		`null`, `"null"`, `1`, `"1"`, `[1]`, `[[1]]`, `{"1":1}`, `1.0`, `[]`, `{}`, `""`, `[[],[]]`, `[[[]]]`, `[1,2]`, `[2,1]`,
		`{"a":1,"b":2}`, `{"a":2,"b":1}`, `{"a":{"b":1}}`, `{"a":["b",1]}`, `{"a":{},"b":{}}`, `true`, `false`,
	} {
		h := hash(text)
		require.Empty(t, seen[h], text)
		seen[h] = text
	}
}

// FuzzStrictCheck holds Check against encoding/json: what it accepts is valid
// there and means the same, and what it refuses is invalid there or one of the
// things encoding/json changes in silence.
func FuzzStrictCheck(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{"a":[1,2.50,{"b":"\ud83d\ude00 é"}],"c":{}}`, `{"a":1,"a":2}`, `"\ud83d"`, "\"\xff\"", `[1e400,-0]`,
		`[[[[]]]]`, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"a":0}`, `01`, `{"a\\":"\\\""}`, " [ 1 , 2 ] ", `nulll`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := strict.Decode(data, strict.Limits{})
		checkErr := strict.Check(data, strict.Limits{})
		require.Equal(t, err, checkErr)
		_, _ = strict.Members(data) // of any text without a panic
		_, _ = strict.Elements(data)
		_ = strict.AppendCompact(nil, data)
		strict.Kind(data)
		if err != nil {
			if json.Valid(data) {
				require.Regexp(t, `occurs twice|invalid UTF-8|invalid escape`, err.Error())
			}
			return
		}
		if !json.Valid(data) {
			require.Greater(t, bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")), 10_000, "%q", data)
			return
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var want any
		require.NoError(t, dec.Decode(&want))
		require.Equal(t, want, got)

		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, data))
		require.Equal(t, compact.String(), string(strict.AppendCompact(nil, data)))

		again, err := json.Marshal(want) // sorted and escaped otherwise: another text, the same value
		require.NoError(t, err)
		seed := maphash.MakeSeed()
		require.Equal(t, strict.Hash(seed, data), strict.Hash(seed, again))

		switch want := want.(type) {
		case map[string]any:
			members, err := strict.Members(data)
			require.NoError(t, err)
			require.Len(t, members, len(want))
			for _, m := range members {
				value, err := strict.Decode(m.Value, strict.Limits{})
				require.NoError(t, err)
				require.Equal(t, want[m.Name], value)
			}
		case []any:
			elements, err := strict.Elements(data)
			require.NoError(t, err)
			require.Len(t, elements, len(want))
			for i, e := range elements {
				value, err := strict.Decode(e, strict.Limits{})
				require.NoError(t, err)
				require.Equal(t, want[i], value)
			}
		case string:
			require.Equal(t, want, strict.Unquote(bytes.Trim(data, " \t\r\n")))
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	data := []byte(`{"type":"text","role":"user","content":"` + strings.Repeat("all quiet, naïve café; ", 40) + `","n":[1,2.5e3,{"a":null,"b":true}]}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := strict.Check(data, strict.Limits{Bytes: 1 << 20, Depth: 64}); err != nil {
			b.Fatal(err)
		}
	}
}
