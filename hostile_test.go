package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/cost"
)

// The tests of this file prove that input from models and networks, however large,
// deep or malformed, is refused with a typed error, at a bounded cost, and changes
// nothing.

// hostileTyped reports whether an error says what was wrong in a type or a
// sentinel of the package.
func hostileTyped(err error) bool {
	var typeErr *state.TypeError
	var limitErr *state.LimitError
	return errors.As(err, &typeErr) && errors.Is(err, state.ErrWrongType) || errors.As(err, &limitErr) && errors.Is(err, state.ErrLimitExceeded)
}

func hostileDeep(n int) any {
	v := any(1)
	for range n {
		v = []any{v}
	}
	return v
}

func hostileDeepMap(n int) any {
	v := any(1)
	for range n {
		v = map[string]any{"a": v}
	}
	return v
}

type hostileLoop struct {
	Next *hostileLoop   `json:"next"`
	Any  any            `json:"any"`
	List []*hostileLoop `json:"list"`
}

func hostileValues() map[string]any {
	list := []any{1}
	list[0] = list
	object := map[string]any{}
	object["self"] = object
	var pointer any
	pointer = &pointer
	loop := &hostileLoop{}
	loop.Next = loop
	mixed := map[string]any{}
	mixed["list"] = []any{1, map[string]any{"back": mixed}}
	return map[string]any{
		"a cyclic list": list, "a cyclic map": object, "a cyclic pointer": pointer, "a cyclic struct": loop, "a cyclic mixture": mixed,
		"100 000 lists": hostileDeep(100_000), "100 000 maps": hostileDeepMap(100_000), "65 lists": hostileDeep(65),
		"NaN": math.NaN(), "+Inf": math.Inf(1), "-Inf": math.Inf(-1), "NaN inside": []any{1, map[string]any{"x": math.NaN()}}, "NaN32": float32(math.NaN()),
		"1e400": json.Number("1e400"), "no number": json.Number("1_000"), "an endless exponent": json.Number("1e999999999999999999999"),
		"invalid UTF-8": "a\xffb", "an invalid key": map[string]any{"a\xff": 1}, "half a surrogate": string([]byte{0xed, 0xa0, 0x80}), "invalid UTF-8 inside": []string{"a", "\xc0\x80"},
		"a chan": make(chan int), "a func": func() {}, "a chan inside": []any{map[string]any{"x": make(chan int)}}, "a complex": complex(1, 2),
		"64 MiB": strings.Repeat("x", 64<<20), "64 MiB in parts": slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 64), "64 Mi elements": make([]bool, 64<<20), "raw that is not JSON": json.RawMessage(`{"a":`),
		"raw with a double key": json.RawMessage(`{"a":1,"a":2}`), "raw with half a surrogate": json.RawMessage(`"\ud800"`), "raw of depth 100 000": json.RawMessage(strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)),
		"a method that panics": hostilePanic{}, "a method that lies": hostileLiar{},
	}
}

type hostilePanic struct{}

func (hostilePanic) MarshalJSON() ([]byte, error) { panic("hunter2!") }

type hostileLiar struct{}

func (hostileLiar) MarshalJSON() ([]byte, error) { return []byte(`{"a":NaN}`), nil }

func TestHostileValuesAreTypedErrorsAndChangeNothing(t *testing.T) {
	anything := &state.Field[any]{Name: "anything"}
	list := &state.Field[[]any]{Name: "list"}
	object := &state.Field[map[string]any]{Name: "object", Handler: state.MergeMap[map[string]any]()}
	st := ruleNew(t, state.MustSchema(anything, list, object, state.AllowUndeclared), map[string]any{"anything": 1, "list": []any{1}, "object": map[string]any{"a": 1}, "key": 1})
	for name, v := range hostileValues() {
		t.Run(name, func(t *testing.T) {
			ruleUnchanged(t, st, func() {
				for access, write := range map[string]func() error{
					"Field.Set":     func() error { return anything.Set(st, v) },
					"Field.Update":  func() error { return anything.Update(st, func(any) (any, error) { return v, nil }) },
					"list element":  func() error { return list.Set(st, []any{v}) },
					"list Replace":  func() error { return list.Replace(st, []any{1, v}) },
					"map value":     func() error { return object.Set(st, map[string]any{"x": v}) },
					"KV.Set":        func() error { return st.KV().Set("anything", v) },
					"KV.Set list":   func() error { return st.KV().Set("list", []any{v}) },
					"undeclared":    func() error { return st.KV().Set("key", v) },
					"KV.SetWith":    func() error { return st.KV().SetWith("key", v, state.FirstWins[any]()) },
					"Patch":         func() error { return st.Patch(map[string]any{"key": v}) },
					"a transaction": func() error { return st.Update(func(tx *state.State) error { return tx.KV().Set("key", v) }) },
					"a branch": func() error {
						branch := st.Fork()
						return errors.Join(branch.KV().Set("key", v), st.Join(branch))
					},
				} {
					var err error
					allocated := cost.Allocated(func() { err = write() })
					require.Error(t, err, access)
					require.True(t, hostileTyped(err), "%s: %T %v", access, err, err)
					require.Less(t, len(err.Error()), 2000, access)
					require.NotContains(t, err.Error(), "hunter2!", access)
					require.Less(t, allocated, uint64(64<<20), "%s: bounded memory", access)
				}
			})
		})
	}
}

