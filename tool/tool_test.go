package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

type coreBase struct {
	Tenant string `json:"tenant,omitempty"`
}

type coreIn struct {
	Query string         `json:"query" jsonschema:"what to look for"`
	Limit int            `json:"limit,omitempty"`
	Tags  []string       `json:"tags,omitempty"`
	Since *state.Time    `json:"since,omitempty"`
	Any   any            `json:"any,omitempty"`
	Meta  map[string]int `json:"meta,omitempty"`
	coreBase
}

type coreOut struct {
	Text  string   `json:"text"`
	Count int      `json:"count"`
	Maybe *string  `json:"maybe"`
	List  []string `json:"list,omitempty"`
}

func coreFunc(context.Context, coreIn) (coreOut, error) { return coreOut{Text: "t", Count: 3}, nil }

var (
	coreText  = &state.Field[string]{Name: "text"}
	coreCount = &state.Field[int]{Name: "count"}
	coreList  = &state.Field[[]string]{Name: "list"}
	coreAny   = &state.Field[any]{Name: "any"}
)

func coreState(t testing.TB) *state.State {
	schema, err := state.NewSchema(coreText, coreCount, coreList, coreAny)
	require.NoError(t, err)
	return state.New(schema)
}

func TestNewRefuses(t *testing.T) {
	nothing := (*state.Field[string])(nil)
	tests := []struct {
		name string
		make func() (*tool.Tool, error)
		want string
	}{
		{"no function", func() (*tool.Tool, error) { return tool.New[coreIn, coreOut]("x", "", nil) }, `tool "x": no function`},
		{"no stateful function", func() (*tool.Tool, error) { return tool.NewStateful[coreIn, coreOut]("x", "", nil) }, `no function`},
		{"no raw function", func() (*tool.Tool, error) { return tool.Raw("x", "", `{}`, nil) }, `no function`},
		{"no name", func() (*tool.Tool, error) { return tool.New("", "", coreFunc) }, `tool "": no name`},
		{"nil option", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, nil) }, `option 0 is nil`},
		{"arguments that are not a struct", func() (*tool.Tool, error) {
			return tool.New("x", "", func(context.Context, string) (int, error) { return 0, nil })
		}, `must be a struct`},
		{"arguments that code themselves", func() (*tool.Tool, error) {
			return tool.New("x", "", func(context.Context, time.Time) (int, error) { return 0, nil })
		}, `must be a struct`},
		{"arguments that cannot be read", func() (*tool.Tool, error) {
			return tool.New("x", "", func(context.Context, struct{ C chan int }) (int, error) { return 0, nil })
		}, `chan int`},
		{"a result that cannot be written", func() (*tool.Tool, error) {
			return tool.New("x", "", func(context.Context, struct{}) (func(), error) { return nil, nil })
		}, `the result`},
		{"nil field read", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.From(nothing, "query")) }, `parameter "query": no field`},
		{"nil field written", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.To(nothing, "text")) }, `key "text": no field`},
		{"field without a name read", func() (*tool.Tool, error) {
			return tool.New("x", "", coreFunc, tool.From(&state.Field[string]{}, "query"))
		}, `the field has no name`},
		{"field without a name written", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.ToName("", "text")) }, `the field has no name`},
		{"parameter without a name", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.FromName("text", "")) }, `the parameter has no name`},
		{"unknown parameter", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.From(coreText, "Query")) }, `no such parameter`},
		{"unknown parameter by name", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.FromName("text", "q")) }, `no such parameter`},
		{"unknown parameter of a closed schema", func() (*tool.Tool, error) {
			return tool.Raw("x", "", `{"type":"object","additionalProperties":false}`, coreRaw, tool.From(coreText, "q"))
		}, `no such parameter`},
		{"unknown key", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.To(coreText, "Text")) }, `the result has no such key`},
		{"key of a list", func() (*tool.Tool, error) {
			return tool.New("x", "", func(context.Context, struct{}) ([]int, error) { return nil, nil }, tool.To(coreText, "a"))
		}, `has no keys`},
		{"input of another type", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.From(coreList, "query")) }, `want string, got list of string`},
		{"output of another type", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.To(coreText, "count")) }, `want string, got integer`},
		{"whole result of another type", func() (*tool.Tool, error) { return tool.New("x", "", coreFunc, tool.To(coreText, "")) }, `want string, got object`},
		{"map of another type", func() (*tool.Tool, error) {
			return tool.New("x", "", func(context.Context, struct{}) (map[string]bool, error) { return nil, nil }, tool.To(coreText, "a"))
		}, `want string, got boolean`},
		{"raw input of another type", func() (*tool.Tool, error) {
			return tool.Raw("x", "", `{"properties":{"q":{"type":"array"}}}`, coreRaw, tool.From(coreCount, "q2"), tool.From(coreMap, "q"))
		}, `want array, got object`},
		{"parameter twice", func() (*tool.Tool, error) {
			return tool.New("x", "", coreFunc, tool.From(coreText, "query"), tool.FromName("other", "query"))
		}, `injected twice`},
		{"field twice", func() (*tool.Tool, error) {
			return tool.New("x", "", coreFunc, tool.To(coreText, "text"), tool.ToName("text", "text"))
		}, `written twice`},
		{"handler of another type", func() (*tool.Tool, error) {
			return tool.New("x", "", coreFunc, tool.To(coreText, "text").With(state.Sum[int]()))
		}, `To: field "text": With: the handler "sum" is for another type than string`},
		{"handler of another type behind a function", func() (*tool.Tool, error) {
			return tool.New("x", "", coreFunc, tool.ToFunc(coreText, "count", func(int) (string, error) { return "", nil }).With(state.Sum[int]()))
		}, `ToFunc: field "text": With: the handler "sum" is for another type than string`},
		{"schema that is not JSON", func() (*tool.Tool, error) { return tool.Raw("x", "", `{`, coreRaw) }, `the schema: `},
		{"schema that is absent", func() (*tool.Tool, error) { return tool.Raw("x", "", ``, coreRaw) }, `the schema: `},
		{"schema that is not an object", func() (*tool.Tool, error) { return tool.Raw("x", "", `true`, coreRaw) }, `want object`},
		{"schema of another type", func() (*tool.Tool, error) { return tool.Raw("x", "", `{"type":"string"}`, coreRaw) }, `$.type: want object`},
		{"schema with bad properties", func() (*tool.Tool, error) { return tool.Raw("x", "", `{"properties":[]}`, coreRaw) }, `$.properties: want object, got array`},
		{"schema with bad required", func() (*tool.Tool, error) { return tool.Raw("x", "", `{"required":{}}`, coreRaw) }, `$.required: want array, got object`},
		{"schema with null required", func() (*tool.Tool, error) { return tool.Raw("x", "", `{"required":null}`, coreRaw) }, `$.required: want a value, got null`},
		{"schema with null properties", func() (*tool.Tool, error) { return tool.Raw("x", "", `{"properties":null}`, coreRaw) }, `$.properties: want object, got null`},
		{"schema with a bad name required", func() (*tool.Tool, error) { return tool.Raw("x", "", `{"required":[1]}`, coreRaw) }, `$.required[0]: want string`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.make()
			require.ErrorContains(t, err, tt.want)
			require.Nil(t, got)
			require.Panics(t, func() { tool.Must(got, err) })
		})
	}
}

