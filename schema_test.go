package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
)

// The tests of this file prove which schemas and types are accepted, which values
// a field takes and converts, and that a schema survives its JSON form.

func TestNewSchemaReportsAllMistakesAtOnceInOrder(t *testing.T) {
	_, err := state.NewSchema(
		state.Team{"a": nil},
		&state.Field[chan int]{Name: "one"},
		&state.Field[int]{},
		&state.Field[int]{Name: "two", MaxBytes: -1},
		&state.Field[int]{Name: "three", Owner: "z", Write: state.Public},
		&state.Field[int]{Name: "two"},
		nil,
	)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "errors.Join")
	text := err.Error()
	require.GreaterOrEqual(t, len(joined.Unwrap()), 6)
	at := 0
	for _, want := range []string{`"one"`, "no Name", `"two": MaxBytes`, `owner "z"`, `"two": declared twice`, "part 6 is nil"} {
		i := strings.Index(text[at:], want)
		require.GreaterOrEqual(t, i, 0, "%q after the others in %s", want, text)
		at += i
	}
	var typeErr *state.TypeError
	require.ErrorAs(t, err, &typeErr)
	require.Equal(t, "one", typeErr.Field)
}

func TestEverySchemaHasMessages(t *testing.T) {
	said := []state.Message{state.UserText("a")}
	for name, schema := range map[string]*state.Schema{"nil": nil, "closed": state.MustSchema(), "team": state.MustSchema(state.Team{"a": nil})} {
		st := state.New(schema)
		require.NoError(t, state.Messages.Set(st.As("a"), said), name)
		require.NoError(t, state.Messages.Set(st, said), name)
		require.Equal(t, 2, state.ListLen(st.As("a"), state.Messages), "%s: appending and public", name)
	}
	redeclared := state.New(state.MustSchema(state.Team{"a": {"b"}},
		&state.Field[[]state.Message]{Name: "messages", Owner: "a", Handler: state.Replace[[]state.Message]()}))
	require.NoError(t, state.Messages.Set(redeclared, said))
	require.NoError(t, state.Messages.Set(redeclared, said))
	require.Equal(t, 1, state.ListLen(redeclared, state.Messages), "its own handler")
	_, err := state.Messages.Get(redeclared.As("b"))
	require.ErrorIs(t, err, state.ErrDenied, "its own scope")
	own := state.NewHandler("trim", func(current []state.Message, _ bool, update []state.Message) ([]state.Message, error) {
		return append(current, update...), nil
	})
	_, err = state.NewSchema(&state.Field[[]state.Message]{Name: "messages", Handler: own})
	require.NoError(t, err, "one that keeps tool pairs whole")
	st := state.New(nil)
	require.ErrorIs(t, state.Messages.SetWith(st, said, state.KeepLast[[]state.Message](1)), state.ErrWrongType)
	require.ErrorIs(t, st.KV().SetWith("messages", said, state.KeepLast[[]state.Message](1)), state.ErrWrongType)
}

func TestParseSchemaMakesEachType(t *testing.T) {
	day, err := state.ParseTime("2024-01-02")
	require.NoError(t, err)
	for typ, tt := range map[string]struct {
		set  any // by name, as it is decoded from JSON
		want any
		bad  any
	}{
		"string":  {"a", "a", 1},
		"number":  {3, 3.0, "3"},
		"integer": {3.0, int64(3), 3.5},
		"boolean": {true, true, "true"},
		"date":    {"2024-01-02", day, "2 Jan"},
		"list":    {[]any{1, "a"}, []any{int64(1), "a"}, map[string]any{}},
		"object":  {map[string]any{"a": 1}, map[string]any{"a": int64(1)}, []any{}},
		"any":     {[]any{1}, []any{int64(1)}, make(chan int)},
	} {
		schema, err := state.ParseSchema([]byte(`{"fields":[{"name":"x","type":"` + typ + `"}]}`))
		require.NoError(t, err, typ)
		st := state.New(schema)
		require.NoError(t, st.KV().Set("x", tt.set), typ)
		got, ok := st.KV().Get("x")
		require.True(t, ok)
		require.Equal(t, tt.want, got, typ)
		if typ != "list" { // one element becomes a list of one
			require.ErrorIs(t, st.KV().Set("x", tt.bad), state.ErrWrongType, typ)
		}
	}
	schema, err := state.ParseSchema([]byte(`{"fields":[{"name":"x","type":"list"}]}`))
	require.NoError(t, err)
	st := state.New(schema)
	require.NoError(t, st.KV().Set("x", "a"))
	require.NoError(t, st.KV().Set("x", []any{"b"}))
	require.Equal(t, map[string]any{"x": []any{"a", "b"}}, st.KV().All(), "lists append by default")
}

