package state_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
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

func TestExportAndImportGiveTheSameState(t *testing.T) {
	st := ruleNew(t, ruleOpen, map[string]any{"text": "a", "tags": []string{"x", "y"}, "key": map[string]any{"a": []int{1}}, "z": 1.5})
	require.NoError(t, st.KV().Set("null", nil))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("hi")}))
	require.NoError(t, st.History().Append(ruleResult("1", "a")))
	require.NoError(t, st.History().Append(ruleResult("2", "b")))
	data := ruleExport(t, st)
	back, err := state.Import(ruleOpen, []byte(data))
	require.NoError(t, err)
	require.Equal(t, data, ruleExport(t, back))
	require.Equal(t, st.Version(), back.Version())
	require.Equal(t, st.KV().All(), back.KV().All())
	require.Empty(t, cmp.Diff(st.History().Results(), back.History().Results()))
	require.Equal(t, st.Describe(), back.Describe())
	require.Equal(t, st.Fields(), back.Fields())

	require.NoError(t, ruleTags.Set(back, []string{"z"}), "and it goes on")
	require.NoError(t, back.History().Append(ruleResult("3", "a")))
	require.Equal(t, st.Version()+2, back.Version())
	require.Equal(t, []string{"x", "y", "z"}, ruleTags.Or(back, nil))
	require.Equal(t, []string{"x", "y"}, ruleTags.Or(st, nil))
	_, err = back.At(st.Version())
	require.NoError(t, err)
	for _, err := range back.Changes(0) {
		require.ErrorIs(t, err, state.ErrCompacted, "the journal begins after the imported version")
		break
	}
	require.Len(t, ruleChanges(t, back, st.Version()), 3)
}

func TestExportIsWholeAndTheHostsOnly(t *testing.T) {
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
	require.Equal(t, "hunter2!", secret.Or(back, ""))
	require.Equal(t, 1, private.Or(back, 0))
	require.False(t, temp.Has(back))
	for _, agent := range []string{"a", "b", "", "stranger"} {
		_, err := st.As(agent).Export()
		require.ErrorIs(t, err, state.ErrDenied, agent)
	}
}

func TestVersionsOfBoundHandlesSurviveExport(t *testing.T) {
	fields := map[string]*state.Field[int]{}
	parts := []state.Part{state.Team{"a": {"b", "c"}}}
	for name, readers := range map[string][]string{"a": {"a"}, "ab": {"a", "b"}, "bc": {"b", "c"}, "none": nil} {
		fields[name] = &state.Field[int]{Name: name, Read: state.Only(readers...)}
		parts = append(parts, fields[name])
	}
	schema := state.MustSchema(parts...)
	property.Check(t, func(rt *rapid.T) {
		st := state.New(schema)
		for range rapid.IntRange(0, 20).Draw(rt, "writes") {
			patch := map[string]any{}
			for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "bc", "none"}), 1, 4).Draw(rt, "fields") {
				patch[name] = 1
			}
			require.NoError(rt, st.Patch(patch))
		}
		back, err := state.Import(schema, []byte(ruleExport(rt, st)))
		require.NoError(rt, err)
		for range 2 {
			require.Equal(rt, st.Version(), back.Version())
			for _, agent := range []string{"a", "b", "c", "", "x"} {
				require.Equal(rt, st.As(agent).Version(), back.As(agent).Version(), agent)
			}
			require.NoError(rt, fields["ab"].Set(st, 2))
			require.NoError(rt, fields["ab"].Set(back, 2))
		}
	})
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
		`"n": $: want`: state.MustSchema(&state.Field[bool]{Name: "n"}, &state.Field[string]{Name: "s"}),
		`"s": $: want`: state.MustSchema(&state.Field[int]{Name: "n"}, &state.Field[int]{Name: "s"}),
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
		``:                                    "$",
		`null`:                                "$: want object, got null",
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
		`{"format":1,"fields":[{"name":"text","value":1}]}`:                                                                         `"text": $: want string, got number`,
		`{"format":1,"fields":[{"name":"text"}]}`:                                                                                   `"text"`,
		`{"format":1,"fields":[{"value":1}]}`:                                                                                       `""`,
		`{"format":1,"fields":[{"name":"tags","value":["a",1]}]}`:                                                                   `"tags": $[1]: want string`,
		`{"format":1,"fields":[{"name":"text","value":"a"},{"name":"text","value":"b"}]}`:                                           `"text": $: given twice`,
		`{"format":1,"fields":[{"name":"text","value":"a"}],"keys":[{"name":"text","value":"b"}]}`:                                  `"text": $: given twice`,
		`{"format":1,"fields":[{"name":"key","value":"a"}]}`:                                                                        `"key": unknown field`,
		`{"format":1,"fields":[{"name":"messages","value":[]}]}`:                                                                    `"messages"`,
		`{"format":1,"fields":[{"name":"text","value":"a","secret":true}]}`:                                                         `$.fields[0].secret: unknown member`,
		`{"format":1,"fields":[{"name":"text","value":"a","VALUE":"b"}]}`:                                                           `$.fields[0].VALUE: unknown member`,
		`{"format":1,"fields":[{"name":"short","value":"more than ten bytes"}]}`:                                                    `"short": limit MaxBytes`,
		`{"format":1,"keys":[{"name":"a\u0000b","value":1}]}`:                                                                       `one line of visible text`,
		`{"format":1,"keys":[{"name":"","value":1}]}`:                                                                               `a name`,
		`{"format":1,"keys":[{"name":"12345678901","value":1}]}`:                                                                    `limit NameBytes`,
		`{"format":1,"keys":[{"name":"a","value":1e400}]}`:                                                                          `"a": $`,
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
