package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// The tests of this file prove that Import restores what Export wrote, for values
// of every type, that ephemeral fields are left out, and that damaged or foreign
// documents are errors which change nothing.

type exportColour int

func (c exportColour) MarshalText() ([]byte, error) {
	return []byte(fmt.Sprint("colour ", int(c))), nil
}
func (c *exportColour) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "colour %d", (*int)(c))
	return err
}

type exportBase struct {
	Base string `json:"base"`
}

type exportAll struct {
	exportBase
	Bool    bool                    `json:"bool"`
	Int     int64                   `json:"int"`
	Uint    uint64                  `json:"uint"`
	Float   float64                 `json:"float"`
	Single  float32                 `json:"single"`
	Text    string                  `json:"text"`
	Bytes   []byte                  `json:"bytes"`
	List    []exportBase            `json:"list"`
	Array   [2]int                  `json:"array"`
	Map     map[string][]int        `json:"map"`
	Ints    map[int]string          `json:"ints"`
	Colours map[exportColour]string `json:"colours"`
	Colour  exportColour            `json:"colour"`
	Ptr     *int                    `json:"ptr"`
	Time    time.Time               `json:"time"`
	Date    state.Time              `json:"date"`
	Addr    netip.Addr              `json:"addr"`
	Any     any                     `json:"any"`
	Number  json.Number             `json:"number"`
	JSON    state.JSON              `json:"json"`
	Message state.Message           `json:"message"`
	Omitted []string                `json:"omitted,omitempty"`
}

func exportRoundTrip[T any](t *testing.T, values ...T) {
	t.Helper()
	f := &state.Field[T]{Name: "x"}
	schema := state.MustSchema(f)
	for _, v := range values {
		t.Run(fmt.Sprintf("%T", v), func(t *testing.T) {
			st := state.New(schema)
			require.NoError(t, f.Replace(st, v), "%T %v", v, v)
			data := ruleExport(t, st)
			back, err := state.Import(schema, []byte(data))
			require.NoError(t, err, "%T %v: %s", v, v, data)
			live, err := f.Get(st)
			require.NoError(t, err)
			got, err := f.Get(back)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(live, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.AllowUnexported(exportAll{}), cmpopts.EquateEmpty()), "%T live differs from reloaded: %s", v, data)
			require.Equal(t, data, ruleExport(t, back))
		})
	}
}

func TestEveryTypeGoesThroughExportAndImport(t *testing.T) {
	three := 3
	exportRoundTrip(t, true, false)
	exportRoundTrip(t, 0, -1, math.MaxInt64, math.MinInt64, 9007199254740993)
	exportRoundTrip[uint64](t, 0, math.MaxUint64)
	exportRoundTrip[int8](t, -128, 127)
	exportRoundTrip(t, 0.1, 1e300, 5e-324, math.Copysign(0, -1), math.MaxFloat64, 1e21, 1e-7, 123456789.125)
	exportRoundTrip[float32](t, 0.1, math.MaxFloat32, 1e-40)
	exportRoundTrip(t, "", "a", "<b> & \"q\" \\ \n\t\x00\x1f\u2028\ufeff", "😀 e\u0301 \U0010ffff", strings.Repeat("x", 100_000))
	exportRoundTrip(t, []byte{}, []byte{0, 255}, nil)
	exportRoundTrip(t, []string{}, nil, []string{"", "a"})
	exportRoundTrip(t, []any{}, []any{nil, true, int64(1), 1.5, "a", []any{}, map[string]any{"": nil}})
	exportRoundTrip(t, map[string]any{}, nil, map[string]any{"a": map[string]any{"b": nil}, "A": int64(1), "": ""})
	exportRoundTrip(t, map[int]string{-1: "a", 0: ""})
	exportRoundTrip(t, &three, nil)
	exportRoundTrip(t, &ruleDoc{"a", []string{"b"}}, nil)
	exportRoundTrip(t, time.Time{}, time.Date(2024, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600)).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 999, time.UTC))
	exportRoundTrip(t, state.Time{}, state.TimeOf(time.Date(2024, 1, 2, 3, 4, 5, 6, time.UTC)))
	exportRoundTrip(t, time.Second)
	exportRoundTrip(t, exportColour(3))
	exportRoundTrip(t, netip.MustParseAddr("::1"), netip.Addr{})
	exportRoundTrip(t, json.Number("1.0"), json.Number("123456789012345678901234567890"), json.Number("0"))
	exportRoundTrip(t, state.JSON(`{"a":1.0}`), state.JSON(`null`), state.JSON(`"x"`))
	exportRoundTrip(t, state.Message(state.UserText("a")))
	exportRoundTrip(t, [][]string{{"a"}, {}})
	exportRoundTrip(t, []ruleDoc{{"a", []string{"x"}}, {}})
	exportRoundTrip[any](t, nil, true, "a", int64(1), uint64(math.MaxUint64), 1.5, 1e300, []any{int64(1)}, map[string]any{"a": nil})
	exportRoundTrip(t, exportAll{
		exportBase{"b"}, true, math.MinInt64, math.MaxUint64, 0.1, 0.1, "t", []byte{1}, []exportBase{{"l"}}, [2]int{1, 2}, map[string][]int{"a": {1}},
		map[int]string{1: "a"}, map[exportColour]string{2: "c"}, 3, &three, time.Unix(1, 2).UTC(), state.TimeOf(time.Unix(3, 0)), netip.MustParseAddr("1.2.3.4"),
		[]any{int64(1)}, "1.0", `[1.0]`, state.UserText("m"), nil,
	})
}