func TestNewReportsAllMistakes(t *testing.T) {
	_, err := tool.New("x", "", coreFunc, tool.From(coreText, "a"), tool.To(coreText, "b"), nil)
	require.EqualError(t, err, `tool "x": From: field "text", parameter "a": the function has no such parameter
tool "x": To: field "text", key "b": the result has no such key
tool "x": option 2 is nil`)
}

var coreMap = &state.Field[map[string]int]{Name: "map"}

func coreRaw(_ context.Context, args state.JSON) (state.JSON, error) { return args, nil }

func TestConvertibleTypesFit(t *testing.T) {
	number, date, one := &state.Field[float64]{Name: "n"}, &state.Field[state.Time]{Name: "d"}, &state.Field[string]{Name: "one"}
	_, err := tool.New("x", "", coreFunc, tool.From(number, "limit"), tool.From(one, "tags"), tool.From(coreText, "since"),
		tool.From(coreList, "any"), tool.To(date, "text"), tool.To(number, "count"), tool.To(coreAny, ""))
	require.NoError(t, err)
}

func TestSchema(t *testing.T) {
	type inner struct {
		A *int            `json:"a"`
		B []byte          `json:"b"`
		R json.RawMessage `json:"r"`
	}
	type all struct {
		S  string           `json:"s" jsonschema:"a <text>"`
		D  state.Time       `json:"d" jsonschema:"the day"`
		T  time.Time        `json:"t"`
		P  *bool            `json:"p"`
		J  *state.JSON      `json:"j,omitempty"`
		L  []inner          `json:"l,omitzero"`
		M  map[int]string   `json:"m"`
		N  json.Number      `json:"n"`
		U8 map[string]uint8 `json:"u8"`
		X  any
	}
	fn := func(context.Context, all) (int, error) { return 0, nil }
	x, err := tool.New("x", "about x", fn, tool.From(coreText, "s"), tool.From(coreAny, "p"))
	require.NoError(t, err)
	require.Equal(t, "x", x.Name())
	require.Equal(t, "about x", x.Description())
	require.JSONEq(t, `{"type":"object","additionalProperties":false,
		"required":["d","t","m","n","u8","X"],
		"properties":{
			"d":{"type":"string","description":"the day\nA date: 2006-01-02 or RFC 3339."},
			"t":{"type":"string","format":"date-time"},
			"j":true,
			"l":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["a","b","r"],"properties":{
				"a":{"type":["null","integer"]},"b":{"type":"string","contentEncoding":"base64"},"r":true}}},
			"m":{"type":"object"},
			"n":{"type":"number"},
			"u8":{"type":"object","additionalProperties":{"type":"integer","minimum":0,"maximum":255}},
			"X":true
		}}`, string(x.Schema()))

	// Promoted members are parameters like any other.
	y := tool.Must(tool.New("y", "", coreFunc, tool.From(coreText, "tenant"), tool.From(coreText, "query")))
	require.NotContains(t, string(y.Schema()), "tenant")
	require.NotContains(t, string(y.Schema()), "required")

	open := tool.Must(tool.New("z", "", func(context.Context, map[string]any) (int, error) { return 0, nil }, tool.From(coreText, "q")))
	require.Equal(t, state.JSON(`{"type":"object","properties":{}}`), open.Schema())

	none := tool.Must(tool.New("z", "", func(context.Context, struct{}) (int, error) { return 0, nil }))
	require.Equal(t, state.JSON(`{"type":"object","properties":{},"additionalProperties":false}`), none.Schema())
}

