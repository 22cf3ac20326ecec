package route_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
)

// asked returns the answer of a predicate. It checks that the same predicate, read
// from its JSON, and its negation agree.
func asked(t *testing.T, st *state.State, schema *state.Schema, p route.Predicate) bool {
	t.Helper()
	typed := route.Must(route.New(route.When(p, "a")))
	_, yes := typed.Next(st)
	data, err := json.Marshal(typed)
	require.NoError(t, err)
	named, err := route.Parse(schema, data)
	require.NoError(t, err, "%s", data)
	_, same := named.Next(st)
	require.Equal(t, yes, same, "by name: %s", data)
	_, no := route.Must(route.New(route.When(route.Not(p), "a"))).Next(st)
	require.Equal(t, !yes, no, "negated: %s", data)
	return yes
}

func TestPredicatesAnswerAboutTheValue(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	day, err := state.ParseTime("2026-05-01")
	require.NoError(t, err)
	st := state.New(desk)
	require.NoError(t, st.Patch(map[string]any{
		"intent": "refund", "amount": 100.5, "visits": 3, "serial": uint64(math.MaxUint64), "vip": true, "temper": "angry",
		"due": day, "seen": noon, "home": place{"Oslo", 150}, "tags": []string{"urgent", "new"}, "extra": 5, "card": "4242",
	}))
	for _, c := range []struct {
		name string
		p    route.Predicate
		want bool
	}{
		{"has", route.Has(intent), true},
		{"has list", route.Has(tags), true},
		{"has unset", route.Has(score), false},
		{"eq", route.Eq(intent, "refund"), true},
		{"eq other", route.Eq(intent, "Refund"), false},
		{"eq named type", route.Eq(temper, mood("angry")), true},
		{"eq bool", route.Eq(vip, false), false},
		{"eq above 2^53", route.Eq(serial, uint64(math.MaxUint64)), true},
		{"eq above 2^53, next", route.Eq(serial, uint64(math.MaxUint64-1)), false},
		{"eq date", route.Eq(due, state.TimeOf(noon.Add(-12*time.Hour))), true},
		{"eq same instant elsewhere", route.Eq(seen, noon.In(time.FixedZone("x", 3600))), true},
		{"eq struct", route.Eq(home, place{"Oslo", 150}), true},
		{"eq struct, other", route.Eq(home, place{"Oslo", 151}), false},
		{"eq any, as an int", route.Eq(extra, any(5)), true},
		{"eq any, as a float", route.Eq(extra, any(5.0)), true},
		{"eq any, as a string", route.Eq(extra, any("5")), false},
		{"eq any, a list", route.Eq(extra, any([]any{5})), false},
		{"eq any, null", route.Eq(extra, any(nil)), false},
		{"eq secret", route.Eq(card, "4242"), true},
		{"ne", route.Ne(intent, "refund"), false},
		{"ne other", route.Ne(intent, "other"), true},
		{"in", route.In(intent, "cancel", "refund"), true},
		{"in others", route.In(visits, 1, 2), false},
		{"gt less", route.Gt(amount, 100), true},
		{"gt same", route.Gt(amount, 100.5), false},
		{"gte same", route.Gte(amount, 100.5), true},
		{"gte more", route.Gte(amount, 101), false},
		{"lt more", route.Lt(visits, 4), true},
		{"lt same", route.Lt(visits, 3), false},
		{"lte same", route.Lte(visits, 3), true},
		{"lte less", route.Lte(visits, 2), false},
		{"gt of strings", route.Gt(intent, "reason"), true},
		{"gt of large numbers", route.Gt(serial, uint64(math.MaxUint64-1)), true},
		{"match a part", route.Match(intent, "^ref"), true},
		{"match not", route.Match(intent, "^fund"), false},
		{"match named type", route.Match(temper, "(?i)ANG"), true},
		{"contains", route.Contains(tags, "new"), true},
		{"contains not", route.Contains(tags, "ne"), false},
		{"and", route.And(route.Has(intent), route.Eq(visits, 3)), true},
		{"and one not", route.And(route.Has(intent), route.Eq(visits, 4)), false},
		{"or", route.Or(route.Eq(visits, 4), route.Has(intent)), true},
		{"or none", route.Or(route.Eq(visits, 4), route.Has(score)), false},
		{"nested", route.Not(route.And(route.Has(intent), route.Or(route.Eq(visits, 4), route.Not(route.Has(tags))))), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, asked(t, st, desk, c.p))
			require.Equal(t, c.want, asked(t, st.As("support"), desk, c.p))
		})
	}
}