var hostileNames = map[string]string{
	"empty": "", "NUL": "a\x00b", "newline": "a\nb", "carriage return": "a\r", "tab": "a\tb", "escape": "\x1b[31m", "delete": "a\x7f", "C1": "a\u0085",
	"right to left override": "a\u202eb", "right to left mark": "a\u200fb", "Arabic letter mark": "\u061ca", "isolate": "\u2066a\u2069", "line separator": "a\u2028b",
	"paragraph separator": "a\u2029", "byte order mark": "\ufeffa", "invalid UTF-8": "a\xff", "half a surrogate": "a\xed\xa0\x80", "too long": strings.Repeat("n", 257), "1 MiB": strings.Repeat("n", 1<<20),
	"too long in bytes": strings.Repeat("é", 129),
}

func TestHostileNamesAreTypedErrors(t *testing.T) {
	for what, name := range hostileNames {
		t.Run(what, func(t *testing.T) {
			for _, part := range []state.Part{&state.Field[int]{Name: name}, state.Team{name: nil}} {
				if _, team := part.(state.Team); team && len(name) > 200 {
					continue // only names of fields have a limit
				}
				_, err := state.NewSchema(part)
				require.Error(t, err)
				require.Less(t, len(err.Error()), 1000)
				require.NotRegexp(t, "[\x00\r\t\x1b\x7f\u0085\u202e\u200f\u061c\u2066\u2028\u2029\ufeff]", err.Error())
				if name != "" {
					require.True(t, hostileTyped(err), "%v", err)
				}
			}
			text, err := json.Marshal(map[string]any{"fields": []any{map[string]any{"name": name, "type": "string"}}})
			require.NoError(t, err)
			if utf8.ValidString(name) { // else json.Marshal has replaced it
				_, err = state.ParseSchema(text)
				require.Error(t, err)
			}
			st := ruleNew(t, nil, map[string]any{"key": 1})
			ruleUnchanged(t, st, func() {
				for _, err := range []error{
					st.KV().Set(name, 1), st.KV().Replace(name, 1), st.KV().SetWith(name, 1, state.Sum[int]()), st.Patch(map[string]any{name: 1, "key": 2}),
				} {
					require.True(t, hostileTyped(err), "%v", err)
					require.Less(t, len(err.Error()), 1000)
				}
				require.False(t, st.KV().Has(name))
				_, err := state.GetAs[any](st, name)
				require.ErrorIs(t, err, state.ErrNotFound)
			})
			closed := state.New(state.MustSchema())
			require.ErrorIs(t, closed.KV().Set(name, 1), state.ErrUnknownField)
			require.Less(t, len(closed.KV().Set(name, 1).Error()), 1000)
		})
	}
}

// Names that are odd, but one line of visible text, are kept apart as they are.
func TestOddNamesAreKeptApart(t *testing.T) {
	names := []string{"..", "/", "a/b", "CON", "😀", "é", "e\u0301", "A", "a", "a b", "__proto__", "constructor", "app:x", "temp:x", "$.a", `"`, "`", "<b>", "{{x}}", strings.Repeat("n", 256), "messages2", "History"}
	st := state.New(nil)
	for i, name := range names {
		require.NoError(t, st.KV().Set(name, i), "%q", name)
	}
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	for _, st := range []*state.State{st, back} {
		require.Equal(t, len(names), st.KV().Len())
		for i, name := range names {
			v, _ := st.KV().Get(name)
			require.Equal(t, int64(i), v, "%q", name)
		}
	}
}

