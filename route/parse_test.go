package route_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
)

func TestARouterMarshalsAndIsReadBack(t *testing.T) {
	weekend := route.Func("weekend", func(*state.State) bool { return true })
	router := route.Must(route.New(
		route.When(route.Has(card), "billing"),
		route.When(route.And(route.Eq(intent, "a<b>&\u2028\""), route.Not(route.Gte(amount, 100))), "manager"),
		route.When(route.Or(route.In(visits, 1, 2), route.Ne(serial, uint64(math.MaxUint64)), weekend), "a \"b\""),
		route.When(route.Match(temper, `^\d+<$`), "c"),
		route.When(route.And(route.Contains(tags, "x"), route.Eq(home, place{"Oslo", 150}), route.Eq(extra, any([]any{1, nil}))), "d"),
		route.When(route.Or(route.Gt(visits, 1), route.Lt(visits, -1), route.Lte(amount, 0.5)), "e"),
		route.Otherwise("general"),
	))
	direct, err := router.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"rules":[`+strings.Join([]string{
		`{"when":{"field":"card","op":"has"},"agent":"billing"}`,
		`{"when":{"and":[{"field":"intent","op":"eq","value":"a<b>&` + "\u2028" + `\""},{"not":{"field":"amount","op":"gte","value":100}}]},"agent":"manager"}`,
		`{"when":{"or":[{"field":"visits","op":"in","value":[1,2]},{"field":"serial","op":"ne","value":18446744073709551615},{"func":"weekend"}]},"agent":"a \"b\""}`,
		`{"when":{"field":"temper","op":"match","value":"^\\d+<$"},"agent":"c"}`,
		`{"when":{"and":[{"field":"tags","op":"contains","value":"x"},{"field":"home","op":"eq","value":{"city":"Oslo","zip":150}},{"field":"extra","op":"eq","value":[1,null]}]},"agent":"d"}`,
		`{"when":{"or":[{"field":"visits","op":"gt","value":1},{"field":"visits","op":"lt","value":-1},{"field":"amount","op":"lte","value":0.5}]},"agent":"e"}`,
		`{"otherwise":"general"}`,
	}, ",")+`]}`, string(direct))
	escaped, err := json.Marshal(router)
	require.NoError(t, err)
	for _, data := range [][]byte{direct, escaped} {
		again, err := route.Parse(desk, data, weekend)
		require.NoError(t, err)
		back, err := again.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(direct), string(back))
	}
}

func TestTheDeepestRouterIsReadBack(t *testing.T) {
	p := route.Eq(extra, any(nested(60)))
	for range 64 {
		p = route.And(p)
	}
	data, err := json.Marshal(route.Must(route.New(route.When(p, "a"))))
	require.NoError(t, err)
	_, err = route.Parse(desk, data)
	require.NoError(t, err)
}

func nested(depth int) any {
	if depth == 0 {
		return 1
	}
	return []any{nested(depth - 1)}
}

func TestParseConvertsValuesIfNothingIsLost(t *testing.T) {
	r, err := route.Parse(desk, []byte(`{"rules":[{"when":{"and":[
		{"field":"visits","op":"eq","value":3.0}, {"field":"amount","op":"eq","value":3}, {"field":"due","op":"eq","value":"2026-05-01T00:00:00Z"}
	]},"agent":"a"}]}`))
	require.NoError(t, err)
	st := state.New(desk)
	require.NoError(t, st.Patch(map[string]any{"visits": 3, "amount": 3, "due": "2026-05-01"}))
	require.Equal(t, "a", mustNext(t, r, st))
}

func TestParseFindsUndeclaredNamesInAnOpenSchema(t *testing.T) {
	data := []byte(`{"rules":[{"when":{"and":[{"field":"free","op":"gt","value":1},{"field":"n","op":"eq","value":"x"}]},"agent":"a"}]}`)
	_, err := route.Parse(state.MustSchema(state.AllowUndeclared, &state.Field[int]{Name: "n"}), data)
	require.EqualError(t, err, `route: $.rules[0].when.and[1].value: field "n": want integer, got string`)
	_, err = route.Parse(nil, []byte(`{"rules":[{"when":{"field":"a\nb","op":"has"},"agent":"a"}]}`))
	require.ErrorContains(t, err, "$.rules[0].when.field")
}

func TestParseSaysWhatIsWrongAndWhere(t *testing.T) {
	when := func(p string) string { return `{"rules":[{"when":` + p + `,"agent":"a"}]}` }
	for _, c := range []struct{ name, data, want string }{
		{"no JSON", `{`, "route: $"},
		{"empty", ``, "route: $"},
		{"null", `null`, `route: $.rules: want a list, got nothing`},
		{"rules missing", `{}`, `route: $.rules: want a list, got nothing`},
		{"rules no list", `{"rules":{}}`, `route: $.rules: no rules have object there`},
		{"unknown member", `{"rules":[],"rule":[]}`, `route: unknown field "rule"`},
		{"double member", `{"rules":[],"rules":[]}`, "route: $.rules: "},
		{"rule no object", `{"rules":[1]}`, `route: $.rules: no rules have number there`},
		{"rules null", `{"rules":null}`, `route: $.rules: want a list, got nothing`},
		{"agent null", `{"rules":[{"otherwise":null}]}`, `route: $.rules[0]: want when and agent, or otherwise`},
		{"agent of two lines", `{"rules":[{"otherwise":"a\nb"}]}`, "route: $.rules[0].otherwise: want one line of visible text, got U+000A"},
		{"agent missing", `{"rules":[{"when":{"field":"vip","op":"has"}}]}`, "route: $.rules[0].agent: want a name, got nothing"},
		{"agent empty", `{"rules":[{"otherwise":""}]}`, `route: $.rules[0]: want when and agent, or otherwise`},
		{"agent no string", `{"rules":[{"otherwise":["a"]}]}`, `route: $.rules.otherwise: no rules have array there`},
		{"when missing", `{"rules":[{"agent":"a"}]}`, `route: $.rules[0]: want when and agent, or otherwise`},
		{"when mistyped", `{"rules":[{"otherwise":"a","when ":{}}]}`, `route: unknown field "when "`},
		{"otherwise not last", `{"rules":[{"otherwise":"a"},{"otherwise":"b"}]}`, "route: $.rules[0]: otherwise must come last: no rule after it can match"},
		{"predicate null", when(`null`), `route: $.rules[0]: want when and agent, or otherwise`},
		{"field missing", when(`{"op":"has"}`), `route: $.rules[0].when: want one of and, or, not, func, or field with op and value`},
		{"field unknown", when(`{"field":"order","op":"has"}`), `route: $.rules[0].when.field: "order": unknown field`},
		{"field in another case", when(`{"field":"Intent","op":"has"}`), `route: $.rules[0].when.field: "Intent": unknown field`},
		{"op missing", when(`{"field":"vip"}`), `route: $.rules[0].when.op: unknown op "": want one of has, eq, ne`},
		{"op unknown", when(`{"field":"vip","op":"=="}`), `route: $.rules[0].when.op: unknown op "==": want one of has, eq, ne, in, gt, gte, lt, lte, match, contains`},
		{"op for another type", when(`{"field":"vip","op":"gt","value":true}`), `route: $.rules[0].when.value: field "vip": want number or string, got bool`},
		{"null in and", when(`{"and":[null]}`), `route: $.rules[0].when.and[0]: want one of and, or, not, func, or field with op and value`},
		{"op without field", when(`{"not":{"field":"vip","op":"has"},"op":"has"}`), `route: $.rules[0].when: want one of and`},
		{"rule with otherwise", `{"rules":[{"when":{"field":"vip","op":"has"},"agent":"a","otherwise":"b"}]}`, `route: $.rules[0]: want when and agent, or otherwise`},
		{"agent and otherwise", `{"rules":[{"agent":"a","otherwise":"b"}]}`, `route: $.rules[0]: want when and agent, or otherwise`},
		{"match of a number", when(`{"field":"visits","op":"match","value":"1"}`), `route: $.rules[0].when.op: field "visits": match is for strings`},
		{"contains of a string", when(`{"field":"intent","op":"contains","value":"a"}`), `route: $.rules[0].when.op: field "intent": contains is for lists`},
		{"gt of an object", when(`{"field":"extra","op":"gt","value":{}}`), `route: $.rules[0].when.value: field "extra": want number or string, got object`},
		{"value missing", when(`{"field":"vip","op":"eq"}`), "route: $.rules[0].when.value: want a value, got nothing"},
		{"value of has", when(`{"field":"vip","op":"has","value":true}`), "route: $.rules[0].when.value: has takes no value"},
		{"value of another type", when(`{"field":"amount","op":"gte","value":"100"}`), `route: $.rules[0].when.value: field "amount": want number, got string`},
		{"value null", when(`{"field":"amount","op":"eq","value":null}`), `route: $.rules[0].when.value: field "amount": want number, got null`},
		{"value with loss", when(`{"field":"visits","op":"eq","value":1.5}`), `route: $.rules[0].when.value: field "visits": want integer`},
		{"value inside", when(`{"field":"home","op":"in","value":[{"city":"a"},{"city":1}]}`), `route: $.rules[0].when.value[1].city: field "home": want string, got number`},
		{"in without list", when(`{"field":"visits","op":"in","value":1}`), "route: $.rules[0].when.value: want array, got number"},
		{"in of nothing", when(`{"field":"visits","op":"in","value":[]}`), `route: $.rules[0].when.value: field "visits": want at least one value, got none`},
		{"bad pattern", when(`{"field":"intent","op":"match","value":"a**"}`), "route: $.rules[0].when.value: field \"intent\": bad pattern: error parsing regexp: invalid nested repetition operator: `**`"},
		{"and of nothing", when(`{"and":[]}`), "route: $.rules[0].when.and: want at least one predicate, got none"},
		{"and null", when(`{"and":null}`), `route: $.rules[0].when: want one of and, or, not, func, or field with op and value`},
		{"in null", when(`{"field":"visits","op":"in","value":null}`), `route: $.rules[0].when.value: field "visits": want at least one value, got none`},
		{"and no list", when(`{"and":{}}`), `route: $.rules.when.and: no rules have object there`},
		{"not of a list", when(`{"not":[]}`), `route: $.rules.when.not: no rules have array there`},
		{"and with or", when(`{"or":[{"field":"vip","op":"has"}],"and":[{"field":"vip","op":"has"}]}`), `route: $.rules[0].when: want one of and, or, not, func, or field with op and value`},
		{"function unknown", when(`{"func":"f"}`), `route: $.rules[0].when.func: no function "f" was given: there are ["weekend"]`},
		{"function no string", when(`{"func":1}`), `route: $.rules.when.func: no rules have number there`},
		{"far too deep", strings.Repeat(`{"not":`, 100_000), "limit Depth: 257 is more than 256"},
		{"a long op", when(`{"field":"vip","op":"` + strings.Repeat("é", 5000) + `"}`), strings.Repeat("é", 32) + `…": want one of`},
		{"a long name", when(`{"field":"` + strings.Repeat("x", 5000) + `","op":"has"}`), `x…": unknown field`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := route.Parse(desk, []byte(c.data), route.Func("weekend", func(*state.State) bool { return true }))
			require.Nil(t, r)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n", "one mistake, one error")
			require.Less(t, len(err.Error()), 1500)
		})
	}
}