func TestParseSchemaNamesEachWrongMember(t *testing.T) {
	for text, want := range map[string]string{
		``:                          "want a value, got the end of the text",
		`[]`:                        "want object, got array",
		`null`:                      "want object, got null",
		`{"fields":1}`:              "$.fields",
		`{"fields":[1]}`:            "$.fields[0]: want object, got number",
		`{"Fields":[]}`:             `$.Fields: unknown member`,
		`{"x y":1}`:                 `$["x y"]: unknown member`,
		`{"limits":1}`:              "$.limits: want object, got number",
		`{"limits":{"k":1}}`:        "$.limits.k: unknown member",
		`{"fields":[],"fields":[]}`: "$.fields",
		`{"fields":[{"name":"a","type":"string"},{"name":"b","type":"int"}]}`:    `$.fields[1].type: "int" is not one of any, boolean`,
		`{"fields":[{"name":"a","type":"string","Secret":true}]}`:                "$.fields[0].Secret: unknown member",
		`{"fields":[{"name":"a","type":"string","validate":"x"}]}`:               "$.fields[0].validate: unknown member",
		`{"fields":[{"name":"a","type":"string","handler":"sum"}]}`:              `$.fields[0].handler: no handler "sum" for type string`,
		`{"fields":[{"name":"a","type":"list","handler":"mine"}]}`:               `$.fields[0].handler: no handler "mine" for type list`,
		`{"fields":[{"name":"a","type":"string","read":"everyone"}]}`:            `$.fields[0].read: want "private", "public" or a list of names`,
		`{"fields":[{"name":"a","type":"string","read":[]}]}`:                    `$.fields[0].read: want "private"`,
		`{"fields":[{"name":"a","type":"string","secret":1}]}`:                   "secret",
		`{"fields":[{"type":"string"}]}`:                                         "no Name",
		`{"fields":[{"name":"a","type":"string"},{"name":"a","type":"number"}]}`: `"a": declared twice`,
		`{"fields":[{"name":"a","type":"string","owner":"x"}]}`:                  "need a Team",
		`{"fields":[{"name":"messages","type":"list"}]}`:                         `"messages": must be`,
		`{"fields":[]} x`: "nothing after",
	} {
		t.Run(want, func(t *testing.T) {
			schema, err := state.ParseSchema([]byte(text))
			require.Nil(t, schema, text)
			require.ErrorContains(t, err, want, text)
			require.True(t, strings.HasPrefix(err.Error(), "state: "), "%v", err)
		})
	}
}

func TestParseSchemaReportsAllWrongFieldsAtOnce(t *testing.T) {
	_, err := state.ParseSchema([]byte(`{"fields":[{"name":"a","type":"x"},{"name":"b","type":"y"},{"name":"c","type":"string","owner":"z"}]}`))
	for _, want := range []string{"$.fields[0].type", "$.fields[1].type", `"c": Owner`} {
		require.ErrorContains(t, err, want)
	}
}

func TestParseSchemaTakesHandlersByName(t *testing.T) {
	twice := state.NewHandler("twice", func(current string, _ bool, update string) (string, error) { return current + update + update, nil })
	schema, err := state.ParseSchema([]byte(`{"fields":[
		{"name":"s","type":"string","handler":"twice"}, {"name":"n","type":"number","handler":"sum"}, {"name":"i","type":"integer","handler":"max"},
		{"name":"low","type":"number","handler":"min"}, {"name":"l","type":"list","handler":"union"}, {"name":"k","type":"list","handler":"keep_last(2)"},
		{"name":"o","type":"object","handler":"merge_map"}, {"name":"first","type":"any","handler":"first_wins"}, {"name":"r","type":"list","handler":"replace"}
	]}`), twice)
	require.NoError(t, err)
	st := state.New(schema)
	for range 2 {
		for name, v := range map[string]any{"s": "a", "n": 1.5, "i": 4, "low": 3, "l": []any{"x"}, "k": []any{1, 2, 3}, "first": 1, "r": []any{1}} {
			require.NoError(t, st.KV().Set(name, v), name)
		}
	}
	require.NoError(t, st.KV().Set("i", 2))
	require.NoError(t, st.KV().Set("low", 7))
	require.NoError(t, st.KV().Set("first", 2))
	require.NoError(t, st.KV().Set("o", map[string]any{"a": 1}))
	require.NoError(t, st.KV().Set("o", map[string]any{"b": 2}))
	require.Equal(t, map[string]any{
		"s": "aaaa", "n": 3.0, "i": int64(4), "low": 3.0, "l": []any{"x"}, "k": []any{int64(2), int64(3)},
		"first": int64(1), "r": []any{int64(1)}, "o": map[string]any{"a": int64(1), "b": int64(2)},
	}, st.KV().All())
	_, err = state.ParseSchema([]byte(`{"fields":[{"name":"s","type":"number","handler":"twice"}]}`), twice)
	require.ErrorIs(t, err, state.ErrWrongType, "a handler of another type")
}