func TestHostileTextsAreRefusedByEveryDecoder(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	open := strings.Repeat(`{"a":`, 100_000)
	decoders := map[string]func(string) error{
		"Import":      func(text string) error { _, err := state.Import(nil, []byte(text)); return err },
		"ParseSchema": func(text string) error { _, err := state.ParseSchema([]byte(text)); return err },
		"Message":     func(text string) error { _, err := state.DecodeMessage([]byte(text)); return err },
	}
	for name, decode := range decoders {
		for what, text := range map[string]string{
			"depth 100 000": deep, "unclosed": open, "double": `{"format":1,"format":1,"type":"a","type":"b"}`, "half a surrogate": `{"format":1,"type":"\ud800"}`,
			"invalid UTF-8": "{\"format\":1,\"type\":\"\xff\"}", "NaN": `{"format":NaN}`, "two values": `{"format":1,"version":0} {}`, "nothing": "", "BOM": "\ufeff{}",
			"null": "null", "deep inside": `{"format":1,"fields":[],"keys":[{"name":"a","value":` + deep + `}],"role":` + deep + `}`,
		} {
			var err error
			allocated := cost.Allocated(func() { err = decode(text) })
			require.Error(t, err, "%s: %s", name, what)
			require.True(t, strings.HasPrefix(err.Error(), "state: "), "%s: %v", name, err)
			require.Less(t, len(err.Error()), 1000)
			require.Less(t, allocated, uint64(64*len(text)+1<<20), "%s: %s", name, what)
			if strings.HasPrefix(what, "depth") || what == "half a surrogate" || what == "double" || what == "invalid UTF-8" {
				require.True(t, hostileTyped(err), "%s: %s: %T %v", name, what, err, err)
			}
		}
	}
}

func FuzzImport(f *testing.F) {
	st := state.New(ruleOpen)
	f.Add([]byte(ruleExport(f, st)))
	require.NoError(f, st.Patch(map[string]any{"text": "a<b>", "tags": []string{"x"}, "count": 3, "key": map[string]any{"a": []any{1, 1.5, nil}}}))
	require.NoError(f, st.History().Append(ruleResult("1", "a")))
	f.Add([]byte(ruleExport(f, st)))
	require.NoError(f, st.History().Append(ruleResult("2", "b")))
	_, err := st.KV().Delete("key")
	require.NoError(f, err)
	f.Add([]byte(ruleExport(f, st)))
	for _, text := range []string{
		`{"format":1,"version":3,"keys":[{"name":"a","value":1e2},{"name":"b","value":18446744073709551615},{"name":"c","value":-0.0}]}`,
		`{"format":1,"version":9,"fields":[{"name":"count","value":3.0}],"conversation":[],"results":[],"messages":[]}`,
		`{"format":1,"version":1,"counts":[{"classes":[["a"],["b"]],"versions":1}]}`,
		`{"format":1,"conversation":[[0,1],[0,1]],"messages":[{"type":"text","role":"user","content":"a","n":1.0}]}`,
		`{"format":1,"results":[{"raw_base64":"/w==","created_at":"2024-01-02T03:04:05.5+02:00"}]}`,
		`{"format":1,"results":[{"started_at":"2024-01-02T03:04:05.5+02:00","created_at":"2024-01-02T03:04:05Z"},{"started_at":"0001-01-01T00:00:00Z","created_at":"2024-01-02T03:04:05Z"}]}`,
		`{"format":1,"keys":[{"value":[1,{"a":null}],"n\u0061me":"a"},{"name":"a","value":0}]}`,
		`{"format":1,"conversation":[[0,2],[1,2],[0,2]],"results":[{"prompt":[[0,1],[0,1]],"history":[[0,2],[0,2]],"output":[[1,2]],"tool_calls":[[1,2]],"created_at":"2024-01-02T03:04:05Z"}],"messages":[{"type":"a"},{"type":"tool_result","role":"r","tool":{"id":"1","name":"n"},"content":1}]}`,
	} {
		f.Add([]byte(text))
	}
	team := state.MustSchema(state.Team{"a": {"b"}}, state.AllowUndeclared, &state.Field[string]{Name: "text", Owner: "a"}, &state.Field[[]string]{Name: "tags", Owner: "b", Read: state.Public})
	limited := state.MustSchema(state.AllowUndeclared, state.Limits{ValueBytes: 200, Keys: 2, Results: 2, Depth: 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, schema := range []*state.Schema{nil, ruleOpen, ruleSchema, team, limited} {
			given := bytes.Clone(data)
			st, err := state.Import(schema, data)
			require.Equal(t, given, data, "the input is not changed")
			if err != nil {
				require.Nil(t, st)
				require.True(t, strings.HasPrefix(err.Error(), "state: "), "%v", err)
				continue
			}
			one := ruleExport(t, st)
			require.True(t, state.JSON(one).Valid(), "%s", one)
			back, err := state.Import(schema, []byte(one))
			require.NoError(t, err, "%s", one)
			require.Equal(t, one, ruleExport(t, back), "a fixpoint")
			if schema == limited {
				require.LessOrEqual(t, st.KV().Len(), 3, "keys and messages")
				parts := [][]state.Message{state.Messages.GetOr(st, nil)}
				for _, r := range st.History().All() {
					parts = append(parts, r.Prompt, r.History, r.Output)
				}
				require.LessOrEqual(t, len(parts), 7)
				for _, msgs := range parts {
					size := 0
					for _, m := range msgs {
						size += len(m.Raw())
					}
					require.LessOrEqual(t, size, 200)
				}
			}
			require.Equal(t, st.Version(), back.Version())
			require.Equal(t, st.KV().All(), back.KV().All())
			require.Equal(t, st.As("b").Version(), back.As("b").Version())
		}
	})
}

