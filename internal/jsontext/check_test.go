package jsontext_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/test/effort/property"
)

func TestCheckAccepts(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, ` "" `, `0`, `-0`, `-0.0`, `1e400`, `1E+2`, `0.5e-3`, `14836394043272784000`,
		`[]`, `{}`, "[\n1 ,\t2\r]", `{"a":{"a":[{"a":1},{"a":2}]}}`, `{"":1," ":2}`,
		`"\ud83d\ude00\u0000\"\\\/\b\f\n\r\t"`, `"é😀` + "\u2028\x7f" + `"`,
		`{"a":1,"A":2,"á":3,"a\u0301":4}`, // neither case nor Unicode forms are folded
	} {
		require.NoError(t, jsontext.Check([]byte(text), jsontext.Limits{}), text)
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{``, `$: want a value, got the end of the text`},
		{` `, `$: want a value, got the end of the text`},
		{`nul`, `$: want a value, got other text at byte 0`},
		{`1 2`, `$: want nothing after the value, got other text at byte 2`},
		{"\ufeff1", `$: want a value, got other text at byte 0`},
		{`01`, `$: want nothing after the value, got other text at byte 1`},
		{`+1`, `$: want a value, got other text at byte 0`},
		{`-`, `$: want a value, got the end of the text`},
		{`1.`, `$: want a digit, got the end of the text`},
		{`.5`, `$: want a value, got other text at byte 0`},
		{`1e+`, `$: want a digit, got the end of the text`},
		{`NaN`, `$: want a value, got other text at byte 0`},
		{`[1,]`, `$[1]: want a value, got other text at byte 3`},
		{`[1 2]`, `$[0]: want ',' or ']' after it, got other text at byte 3`},
		{`[1}`, `$[0]: want ',' or ']' after it, got other text at byte 2`},
		{`[`, `$[0]: want a value, got the end of the text`},
		{`{`, `$: want a member name, got the end of the text`},
		{`{"a":1,}`, `$: want a member name, got other text at byte 7`},
		{`{a:1}`, `$: want a member name, got other text at byte 1`},
		{`{"a" 1}`, `$.a: want ':' after the member name, got other text at byte 5`},
		{`{"a":}`, `$.a: want a value, got other text at byte 5`},
		{`{"a":1]`, `$.a: want ',' or '}' after it, got other text at byte 6`},
		{`{"a":[0,{"b":01}]}`, `$.a[1].b: want ',' or '}' after it, got other text at byte 14`},
		{`{"a":[1],"b":tru}`, `$.b: want a value, got other text at byte 13`},
		{`{"a":1,"b\x":1}`, `$: invalid escape at byte 9`},
		{`{"odd name":?}`, `$["odd name"]: want a value, got other text at byte 12`},
		{`"a`, `$: want the end of the string, got the end of the text`},
		{"\"a\nb\"", `$: control character in a string at byte 2`},
		{"[\"a\x00\"]", `$[0]: control character in a string at byte 3`},
		{"\"\xff\"", `$: invalid UTF-8 at byte 1`},
		{"\"\xed\xa0\x80\"", `$: invalid UTF-8 at byte 1`}, // a surrogate written as UTF-8
		{"\"\xc0\x80\"", `$: invalid UTF-8 at byte 1`},
		{`"\ud83d"`, `$: invalid escape at byte 1`},
		{`"\ude00"`, `$: invalid escape at byte 1`},
		{`"\ud83d\u0041"`, `$: invalid escape at byte 1`},
		{`"\ud83d\ue000"`, `$: invalid escape at byte 1`},
		{"\"\x1f\"", `$: control character in a string at byte 1`},
		{`"\ud83d\ud83d"`, `$: invalid escape at byte 1`},
		{`"\u00g0"`, `$: invalid escape at byte 1`},
		{`"\u00`, `$: invalid escape at byte 1`},
		{`"\`, `$: invalid escape at byte 1`},
		{`{"a":1,"a":2}`, `$.a: the member occurs twice`},
		{`{"a":1,"\u0061":2}`, `$.a: the member occurs twice`},
		{`{"x":[{"b":{},"c":1,"b":2}]}`, `$.x[0].b: the member occurs twice`},
		{`{"role":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0,"role":1}`, `$.role: the member occurs twice`},
		{`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":0,"j":1}`, `$.j: the member occurs twice`},
	} {
		err := jsontext.Check([]byte(tt.text), jsontext.Limits{})
		require.EqualError(t, err, tt.want, "%q", tt.text)
		var problem *fault.Error
		require.ErrorAs(t, err, &problem)
	}
}