func TestSchemaMarshalsBackToTheSameJSON(t *testing.T) {
	own := state.NewHandler("own", func(_ string, _ bool, update string) (string, error) { return update, nil })
	for name, schema := range map[string]*state.Schema{
		"empty":      state.MustSchema(),
		"open":       state.MustSchema(state.AllowUndeclared),
		"rules":      state.MustSchema(ruleText, ruleCount, ruleCost, ruleTags, ruleDocs, ruleMeta, ruleDay, ruleAny, ruleTemp, ruleShort),
		"limits":     state.MustSchema(state.Limits{NameBytes: 1000, ValueBytes: -1, Depth: 3, Keys: 4, Results: 5, Journal: -6}),
		"empty team": state.MustSchema(state.Team{}, &state.Field[int]{Name: "private"}),
		"team": state.MustSchema(state.Team{"a": {"b", "c"}, "d": nil},
			&state.Field[string]{Name: "x", Description: "<d>", UpdateRules: "u", Owner: "a", Read: state.Public, Write: state.Only("c", "b"), Secret: true, NoCopy: true, Handler: own},
			&state.Field[[]state.Message]{Name: "messages", Owner: "d", Handler: state.Append[[]state.Message]()}),
	} {
		one, err := json.Marshal(schema)
		require.NoError(t, err, name)
		parsed, err := state.ParseSchema(one, own)
		require.NoError(t, err, "%s: %s", name, one)
		two, err := json.Marshal(parsed)
		require.NoError(t, err, name)
		require.Equal(t, string(one), string(two), name)
	}
}

// The handler would be lost, or another would stand in its place.
func TestSchemaDoesNotMarshalAHandlerThatCannotBeFoundAgain(t *testing.T) {
	sum := func(current int, _ bool, update int) (int, error) { return current + update, nil }
	for _, name := range []string{"", "replace", "append", "union", "merge_map", "sum", "max", "min", "first_wins", "last_wins", "keep_last(3)"} {
		_, err := json.Marshal(state.MustSchema(&state.Field[int]{Name: "n", Handler: state.NewHandler(name, sum)}))
		require.ErrorIs(t, err, state.ErrWrongType, name)
		require.ErrorContains(t, err, fmt.Sprintf(`"n": handler: want a handler with a name of its own, got %q`, name))
	}
	data, err := json.Marshal(state.MustSchema(&state.Field[int]{Name: "n", Handler: state.NewHandler("mine", sum)}))
	require.NoError(t, err)
	_, err = state.ParseSchema(data)
	require.ErrorContains(t, err, `no handler "mine"`)
}

// A schema that went through JSON must not give rights that it did not give.
func TestSchemaKeepsAccessControlThroughJSON(t *testing.T) {
	for name, team := range map[string]state.Team{"empty team": {}, "team": {"a": nil}} {
		data, err := json.Marshal(state.MustSchema(team, &state.Field[int]{Name: "private"}))
		require.NoError(t, err)
		schema, err := state.ParseSchema(data)
		require.NoError(t, err)
		st := ruleNew(t, schema, map[string]any{"private": 1})
		require.False(t, st.As("a").KV().Has("private"), "%s: %s", name, data)
	}
}