func FuzzParseSchema(f *testing.F) {
	for _, text := range []string{
		`{"fields":[]}`,
		`{"fields":[{"name":"a","type":"string","description":"d","update_rules":"u","owner":"x","read":"public","write":["y"],"handler":"first_wins","secret":true,"ephemeral":true,"no_copy":true,"max_bytes":3}],"team":{"x":["y"]}}`,
		`{"fields":[{"name":"n","type":"number","handler":"sum"},{"name":"l","type":"list","handler":"keep_last(3)"},{"name":"o","type":"object","handler":"merge_map"}],"limits":{"keys":3,"journal":-1},"allow_undeclared":true}`,
		`{"fields":[{"name":"messages","type":"messages","handler":"append","owner":"x"}],"team":{"x":null}}`,
		`{"fields":[{"name":"d","type":"date"},{"name":"b","type":"boolean"},{"name":"i","type":"integer","handler":"max"},{"name":"a","type":"any","handler":"last_wins"}],"team":{}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		schema, err := state.ParseSchema(data)
		if err != nil {
			require.Nil(t, schema)
			require.True(t, strings.HasPrefix(err.Error(), "state: "), "%v", err)
			return
		}
		one, err := json.Marshal(schema)
		require.NoError(t, err)
		parsed, err := state.ParseSchema(one)
		require.NoError(t, err, "%s", one)
		two, err := json.Marshal(parsed)
		require.NoError(t, err)
		require.Equal(t, string(one), string(two))
		a, b := state.New(schema), state.New(parsed)
		for _, agent := range []string{"", "x", "y"} {
			require.Equal(t, a.As(agent).Fields(), b.As(agent).Fields(), "the same rights")
		}
	})
}

func FuzzPatch(f *testing.F) {
	for _, text := range []string{
		`{"text":"a","count":3,"cost":1.5,"tags":["x"],"docs":[{"title":"t","tags":[]}],"meta":{"a":"b"},"day":"2024-01-02","anything":[1,null],"maybe":null,"odd":3,"short":"s"}`,
		`{"count":3.0,"tags":"one","docs":{"title":"t"},"day":"2024-01-02T03:04:05+01:00","key":9007199254740993}`,
		`{"count":1e400,"text":null,"unknown":{"a":[{"b":null}]}}`, `{"odd":2}`, `{"short":"more than ten bytes"}`, `{"messages":[{"type":"text","role":"user","content":"a"}]}`,
		`{"count":18446744073709551616,"a\u0000":1}`, `{"anything":-0.0,"x":1.0e5}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var exact, loose map[string]any
		if dec.Decode(&exact) != nil || json.Unmarshal(data, &loose) != nil {
			return
		}
		for _, schema := range []*state.Schema{ruleSchema, ruleOpen, nil} {
			for _, values := range []map[string]any{exact, loose} {
				st := state.New(schema)
				if schema == ruleSchema {
					require.NoError(t, st.Patch(map[string]any{"text": "before", "tags": []string{"x"}}))
				}
				version, before := st.Version(), ruleExport(t, st)
				if err := st.Patch(values); err != nil {
					require.Equal(t, before, ruleExport(t, st), "an error changes nothing")
					require.Equal(t, version, st.Version())
					continue
				}
				for name, v := range values {
					require.Equal(t, v != nil, st.KV().Has(name), name)
				}
				one := ruleExport(t, st)
				back, err := state.Import(schema, []byte(one))
				require.NoError(t, err, "%s", one)
				require.Equal(t, one, ruleExport(t, back))
				live, reloaded := st.KV().All(), back.KV().All()
				delete(live, "temp") // never exported
				require.Equal(t, len(live), len(reloaded))
				for name, v := range live {
					if name != "messages" {
						require.Empty(t, cmp.Diff(v, reloaded[name], cmpopts.EquateEmpty()), "live differs from reloaded: %q", name)
					}
				}
				require.NoError(t, back.Patch(reloaded), "what came out goes in")
			}
		}
	})
}