// comparisons returns each kind of predicate about these fields.
func comparisons(text *state.Field[string], n *state.Field[int], list *state.Field[[]string]) map[string]route.Predicate {
	return map[string]route.Predicate{
		"has": route.Has(text), "has list": route.Has(list),
		"eq": route.Eq(text, ""), "ne": route.Ne(text, "x"), "in": route.In(n, 0, 1),
		"gt": route.Gt(n, -1), "gte": route.Gte(n, 0), "lt": route.Lt(n, 1), "lte": route.Lte(n, 0),
		"match": route.Match(text, ""), "contains": route.Contains(list, ""),
	}
}

func TestNoComparisonHoldsForAnUnsetField(t *testing.T) {
	st := state.New(desk)
	for name, p := range comparisons(intent, visits, tags) {
		t.Run(name, func(t *testing.T) {
			require.False(t, asked(t, st, desk, p)) // asked checks that Not does hold
			require.False(t, asked(t, st.As("general"), desk, p))
		})
	}
}

func TestARuleThatMentionsAHiddenFieldNeverMatches(t *testing.T) {
	for _, set := range []bool{false, true} {
		st := state.New(desk)
		require.NoError(t, intent.Set(st, "refund"))
		if set {
			require.NoError(t, st.Patch(map[string]any{"card": "", "score": 0, "log": []string{""}}))
		}
		yes := route.Has(intent)
		for name, p := range comparisons(card, score, log) {
			for i, p := range []route.Predicate{
				p, route.Not(p), route.Not(route.Not(p)),
				route.Or(yes, p), route.Or(p, yes), route.Or(yes, route.Not(p)), route.Not(route.And(route.Not(yes), p)),
				route.And(yes, route.Not(p)), route.Or(yes, route.And(yes, route.Or(route.Not(p), yes))),
			} {
				t.Run(fmt.Sprint(name, i, set), func(t *testing.T) {
					typed := route.Must(route.New(route.When(p, "next")))
					data, err := json.Marshal(typed)
					require.NoError(t, err)
					named, err := route.Parse(desk, data)
					require.NoError(t, err)
					for _, r := range []*route.Router{typed, named} {
						for _, agent := range []string{"general", "", "stranger"} {
							_, ok := r.Next(st.As(agent))
							require.False(t, ok, "%s as %q", data, agent)
						}
						require.Contains(t, r.Explain(st.As("general")), "when: cannot match\n")
						require.ErrorIs(t, r.Check(desk, "general"), state.ErrDenied)
						require.NoError(t, r.Check(desk, "support"))
						require.NoError(t, r.Check(desk, ""))
					}
				})
			}
		}
	}
}

func TestARuleOverAFieldThatTheStateDoesNotHaveNeverMatches(t *testing.T) {
	other := &state.Field[string]{Name: "other"}
	retyped := &state.Field[int]{Name: "intent"}
	st := state.New(desk)
	require.NoError(t, intent.Set(st, "refund"))
	for _, p := range []route.Predicate{route.Has(other), route.Ne(other, "x"), route.Has(retyped), route.Ne(retyped, 1)} {
		for _, p := range []route.Predicate{p, route.Not(p), route.Or(route.Has(intent), p)} {
			r := route.Must(route.New(route.When(p, "next")))
			_, ok := r.Next(st)
			require.False(t, ok)
			require.Error(t, r.Check(desk, ""))
		}
	}
	// A parsed router finds fields by name, here in a state with another schema.
	r, err := route.Parse(state.MustSchema(retyped), []byte(`{"rules":[{"when":{"not":{"field":"intent","op":"eq","value":1}},"agent":"next"}]}`))
	require.NoError(t, err)
	_, ok := r.Next(st)
	require.False(t, ok)
	require.ErrorIs(t, r.Check(desk, ""), state.ErrWrongType)
}

func TestAnyValuesAreComparedByWhatTheyAre(t *testing.T) {
	for _, c := range []struct {
		value any
		rule  string
		want  bool
	}{
		{5, `"op":"gt","value":4.5`, true},
		{4.5, `"op":"gt","value":5`, false},
		{5, `"op":"eq","value":5.0`, true},
		{5.0, `"op":"eq","value":5`, true},
		{5.0, `"op":"ne","value":5`, false},
		{[]any{5.0, 7}, `"op":"contains","value":7.0`, true},
		{int64(1<<53 + 1), `"op":"gt","value":9007199254740992.0`, true},
		{uint64(math.MaxUint64), `"op":"lt","value":-1`, false},
		{uint64(math.MaxUint64), `"op":"gte","value":0.5`, true},
		{"b", `"op":"lte","value":"b"`, true},
		{"b", `"op":"gt","value":1`, false},
		{"b", `"op":"lte","value":1`, false},
		{"b", `"op":"gte","value":1`, false},
		{1, `"op":"lt","value":"b"`, false},
		{nil, `"op":"lt","value":1`, false},
		{nil, `"op":"eq","value":null`, true},
		{true, `"op":"gte","value":0`, false},
		{[]any{1, "a"}, `"op":"contains","value":"a"`, true},
		{[]any{1, []any{2}}, `"op":"contains","value":[2]`, true},
		{"abc", `"op":"contains","value":"a"`, false},
		{"abc", `"op":"match","value":"b"`, true},
		{7, `"op":"match","value":"7"`, false},
		{map[string]any{"a": 1}, `"op":"eq","value":{"a":1}`, true},
		{map[string]any{"a": 1}, `"op":"in","value":[{"a":2},[],null]`, false},
	} {
		t.Run(fmt.Sprint(c.value, c.rule), func(t *testing.T) {
			r, err := route.Parse(nil, []byte(`{"rules":[{"when":{"field":"x",`+c.rule+`},"agent":"next"}]}`))
			require.NoError(t, err)
			st := state.New(nil)
			_, ok := r.Next(st)
			require.False(t, ok, "unset")
			require.NoError(t, st.KV().Set("x", c.value))
			_, ok = r.Next(st)
			require.Equal(t, c.want, ok)
		})
	}
}