func TestExportIsWhole(t *testing.T) {
	secret := &state.Field[string]{Name: "secret", Secret: true, Owner: "a"}
	private := &state.Field[int]{Name: "private"}
	temp := &state.Field[string]{Name: "temp", Ephemeral: true}
	schema := state.MustSchema(state.Team{"a": {"b"}}, secret, private, temp)
	st := ruleNew(t, schema, map[string]any{"secret": "hunter2!", "private": 1, "temp": "gone"})
	data := ruleExport(t, st)
	require.Contains(t, data, "hunter2!", "secrets included")
	require.NotContains(t, data, "gone", "ephemeral fields are never exported")
	back, err := state.Import(schema, []byte(data))
	require.NoError(t, err)
	require.Equal(t, "hunter2!", secret.GetOr(back, ""))
	require.Equal(t, 1, private.GetOr(back, 0))
	require.False(t, temp.Has(back))
}

func TestATransactionThatExportsHasReadTheHistory(t *testing.T) {
	st := state.New(ruleSchema)
	runs := 0
	var exported []byte
	require.NoError(t, st.Update(func(tx *state.State) (err error) {
		if runs++; runs == 1 {
			defer func() { require.NoError(t, st.History().Append(state.InferenceResult{ID: "new"})) }()
		}
		if exported, err = tx.Export(); err != nil {
			return err
		}
		return ruleText.Set(tx, "exported")
	}))
	require.Equal(t, 2, runs)
	require.Contains(t, string(exported), `"id":"new"`)
}

func TestImportConvertsToTheSchemasTypesWhenNothingIsLost(t *testing.T) {
	old := ruleNew(t, state.MustSchema(&state.Field[int]{Name: "n"}, &state.Field[string]{Name: "s"}), map[string]any{"n": 3, "s": "2024-01-02"})
	data := []byte(ruleExport(t, old))
	wider := state.MustSchema(&state.Field[float64]{Name: "n"}, &state.Field[state.Time]{Name: "s"}, &state.Field[int]{Name: "new"})
	back, err := state.Import(wider, data)
	require.NoError(t, err)
	n, _ := back.KV().Get("n")
	require.Equal(t, 3.0, n)
	for want, schema := range map[string]*state.Schema{
		`"n": want`:    state.MustSchema(&state.Field[bool]{Name: "n"}, &state.Field[string]{Name: "s"}),
		`"s": want`:    state.MustSchema(&state.Field[int]{Name: "n"}, &state.Field[int]{Name: "s"}),
		`"n": unknown`: state.MustSchema(&state.Field[string]{Name: "s"}),
	} {
		_, err := state.Import(schema, data)
		require.ErrorContains(t, err, want)
	}
}