func FuzzName(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name)
	}
	for _, name := range []string{"a", "a b", "😀", "messages", "history", "$.a[1]", `"`, "<b>&", "`"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		st := state.New(nil)
		if name == "messages" {
			return
		}
		err := st.KV().Set(name, name)
		_, schemaErr := state.NewSchema(&state.Field[int]{Name: name})
		require.Equal(t, err == nil || !utf8.ValidString(name), schemaErr == nil || !utf8.ValidString(name), "both accept the same names")
		if err != nil {
			require.True(t, hostileTyped(err), "%v", err)
			require.Zero(t, st.Version())
			require.Less(t, len(err.Error()), 1000)
			for _, r := range err.Error() {
				require.True(t, unicode.IsPrint(r), "%U in %q", r, err.Error())
			}
			return
		}
		require.Equal(t, []string{name}, st.KV().Keys())
		require.Equal(t, 1, strings.Count(st.Describe(), "\n"), "one line")
		back, err := state.Import(nil, []byte(ruleExport(t, st)))
		require.NoError(t, err)
		require.Equal(t, ruleExport(t, st), ruleExport(t, back))
		for _, c := range ruleChanges(t, st, 0) {
			require.Equal(t, name, c.Field)
		}
	})
}

// hostileRuns returns an export in which the member of runs that is given
// refers to 1 000 messages n times.
func hostileRuns(member string, n int) string {
	var messages []string
	for i := range 1000 {
		role, tool := "text", ""
		if member == "tool_calls" {
			role, tool = "tool_result", `"tool":{"id":"1","name":"a"},`
		}
		messages = append(messages, fmt.Sprintf(`{"type":%q,"role":"user",%s"content":"number %d"}`, role, tool, i))
	}
	runs := `"` + member + `":[[0,1000]` + strings.Repeat(`,[0,1000]`, n-1) + `]`
	if member != "conversation" {
		runs = `"results":[{` + runs + `,"created_at":"2024-01-02T03:04:05Z"}]`
	}
	return `{"format":1,"version":1,` + runs + `,"messages":[` + strings.Join(messages, ",") + `]}`
}

// A text of some KB can refer to its messages so often that their sum is many
// GB.
func TestImportRefusesRunsBeforeItExpandsThem(t *testing.T) {
	for _, member := range []string{"conversation", "prompt", "history", "output", "tool_calls"} {
		t.Run(member, func(t *testing.T) {
			data := []byte(hostileRuns(member, 50_000))
			var err error
			allocated := cost.Allocated(func() { _, err = state.Import(nil, data) })
			var limit *state.LimitError
			require.ErrorAs(t, err, &limit)
			require.Equal(t, "ValueBytes", limit.Name)
			require.Greater(t, limit.Got, 1<<30)
			require.Less(t, allocated, uint64(24*len(data)), "bytes allocated")

			few := hostileRuns(member, 20)
			st, err := state.Import(nil, []byte(few))
			require.NoError(t, err)
			require.Equal(t, few, ruleExport(t, st), "runs may repeat")
		})
	}
}