// A schema that went through JSON reads what the one of Go types has written.
func TestParsedSchemaImportsWhatTheGoSchemaExported(t *testing.T) {
	ip := netip.MustParseAddr("::1")
	for _, tt := range []struct {
		field state.Part
		value any
	}{
		{&state.Field[string]{Name: "x"}, "a"},
		{&state.Field[bool]{Name: "x"}, true},
		{&state.Field[uint8]{Name: "x"}, uint8(3)},
		{&state.Field[float32]{Name: "x"}, float32(0.1)},
		{&state.Field[[]string]{Name: "x"}, []string{"a"}},
		{&state.Field[[2]int]{Name: "x"}, [2]int{1, 2}},
		{&state.Field[map[string]int]{Name: "x"}, map[string]int{"a": 1}},
		{&state.Field[map[int]string]{Name: "x"}, map[int]string{1: "a"}},
		{&state.Field[ruleDoc]{Name: "x"}, ruleDoc{"t", nil}},
		{&state.Field[*ruleDoc]{Name: "x"}, &ruleDoc{"t", nil}},
		{&state.Field[state.Time]{Name: "x"}, state.TimeOf(time.Now())},
		{&state.Field[time.Time]{Name: "x"}, time.Now()},
		{&state.Field[time.Duration]{Name: "x"}, time.Second},
		{&state.Field[[]byte]{Name: "x"}, []byte("bytes")},
		{&state.Field[netip.Addr]{Name: "x"}, ip},
		{&state.Field[json.Number]{Name: "x"}, json.Number("1.0")},
		{&state.Field[json.RawMessage]{Name: "x"}, json.RawMessage(`[1]`)},
		{&state.Field[state.JSON]{Name: "x"}, state.JSON(`[1]`)},
		{&state.Field[any]{Name: "x"}, []any{"a"}},
	} {
		t.Run(fmt.Sprintf("%T", tt.value), func(t *testing.T) {
			schema := state.MustSchema(tt.field)
			text := ruleExport(t, ruleNew(t, schema, map[string]any{"x": tt.value}))
			back, err := state.Import(schema, []byte(text))
			require.NoError(t, err)
			require.Equal(t, text, ruleExport(t, back))
			data, err := json.Marshal(schema)
			require.NoError(t, err)
			parsed, err := state.ParseSchema(data)
			require.NoError(t, err, "%s", data)
			_, err = state.Import(parsed, []byte(text))
			require.NoError(t, err, "%s of %s", text, data)
		})
	}
}

func TestDateTakesRFC3339AndDays(t *testing.T) {
	for text, want := range map[string]string{
		"2024-02-29":                          "2024-02-29T00:00:00Z",
		"2024-02-29T12:00:00Z":                "2024-02-29T12:00:00Z",
		"2024-02-29T12:00:00+05:30":           "2024-02-29T06:30:00Z",
		"2024-02-29T12:00:00.123456789Z":      "2024-02-29T12:00:00.123456789Z",
		"0000-01-01":                          "0000-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999+00:00": "9999-12-31T23:59:59.999999999Z",
	} {
		d, err := state.ParseTime(text)
		require.NoError(t, err, text)
		require.Equal(t, want, d.Time().Format(time.RFC3339Nano), text)
		require.Equal(t, time.UTC, d.Time().Location(), "keeps UTC")
	}
	for _, text := range []string{"", "2024", "2023-02-29", "2024-13-01", "2024-2-9", "29.02.2024", "2024-02-29 12:00:00Z", "2024-02-29T12:00:00", "2024-02-29T24:00:00Z", " 2024-02-29", "2024-02-29\n", "now"} {
		_, err := state.ParseTime(text)
		require.ErrorIs(t, err, state.ErrWrongType, "%q", text)
		require.Error(t, new(state.Time).UnmarshalText([]byte(text)))
		require.ErrorIs(t, state.New(ruleSchema).KV().Set("day", text), state.ErrWrongType, "%q", text)
	}
}

func TestDateComparesByInstantAndKeepsUTC(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62167219200, 253402300799).Draw(rt, "seconds"), rapid.Int64Range(0, 999999999).Draw(rt, "nanos"))
		zone := time.FixedZone("zone", 60*rapid.IntRange(-23*60, 23*60).Draw(rt, "minutes"))
		d := state.TimeOf(at.In(zone))
		require.True(rt, d.Equal(state.TimeOf(at)))
		require.Equal(rt, d, state.TimeOf(at), "the same value, so that == works")
		require.False(rt, d.Equal(state.TimeOf(at.Add(1))))
		text, err := d.MarshalText()
		require.NoError(rt, err)
		back, err := state.ParseTime(string(text))
		require.NoError(rt, err)
		require.Equal(rt, d, back)
		st := state.New(ruleSchema)
		require.NoError(rt, ruleDay.Set(st, d))
		again, err := state.Import(ruleSchema, []byte(ruleExport(rt, st)))
		require.NoError(rt, err)
		require.Equal(rt, d, ruleDay.GetOr(again, state.Time{}))
	})
	_, err := state.TimeOf(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)).MarshalText()
	require.ErrorIs(t, err, state.ErrWrongType)
	require.ErrorIs(t, ruleDay.Set(state.New(ruleSchema), state.TimeOf(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC))), state.ErrWrongType)
	var zero state.Time
	require.True(t, zero.Time().IsZero())
}