func TestParseReportsAllMistakesAtOnce(t *testing.T) {
	_, err := route.Parse(desk, []byte(`{"rules":[
		{"when":{"and":[{"field":"nope","op":"is","value":1},{"field":"amount","op":"gt","value":"x"}]},"agent":"a"},
		{"when":{"not":{"field":"visits","op":"in","value":[1,"a",true]}},"agent":"a"},
		{"otherwise":"a","agent":"b"}
	]}`))
	require.ErrorIs(t, err, state.ErrUnknownField)
	require.Equal(t, []string{
		`route: $.rules[0].when.and[0].field: "nope": unknown field`,
		`route: $.rules[0].when.and[1].value: field "amount": want number, got string`,
		`route: $.rules[1].when.not.value[1]: field "visits": want integer, got string`,
		`route: $.rules[2]: want when and agent, or otherwise`,
	}, strings.Split(err.Error(), "\n"))
}

func TestParseTakesFunctionsMadeWithFunc(t *testing.T) {
	f := route.Func("f", func(*state.State) bool { return true })
	_, err := route.Parse(desk, []byte(`{"rules":[]}`), f, f)
	require.EqualError(t, err, `route: function "f" is given twice`)
	_, err = route.Parse(desk, []byte(`{"rules":[]}`), f, route.Has(intent))
	require.EqualError(t, err, `route: function 1 is not made with Func`)
	_, err = route.Parse(desk, []byte(`{"rules":[]}`), route.Predicate{})
	require.EqualError(t, err, `route: function 0 is not made with Func`)
	r, err := route.Parse(desk, []byte(`{"rules":[{"when":{"not":{"not":{"func":"f"}}},"agent":"a"}]}`), f)
	require.NoError(t, err)
	require.Equal(t, "a", mustNext(t, r, state.New(desk)))
	_, err = route.Parse(desk, []byte(`{"rules":[{"when":{"func":"f"},"agent":"a"}]}`), route.Func("f", nil))
	require.EqualError(t, err, `route: $.rules[0].when.func: the function is nil`)
}