// A router that was parsed without a schema is used with states that declare the
// field.
func TestUndeclaredNamesInADeclaredState(t *testing.T) {
	st := state.New(desk)
	require.NoError(t, st.Patch(map[string]any{"intent": "a", "due": "2026-05-01", "home": place{}, "tags": []string{"a"}, "visits": 1}))
	for _, name := range []string{"intent", "due", "home", "tags", "visits"} {
		for _, op := range []string{"eq", "ne", "gt", "contains"} {
			r, err := route.Parse(nil, fmt.Appendf(nil, `{"rules":[{"when":{"field":%q,"op":%q,"value":"a"},"agent":"next"}]}`, name, op))
			require.NoError(t, err)
			require.NotPanics(t, func() { r.Next(st) })
		}
	}
}

func TestFuncSeesASnapshotWithTheRightsOfTheHandle(t *testing.T) {
	st := state.New(desk)
	require.NoError(t, st.Patch(map[string]any{"intent": "refund", "card": "4242"}))
	router := route.Must(route.New(
		route.When(route.Func("has_card", func(st *state.State) bool {
			require.Error(t, intent.Set(st, "x"))
			return card.Has(st)
		}), "billing"),
		route.Otherwise("general"),
	))
	next, _ := router.Next(st)
	require.Equal(t, "billing", next)
	next, _ = router.Next(st.As("general"))
	require.Equal(t, "general", next)
}

func TestAFuncThatPanicsKeepsItsRuleFromMatching(t *testing.T) {
	st := state.New(desk)
	broken := route.Func("broken", func(*state.State) bool { panic("4242") })
	for _, p := range []route.Predicate{broken, route.Not(broken), route.Or(broken, route.Not(route.Has(intent)))} {
		router := route.Must(route.New(route.When(p, "a"), route.Otherwise("b")))
		next, _ := router.Next(st)
		require.Equal(t, "b", next)
		require.Contains(t, router.Explain(st), `func "broken": panicked`)
		require.NotContains(t, router.Explain(st), "4242")
	}
}

func TestFuncIsCalledOnlyWhereItMatters(t *testing.T) {
	st := state.New(desk)
	calls := 0
	fn := route.Func("counted", func(*state.State) bool { calls++; return true })
	for _, c := range []struct {
		p    route.Predicate
		want int
	}{
		{fn, 1},
		{route.And(route.Has(intent), fn), 0},
		{route.Or(route.Not(route.Has(intent)), route.Not(fn)), 0},
		{route.And(route.Not(route.Has(intent)), fn), 1},
		{route.Or(route.Has(intent), fn), 1},
		{route.And(route.Has(card), fn), 0},
		{route.Or(route.Has(card), fn), 0},
	} {
		calls = 0
		route.Must(route.New(route.When(c.p, "a"))).Next(st.As("general"))
		require.Equal(t, c.want, calls)
	}
}

func TestOperandsAreCopied(t *testing.T) {
	list := []any{"a"}
	router := route.Must(route.New(route.When(route.Eq(extra, any(list)), "a")))
	list[0] = "b"
	st := state.New(desk)
	require.NoError(t, extra.Set(st, []any{"a"}))
	_, ok := router.Next(st)
	require.True(t, ok)
}

func TestPointersAreComparedByWhatTheyPointTo(t *testing.T) {
	opt := &state.Field[*int]{Name: "opt"}
	schema := state.MustSchema(opt)
	st := state.New(schema)
	require.NoError(t, opt.Set(st, ptr(1)))
	require.True(t, asked(t, st, schema, route.Eq(opt, ptr(1))))
	require.False(t, asked(t, st, schema, route.Eq(opt, nil)))
	require.NoError(t, opt.Set(st, nil))
	require.True(t, asked(t, st, schema, route.Eq(opt, nil)))
	require.True(t, asked(t, st, schema, route.Has(opt)))
}