func TestCheckLimits(t *testing.T) {
	lim := jsontext.Limits{Bytes: 20, Depth: 2}
	require.NoError(t, jsontext.Check([]byte(`{"a":[1]}`), lim))
	require.NoError(t, jsontext.Check([]byte(strings.Repeat(" ", 19)+"1"), lim))
	require.Equal(t, &fault.LimitError{Path: "$.a[1]", Name: "Depth", Limit: 2, Got: 3},
		jsontext.Check([]byte(`{"a":[1,{}]}`), lim))
	err := jsontext.Check([]byte(strings.Repeat(" ", 20)+"1"), lim)
	require.Equal(t, &fault.LimitError{Path: "$", Name: "Bytes", Limit: 20, Got: 21}, err)
	require.EqualError(t, err, "$: limit Bytes: 21 is more than 20")
}

func TestDeepNestingIsNoCrash(t *testing.T) {
	const n = 100_000
	open, end := strings.Repeat(`{"a":[`, n), strings.Repeat(`]}`, n)
	v, err := jsontext.Decode([]byte(open+end), jsontext.Limits{})
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

	err = jsontext.Check([]byte(open), jsontext.Limits{})
	require.Error(t, err)
	require.Less(t, len(err.Error()), 1000, "the path of the error is bounded")
	require.Contains(t, err.Error(), "$.a[0].a[0]")
	require.Contains(t, err.Error(), "…")

	// A limit is found before the rest is read.
	require.Less(t, testing.AllocsPerRun(10, func() {
		_ = jsontext.Check([]byte(open), jsontext.Limits{Depth: 64})
	}), 200.0)
}

func TestDecode(t *testing.T) {
	got, err := jsontext.Decode([]byte(` {"n":[1.0,-0,1e400,9007199254740993],"s":"\u00e9\ud83d\ude00\/","o":{},"a":[],"b":[true,false,null]} `), jsontext.Limits{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"n": []any{json.Number("1.0"), json.Number("-0"), json.Number("1e400"), json.Number("9007199254740993")},
		"s": "é😀/",
		"o": map[string]any{},
		"a": []any{},
		"b": []any{true, false, nil},
	}, got)

	_, err = jsontext.Decode([]byte(`{"a":1,"a":1}`), jsontext.Limits{})
	require.Error(t, err)
}

func TestDecodeSharesNothing(t *testing.T) {
	data := []byte(`{"key":"value","n":12}`)
	got, err := jsontext.Decode(data, jsontext.Limits{})
	require.NoError(t, err)
	for i := range data {
		data[i] = 'x'
	}
	require.Equal(t, map[string]any{"key": "value", "n": json.Number("12")}, got)
}

func TestMembersAndElements(t *testing.T) {
	data := []byte(" { \"b\" : [1, {\"x\":\"]}\\\"\"}] ,\"\\u0061\":\"q\\\\\" , \"n\":-1.50 } ")
	members, err := jsontext.Members(data)
	require.NoError(t, err)
	require.Equal(t, jsontext.Object{
		{Name: "b", Value: []byte(`[1, {"x":"]}\""}]`)},
		{Name: "a", Value: []byte(`"q\\"`)},
		{Name: "n", Value: []byte(`-1.50`)},
	}, members)
	var spans []jsontext.Span
	require.NoError(t, jsontext.EachMember(data, func(name []byte, value jsontext.Span) error {
		require.Equal(t, members[len(spans)].Name, string(name))
		require.Equal(t, members[len(spans)].Value, value.In(data))
		spans = append(spans, value)
		return nil
	}))
	require.Equal(t, bytes.Index(data, []byte(`"q`)), spans[1].From)
	var inner []string
	require.NoError(t, jsontext.EachElement(spans[0].In(data), func(element jsontext.Span) error {
		inner = append(inner, string(element.Within(spans[0]).In(data)))
		return nil
	}))
	require.Equal(t, []string{`1`, `{"x":"]}\""}`}, inner)
	require.ErrorIs(t, jsontext.EachMember(data, func([]byte, jsontext.Span) error { return io.EOF }), io.EOF)

	elements, err := jsontext.Elements(members[0].Value)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte(`1`), []byte(`{"x":"]}\""}`)}, elements)

	members, err = jsontext.Members([]byte(`{ }`))
	require.NoError(t, err)
	require.Empty(t, members)
	elements, err = jsontext.Elements([]byte(`[ ]`))
	require.NoError(t, err)
	require.Empty(t, elements)

	_, err = jsontext.Members([]byte(`[1]`))
	require.EqualError(t, err, "$: want object, got array")
	_, err = jsontext.Elements([]byte(`"a"`))
	require.EqualError(t, err, "$: want array, got string")
}