func TestByNameAValueIsConvertedWhenNothingIsLost(t *testing.T) {
	type inner struct {
		N    int            `json:"n"`
		Any  any            `json:"any"`
		List []int          `json:"list"`
		Map  map[string]int `json:"map"`
		Ptr  *int           `json:"ptr"`
	}
	three := 3
	for _, tt := range []struct {
		field state.Part
		in    any
		want  any    // nil: a *TypeError
		path  string // of the error
	}{
		{&state.Field[int]{Name: "x"}, 3.0, 3, ""},
		{&state.Field[[]string]{Name: "x"}, []any{"a", 1}, nil, "$[1]"},
		{&state.Field[[]string]{Name: "x"}, "a", []string{"a"}, ""},
		{&state.Field[[]ruleDoc]{Name: "x"}, map[string]any{"title": "a", "tags": nil}, []ruleDoc{{"a", []string{}}}, ""},
		{&state.Field[map[string]int]{Name: "x"}, map[string]any{"a b": "1"}, nil, "$[…]"},
		{&state.Field[inner]{Name: "x"}, map[string]any{"n": 1.0, "any": []int{1}, "list": []any{1}, "map": map[string]any{"k": 1}, "ptr": 3}, inner{1, []any{int64(1)}, []int{1}, map[string]int{"k": 1}, &three}, ""},
		{&state.Field[inner]{Name: "x"}, map[string]any{"list": []any{1, 2, "x"}}, nil, "$.list[2]"},
		{&state.Field[*ruleDoc]{Name: "x"}, map[string]any{"title": "a", "tags": []any{}}, ruleDoc{"a", []string{}}, ""},
		{&state.Field[state.Time]{Name: "x"}, "2024-01-02", state.TimeOf(time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)), ""},
		{&state.Field[[]state.Message]{Name: "messages"}, []any{map[string]any{"type": "text", "role": "user", "content": "hi"}}, []state.Message{state.UserText("hi")}, ""},
		{&state.Field[[]state.Message]{Name: "messages"}, state.UserText("hi"), []state.Message{state.UserText("hi")}, ""},
		{&state.Field[[]state.Message]{Name: "messages"}, []any{map[string]any{"type": "text"}}, nil, "$[0]"},
	} {
		name := "x"
		if _, ok := tt.field.(*state.Field[[]state.Message]); ok {
			name = "messages"
		}
		for access, set := range map[string]func(*state.State) error{
			"Set":     func(st *state.State) error { return st.KV().Set(name, tt.in) },
			"Replace": func(st *state.State) error { return st.KV().Replace(name, tt.in) },
			"Patch":   func(st *state.State) error { return st.Patch(map[string]any{name: tt.in}) },
		} {
			what := fmt.Sprintf("%s of %T(%v) into %T", access, tt.in, tt.in, tt.field)
			st := state.New(state.MustSchema(tt.field))
			err := set(st)
			got, set := st.KV().Get(name)
			if tt.want == nil {
				var typeErr *state.TypeError
				require.ErrorAs(t, err, &typeErr, what)
				require.Equal(t, name, typeErr.Field, what)
				require.Equal(t, tt.path, typeErr.Path, what)
				require.NotEmpty(t, typeErr.Want, what)
				require.NotEmpty(t, typeErr.Got, what)
				require.False(t, set, what)
				continue
			}
			require.NoError(t, err, what)
			require.Empty(t, cmp.Diff(tt.want, got), what)
		}
	}
}