func TestImportNamesWhatIsDamaged(t *testing.T) {
	schema := state.MustSchema(state.AllowUndeclared, ruleText, ruleTags, ruleTemp, ruleShort, state.Limits{Keys: 3, Results: 1, Depth: 4, NameBytes: 10, ValueBytes: 100})
	const user = `{"type":"text","role":"user","content":"a"}`
	for text, want := range map[string]string{
		``:                                    "want a value, got the end of the text",
		`null`:                                "want object, got null",
		`[]`:                                  "",
		`{}`:                                  "JSON that Export has not written",
		`{"format":"1"}`:                      "format",
		`{"format":2,"version":1,"later":{}}`: "format 2; this package reads format 1",
		`{"format":1} x`:                      "nothing after",
		`{"format":1,"format":1}`:             "format",
		`{"format":1,"extra":1}`:              "$.extra: unknown member",
		`{"format":1,"Version":3}`:            "$.Version: unknown member",
		`{"format":1,"version":-1}`:           "version",
		`{"format":1,"version":1.5}`:          "version",
		`{"format":1,"version":18446744073709551615}`:                                                                               "$.version",
		`{"format":1,"fields":1}`:                                                                                                   "fields",
		`{"format":1,"fields":[{"name":"text","value":1}]}`:                                                                         `"text": want string, got number`,
		`{"format":1,"fields":[{"name":"text"}]}`:                                                                                   `"text"`,
		`{"format":1,"fields":[{"value":1}]}`:                                                                                       `""`,
		`{"format":1,"fields":[{"name":"tags","value":["a",1]}]}`:                                                                   `"tags": $[1]: want string`,
		`{"format":1,"fields":[{"name":"text","value":"a"},{"name":"text","value":"b"}]}`:                                           `"text": given twice`,
		`{"format":1,"fields":[{"name":"text","value":"a"}],"keys":[{"name":"text","value":"b"}]}`:                                  `"text": given twice`,
		`{"format":1,"fields":[{"name":"key","value":"a"}]}`:                                                                        `"key": unknown field`,
		`{"format":1,"fields":[{"name":"messages","value":[]}]}`:                                                                    `"messages"`,
		`{"format":1,"fields":[{"name":"text","value":"a","secret":true}]}`:                                                         `$.fields[0].secret: unknown member`,
		`{"format":1,"fields":[{"name":"text","value":"a","VALUE":"b"}]}`:                                                           `$.fields[0].VALUE: unknown member`,
		`{"format":1,"fields":[{"name":"short","value":"more than ten bytes"}]}`:                                                    `"short": limit MaxBytes`,
		`{"format":1,"keys":[{"name":"a\u0000b","value":1}]}`:                                                                       `one line of visible text`,
		`{"format":1,"keys":[{"name":"","value":1}]}`:                                                                               `a name`,
		`{"format":1,"keys":[{"name":"12345678901","value":1}]}`:                                                                    `limit NameBytes`,
		`{"format":1,"keys":[{"name":"a","value":1e400}]}`:                                                                          `"a": want a number`,
		`{"format":1,"keys":[{"name":"a","value":[[[[[1]]]]]}]}`:                                                                    `limit Depth`,
		`{"format":1,"keys":[{"name":"a","value":"` + strings.Repeat("x", 200) + `"}]}`:                                             `limit ValueBytes`,
		`{"format":1,"keys":[{"name":"a","value":1},{"name":"b","value":1},{"name":"c","value":1},{"name":"d","value":1}]}`:         "limit Keys",
		`{"format":1,"keys":[{"name":"a","value":"\ud800"}]}`:                                                                       "$",
		`{"format":1,"messages":[1]}`:                                                                                               "$.messages[0]",
		`{"format":1,"messages":[` + user + `,{"type":"text"}]}`:                                                                    "$.messages[1]",
		`{"format":1,"messages":[` + user + `,` + user + `]}`:                                                                       "$.messages",
		`{"format":1,"conversation":[[0,1]]}`:                                                                                       "$.conversation",
		`{"format":1,"conversation":[[0]],"messages":[` + user + `]}`:                                                               "pair",
		`{"format":1,"conversation":[[1,0]],"messages":[` + user + `]}`:                                                             "$.conversation",
		`{"format":1,"conversation":[[-1,1]],"messages":[` + user + `]}`:                                                            "$.conversation",
		`{"format":1,"results":[{"agent":"a","prompt":[[0,2]],"created_at":"2024-01-02T03:04:05Z"}],"messages":[` + user + `]}`:     "$.results[0].prompt",
		`{"format":1,"results":[{"agent":"a","tool_calls":[[0,1]],"created_at":"2024-01-02T03:04:05Z"}],"messages":[` + user + `]}`: "$.results[0].tool_calls",
		`{"format":1,"results":[{"agent":"a","raw_base64":"!","created_at":"2024-01-02T03:04:05Z"}]}`:                               "$.results[0].raw_base64",
		`{"format":1,"results":[{"agent":"a","Agent":"b","created_at":"2024-01-02T03:04:05Z"}]}`:                                    "$.results[0].Agent: unknown member",
		`{"format":1,"results":[{"agent":"a","created_at":"yesterday"}]}`:                                                           "",
		`{"format":1,"results":[{"agent":"a","started_at":"yesterday","created_at":"2024-01-02T03:04:05Z"}]}`:                       "$.results[0].started_at",
		`{"format":1,"results":[{"created_at":"2024-01-02T03:04:05Z"},{"created_at":"2024-01-02T03:04:05Z"}]}`:                      "limit Results",
	} {
		t.Run(want, func(t *testing.T) {
			st, err := state.Import(schema, []byte(text))
			require.Nil(t, st, text)
			require.Error(t, err, text)
			require.ErrorContains(t, err, want, text)
			require.True(t, strings.HasPrefix(err.Error(), "state: "), "%v", err)
		})
	}
}