func TestCheckMembers(t *testing.T) {
	for _, tt := range []struct {
		text    string
		levels  int
		want    []string
		compact bool
	}{
		{`{"a":{"b":1,"c":[{"x":2}]},"\u0064":"e","f":{}}`, 2, []string{`2 b=1`, `2 c=[{"x":2}]`, `1 a={"b":1,"c":[{"x":2}]}`, `1 d="e"`, `1 f={}`}, true},
		{`{"a":{"b":{"c":{"d":1}}}}`, 3, []string{`3 c={"d":1}`, `2 b={"c":{"d":1}}`, `1 a={"b":{"c":{"d":1}}}`}, true},
		{`{"a":{"b":1}}`, 0, nil, true},
		{`{ "a" : [ 1 ] }`, 1, []string{`1 a=[ 1 ]`}, false},
		{`{"a":1} `, 1, []string{`1 a=1`}, false},
		{`[{"a":1}]`, 1, nil, true},
		{`[{"a":1}]`, 2, []string{`2 a=1`}, true},
		{`7`, 2, nil, true},
	} {
		var got []string
		compact, err := jsontext.CheckMembers([]byte(tt.text), tt.levels, func(level int, name []byte, value jsontext.Span) {
			got = append(got, fmt.Sprintf("%d %s=%s", level, name, value.In([]byte(tt.text))))
		})
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, got, tt.text)
		require.Equal(t, tt.compact, compact, tt.text)
	}
	_, err := jsontext.CheckMembers([]byte(`{"a":{"b":1,"b":2}}`), 2, func(int, []byte, jsontext.Span) {})
	require.EqualError(t, err, "$.a.b: the member occurs twice")
}

// Whether names are in order makes no difference to what is found.
func TestMembersInAnyOrderOccurOnce(t *testing.T) {
	for n := range 40 {
		for moved := range n {
			for double := range n {
				var names []string
				for i := range n {
					names = append(names, fmt.Sprintf(`"%02d":0`, i))
				}
				names[moved], names[n-1] = names[n-1], names[moved]
				text := "{" + strings.Join(names, ",") + "}"
				require.NoError(t, jsontext.Check([]byte(text), jsontext.Limits{}), text)
				text = "{" + strings.Join(append(names, names[double]), ",") + "}"
				require.ErrorContains(t, jsontext.Check([]byte(text), jsontext.Limits{}), "the member occurs twice", text)
			}
		}
	}
}

func TestPaths(t *testing.T) {
	require.Equal(t, "$.a_1", jsontext.Path("$", "a_1"))
	require.Equal(t, `$["1a"]`, jsontext.Path("$", "1a"))
	require.Equal(t, `$[""]`, jsontext.Path("$", ""))
	require.Equal(t, `$["a\n\"b"]`, jsontext.Path("$", "a\n\"b"))
	require.Equal(t, `$["ключ"][3]`, jsontext.Index(jsontext.Path("$", "ключ"), 3))
	require.Less(t, len(jsontext.Path("$", strings.Repeat("é", 1<<20))), 300)
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
		require.Equal(t, tt.want, string(jsontext.AppendQuote(nil, tt.text)))
	}
	require.Equal(t, `x"y"`, string(jsontext.AppendQuote([]byte("x"), "y")))
}

func TestStringsRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		raw := jsontext.AppendQuote(nil, text)
		require.NoError(t, jsontext.Check(raw, jsontext.Limits{}))
		require.Equal(t, text, jsontext.Unquote(raw))
		escaped, err := json.Marshal(text)
		require.NoError(t, err)
		require.Equal(t, text, jsontext.Unquote(escaped))
	})
}

func TestCompact(t *testing.T) {
	src := " { \"a b\" : [ 1.0 ,\t-0 ] ,\r\n \"q\\\" \\\\\" : \" x \" } "
	require.Equal(t, "p:{\"a b\":[1.0,-0],\"q\\\" \\\\\":\" x \"}", string(jsontext.AppendCompact([]byte("p:"), []byte(src))))
}

// hashOf returns the hash of an object with a value.
func hashOf(seed maphash.Seed, value string) uint64 {
	sum, _, _ := jsontext.HashMembers(seed, []byte(`{"":`+value+`}`), nil)
	return sum
}

func TestHashFollowsTheValue(t *testing.T) {
	seed := maphash.MakeSeed()
	hash := func(text string) uint64 { return hashOf(seed, text) }
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1}`, ` { "b" : [ true , null ] , "\u0061" : 1 } `},
		{`"<é/>"`, `"\u003c\u00e9\/>"`},
		{`[]`, ` [ ] `},
	} {
		for _, text := range same {
			require.Equal(t, hash(same[0]), hash(text), text)
		}
	}
	_, _, err := jsontext.HashMembers(seed, []byte(`[1]`), nil)
	require.EqualError(t, err, "$: want object, got array")
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
		got, err := jsontext.Decode(data, jsontext.Limits{})
		checkErr := jsontext.Check(data, jsontext.Limits{})
		require.Equal(t, err, checkErr)
		_, _ = jsontext.Members(data) // of any text without a panic
		_, _ = jsontext.Elements(data)
		_ = jsontext.AppendCompact(nil, data)
		_ = jsontext.EachObject(data, func(int, []byte, jsontext.Object) error { return nil })
		jsontext.Kind(data)
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
		require.Equal(t, compact.String(), string(jsontext.AppendCompact(nil, data)))

		again, err := json.Marshal(want) // sorted and escaped otherwise: another text, the same value
		require.NoError(t, err)
		seed := maphash.MakeSeed()
		require.Equal(t, hashOf(seed, string(data)), hashOf(seed, string(again)))

		switch want := want.(type) {
		case map[string]any:
			var names []string
			_, isCompact, err := jsontext.HashMembers(seed, data, func(name, value jsontext.Span) {
				names = append(names, jsontext.Unquote(name.In(data)))
				part, err := jsontext.Decode(value.In(data), jsontext.Limits{})
				require.NoError(t, err)
				require.Equal(t, want[names[len(names)-1]], part)
			})
			require.NoError(t, err)
			require.Len(t, names, len(want))
			require.Equal(t, compact.Len() == len(data), isCompact)
			members, err := jsontext.Members(data)
			require.NoError(t, err)
			require.Len(t, members, len(want))
			for _, m := range members {
				value, err := jsontext.Decode(m.Value, jsontext.Limits{})
				require.NoError(t, err)
				require.Equal(t, want[m.Name], value)
			}
			var visited jsontext.Object
			isCompact, err = jsontext.CheckMembers(data, 1, func(_ int, name []byte, value jsontext.Span) {
				visited = append(visited, jsontext.Member{Name: string(name), Value: value.In(data)})
			})
			require.NoError(t, err)
			require.Equal(t, compact.Len() == len(data), isCompact)
			require.Equal(t, len(members), len(visited))
			for i, m := range members {
				require.Equal(t, m, visited[i])
			}
		case []any:
			elements, err := jsontext.Elements(data)
			require.NoError(t, err)
			require.Len(t, elements, len(want))
			for i, e := range elements {
				value, err := jsontext.Decode(e, jsontext.Limits{})
				require.NoError(t, err)
				require.Equal(t, want[i], value)
			}
		case string:
			raw := bytes.Trim(data, " \t\r\n")
			require.Equal(t, want, jsontext.Unquote(raw))
			require.Equal(t, "p:"+want, string(jsontext.AppendUnquoted([]byte("p:"), raw)))
			require.True(t, jsontext.IsText(raw, want))
			require.False(t, jsontext.IsText(raw, want+"x"))
		}
	})
}