func TestUndeclaredValuesAreNormalisedWhenWrittenSoThatLiveEqualsReloaded(t *testing.T) {
	for _, tt := range []struct{ in, want any }{
		{ruleNamed("a"), "a"},
		{3, int64(3)},
		{3.0, 3.0}, {math.Copysign(0, -1), math.Copysign(0, -1)}, {json.Number("5.0"), 5.0}, {json.Number("1e3"), 1000.0}, {[]float64{5}, []any{5.0}},
		{uint64(math.MaxUint64), uint64(math.MaxUint64)},
		{[]string{"a"}, []any{"a"}},
		{map[int]string{1: "a"}, map[string]any{"1": "a"}},
		{[]byte("ab"), "YWI="},
		{ruleDoc{"t", nil}, map[string]any{"title": "t", "tags": []any{}}},
		{&ruleDoc{"t", []string{"x"}}, map[string]any{"title": "t", "tags": []any{"x"}}},
		{time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC), "2024-01-02T03:04:05Z"},
		{state.TimeOf(time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)), "2024-01-02"},
		{state.JSON(`{"a":1.0,"b":1,"c":1e2}`), map[string]any{"a": 1.0, "b": int64(1), "c": 100.0}},
		{json.RawMessage(`[null]`), []any{nil}},
		{[]any{map[string]any{"a": []any{int8(1)}}}, []any{map[string]any{"a": []any{int64(1)}}}},
	} {
		for access, st := range map[string]*state.State{"undeclared": state.New(nil), "any field": state.New(state.MustSchema(&state.Field[any]{Name: "x"}))} {
			what := fmt.Sprintf("%s: %T(%v)", access, tt.in, tt.in)
			require.NoError(t, st.KV().Set("x", tt.in), what)
			got, ok := st.KV().Get("x")
			require.True(t, ok)
			require.Equal(t, tt.want, got, what)
			var schema *state.Schema
			if access == "any field" {
				schema = state.MustSchema(&state.Field[any]{Name: "x"})
			}
			back, err := state.Import(schema, []byte(ruleExport(t, st)))
			require.NoError(t, err, what)
			got, ok = back.KV().Get("x")
			require.True(t, ok)
			require.Equal(t, tt.want, got, "%s reloaded", what)
		}
	}
}

func TestNilIsAValueOnlyWhereAnythingIs(t *testing.T) {
	for _, tt := range []struct {
		field    state.Part
		in, want any
		refused  bool
	}{
		{&state.Field[any]{Name: "x"}, nil, nil, false},
		{&state.Field[string]{Name: "x"}, nil, nil, true},
		{&state.Field[int]{Name: "x"}, nil, nil, true},
		{&state.Field[ruleDoc]{Name: "x"}, nil, nil, true},
		{&state.Field[state.Time]{Name: "x"}, nil, nil, true},
		{&state.Field[[]string]{Name: "x"}, nil, nil, true},
		{&state.Field[map[string]string]{Name: "x"}, nil, nil, true},
		{&state.Field[[]byte]{Name: "x"}, nil, nil, true},
		{&state.Field[*ruleDoc]{Name: "x"}, nil, nil, false},
		{&state.Field[[]string]{Name: "x"}, []string(nil), []string{}, false},
		{&state.Field[map[string]string]{Name: "x"}, map[string]string(nil), map[string]string{}, false},
		{&state.Field[*ruleDoc]{Name: "x"}, (*ruleDoc)(nil), nil, false},
	} {
		what := fmt.Sprintf("%T <- %T", tt.field, tt.in)
		schema := state.MustSchema(tt.field)
		st := state.New(schema)
		err := st.KV().Set("x", tt.in)
		if tt.refused {
			require.ErrorIs(t, err, state.ErrWrongType, what)
			require.False(t, st.KV().Has("x"), what)
			continue
		}
		require.NoError(t, err, what)
		require.True(t, st.KV().Has("x"), what)
		back, err := state.Import(schema, []byte(ruleExport(t, st)))
		require.NoError(t, err, what)
		for _, st := range []*state.State{st, back} {
			got, ok := st.KV().Get("x")
			require.True(t, ok, what)
			if v := reflect.ValueOf(tt.want); v.IsValid() && v.Kind() != reflect.Pointer {
				require.Zero(t, reflect.ValueOf(got).Len(), what)
				continue
			}
			require.Equal(t, tt.want, got, what)
		}
	}
	st := state.New(ruleSchema)
	require.NoError(t, ruleMaybe.Set(st, nil))
	require.True(t, ruleMaybe.Has(st), "a nil pointer is null")
}