// FuzzParse parses any text. Parse returns an error, or a router that marshals to a
// text that parses to the same router. The router answers without a panic.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `{"rules":[]}`, `{"rules":[{"otherwise":"a"}]}`,
		`{"rules":[{"when":{"field":"intent","op":"match","value":"^a"},"agent":"a"}]}`,
		`{"rules":[{"when":{"and":[{"field":"amount","op":"gte","value":1e2},{"not":{"field":"extra","op":"in","value":[1,"a",null,{"b":[]}]}}]},"agent":"b"}]}`,
		`{"rules":[{"when":{"or":[{"field":"tags","op":"contains","value":"x"},{"field":"extra","op":"lt","value":18446744073709551615}]},"agent":"c"}]}`,
		`{"rules":[{"when":{"field":"home","op":"eq","value":{"city":"\ud83d\ude00"}},"agent":"d"},{"when":{"func":"f"},"agent":"e"}]}`,
		`{"rules":[{"when":{"field":"due","op":"eq","value":"2026-05-01"},"agent":"f"}]}`,
		`{"rules":[{"when":{"field":"a","field":"b"},"agent":"\ud800"}]}`,
	} {
		f.Add([]byte(seed))
	}
	fn := route.Func("f", func(*state.State) bool { return true })
	st := state.New(desk)
	err := st.Patch(map[string]any{
		"intent": "abc", "amount": 5, "tags": []string{"x"}, "extra": []any{1, "a"}, "home": place{}, "card": "4242", "due": "2026-05-01",
	})
	require.NoError(f, err)
	open := state.New(nil)
	require.NoError(f, open.Patch(map[string]any{"intent": uint64(math.MaxUint64), "amount": 0.5, "extra": true}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range []struct {
			schema *state.Schema
			st     *state.State
		}{{desk, st}, {nil, open}, {nil, st}} {
			r, err := route.Parse(c.schema, data, fn)
			if err != nil {
				require.NotEmpty(t, err.Error())
				continue
			}
			text, err := r.MarshalJSON()
			require.NoError(t, err)
			again, err := route.Parse(c.schema, text, fn)
			require.NoError(t, err, "%s", text)
			back, err := again.MarshalJSON()
			require.NoError(t, err)
			require.Equal(t, string(text), string(back))
			for _, handle := range []*state.State{c.st, c.st.As("general")} {
				agent, ok := r.Next(handle)
				same, also := again.Next(handle)
				require.Equal(t, agent, same)
				require.Equal(t, ok, also)
				require.Equal(t, r.Explain(handle), again.Explain(handle))
			}
			_ = r.Check(desk, "general")
		}
	})
}