func TestRawSchemaKeepsTheRest(t *testing.T) {
	x := tool.Must(tool.Raw("x", "", `{ "title" : "T", "type": ["object"], "required": ["a","b"], "properties": {"a": {"const": 1.0}, "b": {"type":"string"}, "c": true}, "$defs": {"d": {}} }`,
		coreRaw, tool.From(coreText, "b"), tool.From(coreText, "c")))
	require.Equal(t, state.JSON(`{"title":"T","type":["object"],"required":["a"],"properties":{"a":{"const":1.0}},"$defs":{"d":{}}}`), x.Schema())
}

func TestReadsAndWrites(t *testing.T) {
	x := tool.Must(tool.New("x", "", coreFunc, tool.From(coreText, "tenant"), tool.From(coreText, "query"), tool.FromName("k", "any"),
		tool.To(coreAny, "text"), tool.To(coreAny, "count"), tool.ToName("k", "")))
	require.Equal(t, []string{"text", "k"}, x.Reads())
	require.Equal(t, []string{"any", "k"}, x.Writes())
	require.False(t, x.Stateful())
	x.Reads()[0] = "changed"
	require.Equal(t, []string{"text", "k"}, x.Reads())
}

func TestArguments(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"absent", ``, `"query": want string, got nothing`},
		{"null", `null`, `"query": want string, got nothing`},
		{"null with space", ` null `, `"query": want string, got nothing`},
		{"not JSON", `{"query":`, `arguments`},
		{"no object", `[]`, `arguments: want an object, got array`},
		{"trailing text", `{} {}`, `arguments`},
		{"too deep", `{"any":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, `limit Depth`},
		{"invalid UTF-8", "{\"query\":\"\xff\"}", `arguments.query`},
		{"double", `{"query":"a","query":"b"}`, `query`},
		{"unknown", `{"query":"a","q":1}`, `"q": is unknown, there are "query", "limit", "tags", "since", "any", "meta"`},
		{"other case", `{"Query":"a"}`, `"Query": is unknown, it is spelled "query"`},
		{"injected", `{"query":"a","tenant":"me"}`, `"tenant": is not an argument, it is filled in by the program`},
		{"injected as null", `{"query":"a","tenant":null}`, `"tenant": is not an argument`},
		{"injected in other case", `{"query":"a","Tenant":"me"}`, `"Tenant": is not an argument, it is filled in by the program`},
		{"wrong type", `{"query":7}`, `"query": want string, got number`},
		{"null for a string", `{"query":null}`, `"query": want string, got null`},
		{"wrong element", `{"query":"a","tags":["a",7]}`, `"tags"[1]: want string, got number`},
		{"wrong member", `{"query":"a","meta":{"k":"v"}}`, `"meta".k: want integer, got string`},
		{"fraction", `{"query":"a","limit":1.5}`, `"limit": want integer`},
		{"out of range", `{"query":"a","limit":9223372036854775808}`, `"limit": want integer`},
		{"no date", `{"query":"a","since":"soon"}`, `"since": want date`},
	}
	st := coreState(t)
	require.NoError(t, coreText.Set(st, "tenant-7"))
	called := false
	x := tool.Must(tool.New("x", "", func(context.Context, coreIn) (int, error) { called = true; return 0, nil }, tool.From(coreText, "tenant")))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := x.Call(t.Context(), st, state.JSON(tt.args))
			var bad *tool.ArgumentError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "x", bad.Tool)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "tenant-7")
			require.False(t, called)
		})
	}
	_, err := x.Call(t.Context(), st, `{"limit":"x","nope":1,"tags":7}`)
	var bad *tool.ArgumentError
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Errs, 4, "every bad argument, and the one that is missing: %v", err)
	many := `{"query":"a"`
	for i := range 1000 {
		many += fmt.Sprintf(`,"q%d":1`, i)
	}
	_, err = x.Call(t.Context(), st, state.JSON(many+"}"))
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Errs, 51)
	require.EqualError(t, bad.Errs[50], "and 950 more")
	long := tool.Must(tool.New("x", "", func(context.Context, struct{}) (int, error) { return 0, nil }))
	_, err = long.Call(t.Context(), st, state.JSON(`{"`+strings.Repeat("ä", 1000)+`":1}`))
	require.ErrorContains(t, err, "there are no arguments")
	require.Less(t, len(err.Error()), 300)
}

func TestCallDecodes(t *testing.T) {
	var got coreIn
	x := tool.Must(tool.New("x", "", func(_ context.Context, in coreIn) (int, error) { got = in; return 0, nil }, tool.From(coreCount, "any")))
	st := coreState(t)
	require.NoError(t, coreCount.Set(st, 9))
	_, err := x.Call(t.Context(), st, `{"query":"a\u00e9\n","limit":2.0,"tags":"one","since":"2024-01-02","meta":{"k":1e2},"tenant":"t"}`)
	require.NoError(t, err)
	since, err := state.ParseTime("2024-01-02")
	require.NoError(t, err)
	require.Equal(t, coreIn{Query: "aé\n", Limit: 2, Tags: []string{"one"}, Since: &since, Any: int64(9), Meta: map[string]int{"k": 100}, coreBase: coreBase{"t"}}, got)
}

func TestOpenArguments(t *testing.T) {
	var got map[string]any
	x := tool.Must(tool.New("x", "", func(_ context.Context, in map[string]any) (int, error) { got = in; return 0, nil },
		tool.From(coreText, "user"), tool.From(coreList, "unset")))
	st := coreState(t)
	require.NoError(t, coreText.Set(st, "Ada"))
	_, err := x.Call(t.Context(), st, `{"a":1,"A":[1.5]}`)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": int64(1), "A": []any{1.5}, "user": "Ada"}, got)
	_, err = x.Call(t.Context(), st, `{"user":"Eve"}`)
	require.ErrorContains(t, err, "filled in by the program")
}

func TestRawArguments(t *testing.T) {
	const schema = `{"type":"object","properties":{"i":{"type":"integer"},"n":{"type":["number","null"]},"b":{"type":"boolean"},"s":{"type":"string"},"x":true},"required":["i","token"]}`
	x := tool.Must(tool.Raw("x", "", schema, coreRaw, tool.From(coreText, "token"), tool.From(coreAny, "s")))
	st := coreState(t)
	_, err := x.Call(t.Context(), st, `{"i":1}`)
	require.ErrorIs(t, err, state.ErrNotFound)
	require.NoError(t, coreText.Set(st, `to"k`))

	out, err := x.Call(t.Context(), st, `{ "i": 1.0, "n": null, "b" : true, "x": [1, 2], "other": 12345678901234567890 }`)
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{"i":1.0,"n":null,"b":true,"x":[1,2],"other":12345678901234567890,"token":"to\"k"}`), out)

	for args, want := range map[state.JSON]string{
		`{}`:                  `"i": want integer, got nothing`,
		`{"i":1.5}`:           `"i": want integer, got number`,
		`{"i":1,"n":"1"}`:     `"n": want number or null, got string`,
		`{"i":1,"b":0}`:       `"b": want boolean, got number`,
		`{"i":1,"B":true}`:    `"B": is unknown, it is spelled "b"`,
		`{"i":1,"token":"x"}`: `"token": is not an argument`,
	} {
		_, err := x.Call(t.Context(), st, args)
		require.ErrorContains(t, err, want, "%s", args)
	}

	require.NoError(t, coreAny.Set(st, []any{"hidden-element"}))
	_, err = x.Call(t.Context(), st, `{"i":1}`)
	require.EqualError(t, err, `tool "x": parameter "s": field "any": want string, got array`)

	empty := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return "", nil }))
	out, err = empty.Call(t.Context(), st, "")
	require.NoError(t, err)
	require.Equal(t, state.JSON(`"x successfully executed"`), out)
	for _, bad := range []state.JSON{`{`, `{"a":1,"a":2}`, `1 2`} {
		broken := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return bad, nil }))
		_, err = broken.Call(t.Context(), st, "")
		require.EqualError(t, err, `tool "x": the result is not valid JSON`)
	}
}

func TestInjectionFails(t *testing.T) {
	private := &state.Field[string]{Name: "private", Owner: "billing"}
	shared := &state.Field[any]{Name: "shared", Read: state.Public}
	st := state.New(state.MustSchema(state.Team{"support": {"billing"}}, private, shared))
	require.NoError(t, private.Set(st, "hidden-value"))
	require.NoError(t, shared.Set(st, map[string]any{"hidden-name": "hidden-value"}))
	called := false
	fn := func(context.Context, coreIn) (int, error) { called = true; return 0, nil }
	tests := []struct {
		name, args string
		opt        tool.Option
		is         error
		want       string
	}{
		{"denied", `{}`, tool.From(private, "query"), state.ErrDenied, `tool "x": parameter "query": field "private": read: access denied to agent "support"`},
		{"denied by name", `{}`, tool.FromName("private", "query"), state.ErrDenied, `tool "x": parameter "query": field "private": read: access denied to agent "support"`},
		{"denied for an optional one", `{"query":"a"}`, tool.From(private, "tenant"), state.ErrDenied, `tool "x": parameter "tenant": field "private": read: access denied to agent "support"`},
		{"unknown field", `{}`, tool.From(coreText, "query"), state.ErrUnknownField, `tool "x": parameter "query": field "text": unknown field`},
		{"field of another type", `{}`, tool.From(&state.Field[string]{Name: "shared"}, "query"), state.ErrWrongType, `tool "x": parameter "query": field "shared": want interface {}, got string`},
		{"value of another type", `{}`, tool.From(shared, "query"), nil, `tool "x": parameter "query": field "shared": want string, got object`},
		{"a member of another type", `{"query":"a"}`, tool.From(shared, "meta"), nil, `tool "x": parameter "meta": field "shared": want integer, got string`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := tool.Must(tool.New("x", "", fn, tt.opt))
			_, err := x.Call(t.Context(), st.As("support"), state.JSON(tt.args))
			require.EqualError(t, err, tt.want)
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
			var bad *tool.ArgumentError
			require.False(t, errors.As(err, &bad))
			require.False(t, called)
		})
	}
}

func TestOutputs(t *testing.T) {
	tests := []struct {
		name   string
		result state.JSON
		opts   []tool.Option
		want   map[string]any
	}{
		{"key", `{"a":"new"}`, []tool.Option{tool.To(coreText, "a")}, map[string]any{"text": "new"}},
		{"absent key", `{"A":"new"}`, []tool.Option{tool.To(coreText, "a")}, map[string]any{"text": "old"}},
		{"null", `{"a":null}`, []tool.Option{tool.To(coreText, "a"), tool.To(coreAny, "a")}, nil},
		{"null by name", `{"a":null}`, []tool.Option{tool.ToName("text", "a"), tool.ToName("any", "a")}, nil},
		{"null that deletes", `{"a":null}`, []tool.Option{tool.To(coreText, "a").OrDelete(), tool.ToName("any", "a").OrDelete()}, map[string]any{"text": nil, "any": nil}},
		{"whole null", ` null `, []tool.Option{tool.To(coreText, "").OrDelete(), tool.To(coreAny, "")}, map[string]any{"text": nil}},
		{"keys of null", `null`, []tool.Option{tool.To(coreText, "a").OrDelete(), tool.To(coreAny, "b")}, nil},
		{"whole", `{"a":[1]}`, []tool.Option{tool.To(coreAny, "")}, map[string]any{"any": map[string]any{"a": []any{int64(1)}}}},
		{"whole and key", `{"a":1}`, []tool.Option{tool.To(coreAny, ""), tool.To(coreCount, "a")}, map[string]any{"any": map[string]any{"a": int64(1)}, "count": 1}},
		{"list appends", `["b"]`, []tool.Option{tool.To(coreList, "")}, map[string]any{"list": []string{"a", "b"}}},
		{"handler", `["b"]`, []tool.Option{tool.To(coreList, "").With(state.Replace[[]string]())}, map[string]any{"list": []string{"b"}}},
		{"a missing key in front of another", `{"c":["d"]}`, []tool.Option{tool.To(coreText, "a"), tool.To(coreList, "c")}, map[string]any{"list": []string{"a", "d"}}},
		{"handler behind a function", `["b"]`, []tool.Option{
			tool.ToFunc(coreList, "", func(list []string) ([]string, error) { return list, nil }).With(state.Replace[[]string]()),
		}, map[string]any{"list": []string{"b"}}},
		{"no handler", `["b"]`, []tool.Option{tool.To(coreList, "").With(nil)}, map[string]any{"list": []string{"a", "b"}}},
		{"handler by name", `["b"]`, []tool.Option{tool.ToName("list", "").With(state.Replace[[]string]())}, map[string]any{"list": []string{"b"}}},
		{"two keys to one field", `{"a":["b"],"c":["d"]}`, []tool.Option{tool.To(coreList, "a"), tool.ToName("list", "c")}, map[string]any{"list": []string{"a", "b", "d"}}},
		{"one key to two fields", `{"a":"x"}`, []tool.Option{tool.To(coreText, "a"), tool.To(coreAny, "a")}, map[string]any{"text": "x", "any": "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := coreState(t)
			require.NoError(t, st.Patch(map[string]any{"text": "old", "list": []string{"a"}, "any": 1}))
			want := st.KV().All()
			before := st.Version()
			x := tool.Must(tool.Raw("x", "", `{}`, func(context.Context, state.JSON) (state.JSON, error) { return tt.result, nil }, tt.opts...))
			_, err := x.Call(t.Context(), st, "")
			require.NoError(t, err)
			for name, v := range tt.want {
				want[name] = v
				if v == nil {
					delete(want, name)
				}
			}
			require.Equal(t, want, st.KV().All())
			require.LessOrEqual(t, st.Version(), before+1, "all outputs are one version")
		})
	}
}

func TestErrorsKeepWhatIsBehindThem(t *testing.T) {
	boom := errors.New("boom")
	x := tool.Must(tool.New("x", "", func(context.Context, struct{}) (int, error) { panic(boom) }))
	_, err := x.Call(t.Context(), coreState(t), "")
	var panicked *tool.PanicError
	require.ErrorAs(t, err, &panicked)
	require.ErrorIs(t, err, boom)
	require.Equal(t, boom, panicked.Value)
	require.Contains(t, string(panicked.Stack), "TestErrorsKeepWhatIsBehindThem")

	y := tool.Must(tool.New("y", "", func(context.Context, struct{}) (float64, error) { return math.NaN(), nil }))
	_, err = y.Call(t.Context(), coreState(t), "")
	require.ErrorContains(t, err, `tool "y": the result cannot be encoded`)

	z := tool.Must(tool.New("z", "", func(context.Context, struct{}) (int, error) { return 7, nil }, tool.To(coreCount, "")))
	for st, want := range map[*state.State]error{
		coreState(t).Snapshot():                                              state.ErrReadOnly,
		state.New(state.MustSchema(coreText)):                                state.ErrUnknownField,
		state.New(state.MustSchema(coreCount)).As("nobody"):                  nil,
		state.New(state.MustSchema(state.Team{"a": nil}, coreCount)).As("a"): state.ErrDenied,
	} {
		_, err := z.Call(t.Context(), st, "")
		require.ErrorIs(t, err, want)
	}
}

func TestInputsAreOfOneMoment(t *testing.T) {
	a, b := &state.Field[int]{Name: "a"}, &state.Field[int]{Name: "b"}
	st := state.New(state.MustSchema(a, b))
	require.NoError(t, st.Patch(map[string]any{"a": 0, "b": 0}))
	type in struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	x := tool.Must(tool.New("x", "", func(_ context.Context, in in) (bool, error) { return in.A == in.B, nil }, tool.From(a, "a"), tool.From(b, "b")))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 2000 {
			_ = st.Patch(map[string]any{"a": i, "b": i})
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		out, err := x.Call(t.Context(), st, "")
		require.NoError(t, err)
		require.Equal(t, state.JSON("true"), out)
	}
}

func TestContextCarriesTheStateOnlyToStatefulTools(t *testing.T) {
	st := coreState(t)
	ctx := state.NewContext(t.Context(), st)
	plain := tool.Must(tool.New("x", "", func(ctx context.Context, _ struct{}) (bool, error) {
		_, ok := state.FromContext(ctx)
		return ok, nil
	}))
	raw := tool.Must(tool.Raw("x", "", `{}`, func(ctx context.Context, _ state.JSON) (state.JSON, error) {
		_, ok := state.FromContext(ctx)
		return state.JSONOf(ok)
	}))
	stateful := tool.Must(tool.NewStateful("x", "", func(ctx context.Context, given *state.State, _ struct{}) (bool, error) {
		carried, ok := state.FromContext(ctx)
		return ok && carried == given && given.Agent() == "", coreText.Set(given, "set")
	}))
	require.True(t, stateful.Stateful())
	for x, want := range map[*tool.Tool]state.JSON{plain: "false", raw: "false", stateful: "true"} {
		out, err := x.Call(ctx, st, "")
		require.NoError(t, err)
		require.Equal(t, want, out)
	}
	require.Equal(t, "set", coreText.GetOr(st, ""))
}

func TestResultIsStrictJSON(t *testing.T) {
	x := tool.Must(tool.New("x", "", func(context.Context, struct{}) (coreOut, error) { return coreOut{Text: "<é>"}, nil }))
	out, err := x.Call(t.Context(), coreState(t), "")
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{"text":"<é>","count":0,"maybe":null}`), out)
	bad := tool.Must(tool.New("x", "", func(context.Context, struct{}) (string, error) { return "\xff", nil }))
	_, err = bad.Call(t.Context(), coreState(t), "")
	require.ErrorContains(t, err, "the result cannot be encoded")
}