func TestEachLimitIsALimitError(t *testing.T) {
	list := &state.Field[[]int]{Name: "list"}
	short := &state.Field[[]string]{Name: "short", MaxBytes: 20}
	schema := state.MustSchema(state.AllowUndeclared, list, short, state.Limits{NameBytes: 8, ValueBytes: 100, Depth: 3, Keys: 4, Results: 2})
	st := ruleNew(t, schema, map[string]any{"list": []int{1}, "short": []string{"0123456789"}})
	require.NoError(t, st.History().Append(state.InferenceResult{}))
	require.NoError(t, st.History().Append(state.InferenceResult{}))
	deep := []any{[]any{[]any{1}}}
	require.NoError(t, st.KV().Set("fits", deep))
	require.NoError(t, st.KV().Set("12345678", 1))
	for name, tt := range map[string]struct {
		write func() error
		want  state.LimitError
	}{
		"name":           {func() error { return st.KV().Set("123456789", 1) }, state.LimitError{Name: "NameBytes", Field: "123456789", Limit: 8, Got: 9}},
		"name by Patch":  {func() error { return st.Patch(map[string]any{"123456789": 1}) }, state.LimitError{Name: "NameBytes", Field: "123456789", Limit: 8, Got: 9}},
		"value":          {func() error { return st.KV().Set("fits", strings.Repeat("x", 200)) }, state.LimitError{Name: "ValueBytes", Field: "fits", Limit: 100, Got: 202}},
		"value grown":    {func() error { return list.Set(st, make([]int, 10)) }, state.LimitError{Name: "ValueBytes", Field: "list", Limit: 100, Got: 103}},
		"value elements": {func() error { return list.Set(st, make([]int, 1000)) }, state.LimitError{Name: "ValueBytes", Field: "list", Limit: 100, Got: 1000}},
		"depth":          {func() error { return st.KV().Set("fits", []any{deep}) }, state.LimitError{Name: "Depth", Field: "fits", Limit: 3, Got: 4}},
		"keys":           {func() error { return st.KV().Set("more", 1) }, state.LimitError{Name: "Keys", Limit: 4, Got: 5}},
		"keys by Patch":  {func() error { return st.Patch(map[string]any{"more": 1, "most": 1}) }, state.LimitError{Name: "Keys", Limit: 4, Got: 6}},
		"results":        {func() error { return st.History().Append(state.InferenceResult{}) }, state.LimitError{Name: "Results", Limit: 2, Got: 3}},
		"results reset":  {func() error { return st.History().Reset(make([]state.InferenceResult, 4)) }, state.LimitError{Name: "Results", Limit: 2, Got: 4}},
		"MaxBytes grown": {func() error { return short.Set(st, []string{"0123456789"}) }, state.LimitError{Name: "MaxBytes", Field: "short", Limit: 20, Got: 28}},
		"update":         {func() error { return list.Update(st, func([]int) ([]int, error) { return make([]int, 50), nil }) }, state.LimitError{Name: "ValueBytes", Field: "list", Limit: 100, Got: 452}},
	} {
		ruleUnchanged(t, st, func() {
			err := tt.write()
			var limit *state.LimitError
			require.ErrorAs(t, err, &limit, name)
			require.ErrorIs(t, err, state.ErrLimitExceeded, name)
			require.Equal(t, tt.want.Name, limit.Name, name)
			require.Equal(t, tt.want.Field, limit.Field, name)
			require.Equal(t, tt.want.Limit, limit.Limit, name)
			require.Greater(t, limit.Got, limit.Limit, name)
			if name != "update" && name != "value grown" && name != "MaxBytes grown" { // what counts is that it is too much
				require.Equal(t, tt.want.Got, limit.Got, name)
			}
		})
	}
	require.NoError(t, st.KV().Replace("fits", 1), "a key that is set needs no room")
	_, err := st.KV().Delete("fits")
	require.NoError(t, err)
	require.NoError(t, st.KV().Set("more", 1), "a deleted one makes room")
}

func TestLimitsZeroIsTheDefaultNegativeIsNone(t *testing.T) {
	text := strings.Repeat("x", 17<<20)
	name := strings.Repeat("n", 1000)
	deep := any(1)
	for range 100 {
		deep = []any{deep}
	}
	for _, tt := range []struct {
		limits state.Limits
		fits   bool
	}{{state.Limits{}, false}, {state.Limits{NameBytes: -1, ValueBytes: -1, Depth: -1, Keys: -1, Results: -1, Journal: -1}, true}} {
		st := state.New(state.MustSchema(state.AllowUndeclared, tt.limits))
		for key, v := range map[string]any{"value": text, name: 1, "deep": deep} {
			require.Equal(t, tt.fits, st.KV().Set(key, v) == nil, key)
		}
	}
}