func TestTruncatedExportsAreRefused(t *testing.T) {
	st := ruleNew(t, ruleOpen, map[string]any{"text": "a", "tags": []string{"x"}, "key": []any{1, "b"}})
	require.NoError(t, st.History().Append(ruleResult("1", "a")))
	data := ruleExport(t, st)
	for i := range len(data) {
		_, err := state.Import(ruleOpen, []byte(data[:i]))
		require.Error(t, err, "%s", data[:i])
	}
}

// Whatever may be stored can be exported and imported by the same schema.
func TestWhatALimitAllowsCanBeReloaded(t *testing.T) {
	deep := any(1)
	for range 5000 {
		deep = []any{deep}
	}
	schema := state.MustSchema(state.AllowUndeclared, state.Limits{Depth: -1, ValueBytes: -1, NameBytes: -1})
	st := state.New(schema)
	require.NoError(t, st.KV().Set("deep", deep))
	require.NoError(t, st.KV().Set(strings.Repeat("n", 100_000), strings.Repeat("x", 17<<20)))
	data, err := st.Export()
	require.NoError(t, err)
	back, err := state.Import(schema, data)
	require.NoError(t, err)
	require.Equal(t, string(data), ruleExport(t, back))
}

func TestExportOfAnEmptyState(t *testing.T) {
	require.JSONEq(t, `{"format":1,"version":0}`, ruleExport(t, state.New(nil)))
	for _, text := range []string{`{"format":1,"version":0}`, ` { "version" : 7 , "format" : 1 } `} {
		st, err := state.Import(nil, []byte(text))
		require.NoError(t, err)
		require.Empty(t, st.KV().Keys())
	}
}