func TestOneOfIsAUnion(t *testing.T) {
	f := &state.Field[any]{Name: "x", OneOf: []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[ruleDoc](), reflect.TypeFor[[]int]()}}
	schema := state.MustSchema(f)
	for _, tt := range []struct{ in, want any }{
		{"a", "a"}, {ruleDoc{"t", nil}, map[string]any{"title": "t", "tags": []any{}}},
		{map[string]any{"title": "t"}, map[string]any{"title": "t", "tags": []any{}}}, {[]any{1.0}, []any{int64(1)}},
	} {
		st := state.New(schema)
		require.NoError(t, f.Set(st, tt.in))
		require.Equal(t, tt.want, f.GetOr(st, nil))
		require.NoError(t, st.KV().Set("x", tt.in))
	}
	for _, bad := range []any{true, 1.5, map[string]any{"other": 1}, []any{"a"}, nil, map[string]any{"title": 1}} {
		st := state.New(schema)
		var typeErr *state.TypeError
		require.ErrorAs(t, f.Set(st, bad), &typeErr, "%v", bad)
		require.Equal(t, "x", typeErr.Field)
		require.ErrorIs(t, st.KV().Set("x", bad), state.ErrWrongType, "%v", bad)
	}
}

func TestValidateGetsTheResultOfTheMerge(t *testing.T) {
	var seen [][]string
	f := &state.Field[[]string]{Name: "x", Validate: func(tags []string) error {
		seen = append(seen, append([]string(nil), tags...))
		for i := range tags {
			tags[i] = "changed"
		}
		if len(tags) > 2 {
			return errors.New("too many")
		}
		return nil
	}}
	st := state.New(state.MustSchema(f))
	require.NoError(t, f.Set(st, []string{"a"}))
	require.NoError(t, f.Set(st, []string{"b"}))
	ruleUnchanged(t, st, func() {
		err := f.Set(st, []string{"c"})
		require.EqualError(t, err, `state: "x": too many`)
		require.ErrorContains(t, st.Patch(map[string]any{"x": []string{"1", "2", "3"}}), "too many")
		require.ErrorContains(t, f.Update(st, func(tags []string) ([]string, error) { return append(tags, "c"), nil }), "too many")
	})
	require.Equal(t, [][]string{{"a"}, {"a", "b"}, {"a", "b", "c"}, {"1", "2", "3"}, {"a", "b", "c"}}, seen)
	require.Equal(t, []string{"a", "b"}, f.GetOr(st, nil), "it got a copy")
	_, err := f.Delete(st)
	require.NoError(t, err, "a deletion has no result to validate")
}

func TestValidateMayWriteOtherFieldsButNotItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st *state.State
		var f *state.Field[string]
		other := &state.Field[int]{Name: "other"}
		f = &state.Field[string]{Name: "x", Validate: func(s string) error {
			if s == "own" {
				return f.Set(st, "again")
			}
			return other.Set(st, 1)
		}}
		st = state.New(state.MustSchema(f, other))
		require.NoError(t, f.Set(st, "other"))
		require.Equal(t, 1, other.GetOr(st, 0))
		start := time.Now()
		err := f.Set(st, "own")
		require.ErrorIs(t, err, state.ErrConflict)
		require.ErrorContains(t, err, `"x"`)
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, "other", f.GetOr(st, ""))
	})
}

func TestNoCopyStoresWhatIsGiven(t *testing.T) {
	shared := &state.Field[*ruleDoc]{Name: "shared", NoCopy: true}
	st := state.New(state.MustSchema(shared))
	doc := &ruleDoc{Title: "a"}
	require.NoError(t, shared.Set(st, doc))
	require.Same(t, doc, shared.GetOr(st, nil))
}

func TestDefaultLimits(t *testing.T) {
	st := state.New(state.MustSchema(state.AllowUndeclared, ruleCount))
	require.NoError(t, st.KV().Set("value", strings.Repeat("x", 16<<20-2)), "16 MiB with the quotes")
	require.ErrorIs(t, st.KV().Set("value", strings.Repeat("x", 16<<20-1)), state.ErrLimitExceeded)
	require.NoError(t, st.KV().Set("deep", hostileDeep(64)))
	require.ErrorIs(t, st.KV().Set("deep", hostileDeep(65)), state.ErrLimitExceeded)
	require.NoError(t, st.KV().Set(strings.Repeat("n", 256), 1))
	require.ErrorIs(t, st.KV().Set(strings.Repeat("n", 257), 1), state.ErrLimitExceeded)
	for i := range 10_000 {
		require.NoError(t, ruleCount.Set(st, i))
	}
	_, err := st.At(st.Version() - 4096)
	require.NoError(t, err)
	_, err = st.At(st.Version() - 4096 - 500)
	require.ErrorIs(t, err, state.ErrCompacted)
}