// exported returns a state with values, exported.
func exported(t *testing.T, values map[string]any, parts ...state.Part) []byte {
	t.Helper()
	data, err := ruleNew(t, state.MustSchema(parts...), values).Export()
	require.NoError(t, err)
	return data
}

// centsOf returns the amount that an older program wrote as a text of euros.
func centsOf(text state.JSON) (int, error) {
	var euros string
	if err := json.Unmarshal([]byte(text), &euros); err != nil {
		return 0, errors.New("want a text of euros")
	}
	amount, err := strconv.ParseFloat(euros, 64)
	return int(100 * amount), err
}

func TestImportLoadsFormerNamesAndForms(t *testing.T) {
	text := func(name string) state.Part { return &state.Field[string]{Name: name} }
	list := func(name string) state.Part { return &state.Field[[]string]{Name: name} }
	for _, tt := range []struct {
		name   string
		old    []state.Part
		values map[string]any
		field  state.Part
		want   any
	}{
		{"a former name", []state.Part{text("order")}, map[string]any{"order": "W1"},
			&state.Field[string]{Name: "order_id", Was: []string{"order"}}, "W1"},
		{"the oldest of former names", []state.Part{text("order")}, map[string]any{"order": "W1"},
			&state.Field[string]{Name: "order_id", Was: []string{"order_no", "order"}}, "W1"},
		{"the present name", []state.Part{text("order_id")}, map[string]any{"order_id": "W1"},
			&state.Field[string]{Name: "order_id", Was: []string{"order"}}, "W1"},
		{"a list under a former name", []state.Part{list("remarks")}, map[string]any{"remarks": []string{"a", "b"}},
			&state.Field[[]string]{Name: "notes", Was: []string{"remarks"}}, []string{"a", "b"}},
		{"an undeclared key", []state.Part{state.AllowUndeclared}, map[string]any{"order": "W1"},
			&state.Field[string]{Name: "order_id", Was: []string{"order"}}, "W1"},
		{"a former form", []state.Part{text("amount")}, map[string]any{"amount": "12.50"},
			&state.Field[int]{Name: "amount", Convert: centsOf}, 1250},
		{"a value that fits is not converted", []state.Part{&state.Field[int]{Name: "amount"}}, map[string]any{"amount": 7},
			&state.Field[int]{Name: "amount", Convert: centsOf}, 7},
		{"a former name and form", []state.Part{text("euros")}, map[string]any{"euros": "12.50"},
			&state.Field[int]{Name: "cents", Was: []string{"euros"}, Convert: centsOf}, 1250},
		{"a value under a former name is always converted", []state.Part{&state.Field[int]{Name: "euros"}}, map[string]any{"euros": 12},
			&state.Field[int]{Name: "cents", Was: []string{"euros"}, Convert: func(text state.JSON) (int, error) {
				euros, err := strconv.Atoi(string(text))
				return 100 * euros, err
			}}, 1200},
		{"a converted list", []state.Part{text("tag")}, map[string]any{"tag": "a"},
			&state.Field[[]string]{Name: "tag", Convert: func(text state.JSON) ([]string, error) {
				var tag string
				err := json.Unmarshal([]byte(text), &tag)
				return []string{tag}, err
			}}, []string{"a"}},
		{"a secret", []state.Part{&state.Field[string]{Name: "card", Secret: true}}, map[string]any{"card": "4242"},
			&state.Field[string]{Name: "card_number", Was: []string{"card"}, Secret: true}, "4242"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := exported(t, tt.values, tt.old...)
			schema := state.MustSchema(tt.field)
			st, err := state.Import(schema, data)
			require.NoError(t, err)
			got, ok := st.KV().Get(st.Fields()[1].Name)
			require.True(t, ok)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestImportRefusesWhatConvertRefuses(t *testing.T) {
	field := func(convert func(state.JSON) (int, error), secret bool) *state.Field[int] {
		return &state.Field[int]{Name: "amount", Was: []string{"euros"}, Convert: convert, Secret: secret}
	}
	panics := func(state.JSON) (int, error) { panic("4242") }
	data := exported(t, map[string]any{"euros": "much, 4242"}, &state.Field[string]{Name: "euros"})
	for _, tt := range []struct {
		field *state.Field[int]
		want  string
	}{
		{field(centsOf, false), `state: import: "amount": from Convert: strconv.ParseFloat: parsing "much, 4242": invalid syntax`},
		{field(centsOf, true), `state: import: "amount": refused by Convert`},
		{field(panics, false), `state: import: "amount": Convert panicked with a string`},
	} {
		schema := state.MustSchema(tt.field)
		_, err := state.Import(schema, data)
		require.EqualError(t, err, tt.want)
	}
	both := exported(t, map[string]any{"euros": "1", "amount": 2}, &state.Field[string]{Name: "euros"}, &state.Field[int]{Name: "amount"})
	_, err := state.Import(state.MustSchema(field(centsOf, false)), both)
	require.ErrorIs(t, err, state.ErrWrongType)
	require.ErrorContains(t, err, "given twice")
}

func TestImportNamesTheFieldThatItRefuses(t *testing.T) {
	data := exported(t, map[string]any{"a": "x", "b": "y"}, &state.Field[string]{Name: "a"}, &state.Field[string]{Name: "b"})
	_, err := state.Import(state.MustSchema(&state.Field[int]{Name: "a"}), data)
	require.EqualError(t, err, `state: import: "a": want integer, got string`)
	_, err = state.Import(state.MustSchema(&state.Field[string]{Name: "a"}), data)
	require.ErrorIs(t, err, state.ErrUnknownField)
	require.EqualError(t, err, `state: import: "b": unknown field: declare it, or name it in Was of the field that has its values now`)
}

func TestAccessByAFormerNameIsAnError(t *testing.T) {
	for name, parts := range map[string][]state.Part{
		"closed": {&state.Field[string]{Name: "order_id", Was: []string{"order"}}},
		"open":   {&state.Field[string]{Name: "order_id", Was: []string{"order"}}, state.AllowUndeclared},
	} {
		st := state.New(state.MustSchema(parts...))
		err := st.KV().Set("order", "W1")
		require.ErrorIs(t, err, state.ErrUnknownField, name)
		require.EqualError(t, err, `state: "order": unknown field, it is named "order_id" now`, name)
		require.False(t, st.KV().Has("order"))
	}
}

func TestSchemaMistakesOfWas(t *testing.T) {
	for _, tt := range []struct {
		parts []state.Part
		want  string
	}{
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{"b"}}, &state.Field[int]{Name: "b"}}, `field "a": Was: "b" is a name of "b"`},
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{"c"}}, &state.Field[int]{Name: "b", Was: []string{"c"}}}, `field "b": Was: "c" is a name of "a"`},
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{"c", "c"}}}, `field "a": Was: "c" is given twice`},
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{"a"}}}, `field "a": Was: "a" is its present name`},
		{[]state.Part{&state.Field[int]{Name: "a", Was: []string{""}}}, `state: field "a": Was: "": name: want a name, got nothing`},
		{[]state.Part{&state.Field[[]state.Message]{Name: "messages", Was: []string{"talk"}}}, `field "messages": cannot have Was or Convert`},
	} {
		_, err := state.NewSchema(tt.parts...)
		require.ErrorContains(t, err, tt.want)
	}
}

func TestSchemaKeepsFormerNamesThroughJSON(t *testing.T) {
	data, err := json.Marshal(state.MustSchema(&state.Field[string]{Name: "order_id", Was: []string{"order", "no"}}))
	require.NoError(t, err)
	schema, err := state.ParseSchema(data)
	require.NoError(t, err)
	require.Equal(t, []string{"order", "no"}, state.New(schema).Fields()[1].Was)
	st, err := state.Import(schema, exported(t, map[string]any{"no": "W1"}, &state.Field[string]{Name: "no"}))
	require.NoError(t, err)
	require.True(t, st.KV().Has("order_id"))
}
