package route_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
)

func TestTheFirstRuleThatMatchesNamesTheAgent(t *testing.T) {
	router := route.Must(route.New(
		route.When(route.Has(intent), "first"),
		route.When(route.Has(amount), "second"),
		route.When(route.Or(route.Has(intent), route.Has(amount)), "never"),
		route.When(route.Has(vip), "third"),
	))
	st := state.New(desk)
	next := func() string {
		agent, ok := router.Next(st)
		require.Equal(t, agent != "", ok)
		return agent
	}
	require.Equal(t, "", next())
	require.NoError(t, vip.Set(st, false))
	require.Equal(t, "third", next())
	require.NoError(t, amount.Set(st, 1))
	require.Equal(t, "second", next())
	require.NoError(t, intent.Set(st, ""))
	require.Equal(t, "first", next())
}

func TestARouterWithoutRulesNamesNobody(t *testing.T) {
	parsed, err := route.Parse(nil, []byte(`{"rules":[]}`))
	require.NoError(t, err)
	for _, r := range []*route.Router{nil, {}, route.Must(route.New()), parsed} {
		_, ok := r.Next(state.New(desk))
		require.False(t, ok)
		require.Equal(t, "next: nobody\n", r.Explain(state.New(desk)))
		require.NoError(t, r.Check(desk, "general"))
	}
	_, ok := route.Must(route.New(route.Otherwise("a"))).Next(nil)
	require.True(t, ok, "a nil state is an empty one")
}

func TestNewReportsEveryMistakeWithItsPath(t *testing.T) {
	var none *state.Field[string]
	_, err := route.New(
		route.Rule{},
		route.When(route.Predicate{}, ""),
		route.When(route.Match(intent, "("), "a"),
		route.When(route.And(route.Has(intent), route.Or(route.Not(route.Eq(none, "x")), route.Predicate{})), "a"),
		route.When(route.And(route.And(), route.Or(), route.In(intent), route.Func("", nil)), "a"),
		route.When(route.Eq(intent, "\xff"), "\xff"),
		route.When(route.Eq(extra, any(make(chan int))), "a"),
		route.When(route.Has(&state.Field[string]{}), "a"),
		route.Otherwise(""),
		route.Otherwise("a"),
		route.Otherwise("a\nb"),
	)
	require.Error(t, err)
	want := []string{
		`route: $.rules[0]: want when and agent, or otherwise`,
		`route: $.rules[1].agent: want a name, got nothing`,
		`route: $.rules[1].when: the predicate is missing`,
		"route: $.rules[2].when.value: field \"intent\": bad pattern: error parsing regexp: missing closing ): `(`",
		`route: $.rules[3].when.and[1].or[0].not.field: the field is nil`,
		`route: $.rules[3].when.and[1].or[1]: the predicate is missing`,
		`route: $.rules[4].when.and[0].and: want at least one predicate, got none`,
		`route: $.rules[4].when.and[1].or: want at least one predicate, got none`,
		`route: $.rules[4].when.and[2].value: field "intent": want at least one value, got none`,
		`route: $.rules[4].when.and[3].func: want a name, got nothing`,
		`route: $.rules[5].agent: want valid UTF-8, got other bytes`,
		`route: $.rules[5].when.value: field "intent": want valid UTF-8, got other bytes`,
		`route: $.rules[6].when.value: field "extra": want a value that can be stored, got chan int`,
		`route: $.rules[7].when.field: want a name, got nothing`,
		`route: $.rules[8]: want when and agent, or otherwise`,
		`route: $.rules[9]: otherwise must come last: no rule after it can match`,
		`route: $.rules[10].otherwise: want one line of visible text, got U+000A`,
	}
	require.Equal(t, want, strings.Split(err.Error(), "\n"))
	require.Panics(t, func() { route.Must(route.New(route.Rule{})) })
}

func TestCheckNamesEveryFieldThatKeepsARuleFromMatching(t *testing.T) {
	router := route.Must(route.New(
		route.When(route.Has(intent), "a"),
		route.When(route.Or(route.Has(intent), route.Not(route.And(route.Has(card), route.Gt(score, 1)))), "b"),
		route.When(route.Has(&state.Field[string]{Name: "nope"}), "c"),
		route.When(route.Eq(&state.Field[int]{Name: "intent"}, 1), "d"),
		route.When(route.Func("f", func(*state.State) bool { panic("not called") }), "e"),
		route.Otherwise("f"),
	))
	err := router.Check(desk, "general")
	require.ErrorIs(t, err, state.ErrDenied)
	require.ErrorIs(t, err, state.ErrUnknownField)
	require.ErrorIs(t, err, state.ErrWrongType)
	require.Equal(t, []string{
		`route: $.rules[1].when.or[1].not.and[0]: the rule for "b" never matches: read "card": access denied to agent "general"`,
		`route: $.rules[1].when.or[1].not.and[1]: the rule for "b" never matches: read "score": access denied to agent "general"`,
		`route: $.rules[2].when: the rule for "c" never matches: "nope": unknown field`,
		`route: $.rules[3].when: the rule for "d" never matches: "intent": type: want string, got int`,
	}, strings.Split(err.Error(), "\n"))
	err = router.Check(desk, "stranger")
	require.ErrorContains(t, err, `$.rules[0].when: the rule for "a" never matches: read "intent": access denied to agent "stranger", which is not in the team`)
	require.NotErrorIs(t, router.Check(desk, ""), state.ErrDenied)

	open, err := route.Parse(nil, []byte(`{"rules":[{"when":{"field":"free","op":"has"},"agent":"a"}]}`))
	require.NoError(t, err)
	require.NoError(t, open.Check(nil, "general"))
	require.ErrorIs(t, open.Check(desk, "general"), state.ErrUnknownField)
}

func TestExplainShowsEveryAnswerAndNoValue(t *testing.T) {
	router := route.Must(route.New(
		route.When(route.And(route.Eq(card, "4242-1717"), route.Has(intent)), "billing"),
		route.When(route.And(route.In(intent, "refund-me"), route.Not(route.Gte(amount, 77777)),
			route.Func("no <b>", func(*state.State) bool { return false })), "manager"),
		route.When(route.Or(route.Has(intent), route.Func("skipped", func(*state.State) bool { return true }),
			route.Contains(tags, "hush-hush"), route.Eq(visits, 88888)), "a\"b"),
		route.When(route.Has(&state.Field[string]{Name: "nope"}), "c"),
		route.When(route.Has(&state.Field[int]{Name: "intent"}), "d"),
		route.Otherwise("general"),
	))
	st := state.New(desk)
	require.NoError(t, st.Patch(map[string]any{"intent": "refund-me", "card": "4242-1717", "visits": 88888, "tags": []string{"hush-hush"}}))
	want := `1. "billing" when: cannot match
    and: no answer
      eq "card": hidden
      has "intent": yes
2. "manager" when: does not match
    and: no
      in "intent": yes
      not: yes
        gte "amount": no, unset
      func "no <b>": no
3. "a\"b" when: matches
    or: yes
      has "intent": yes
      func "skipped": yes
      contains "tags": yes
      eq "visits": yes
4. "c" when: cannot match
    has "nope": no such field
5. "d" when: cannot match
    has "intent": a field of another type
6. "general" otherwise: matches too late
next: "a\"b"
`
	for range 20 {
		require.Equal(t, want, router.Explain(st.As("general")))
	}
	all := router.Explain(st)
	require.Contains(t, all, "1. \"billing\" when: matches\n    and: yes\n      eq \"card\": yes\n")
	require.Contains(t, all, "next: \"billing\"\n")
	for _, value := range []string{"4242", "refund-me", "hush", "88888", "77777"} {
		require.NotContains(t, all, value)
	}
}

// Two states that differ only in hidden fields are routed and explained alike.
func TestHiddenFieldsDoNotShow(t *testing.T) {
	router := route.Must(route.New(
		route.When(route.Not(route.Has(card)), "a"),
		route.When(route.Or(route.Has(intent), route.Contains(log, "x")), "b"),
		route.When(route.Gt(score, 0), "c"),
		route.When(route.Func("card", func(st *state.State) bool { return card.Has(st) || score.Has(st) }), "d"),
		route.Otherwise("e"),
	))
	st := state.New(desk)
	explained, before := router.Explain(st.As("general")), mustNext(t, router, st.As("general"))
	require.Equal(t, "e", before)
	require.NoError(t, st.Patch(map[string]any{"card": "4242", "score": 3, "log": []string{"x"}}))
	require.Equal(t, explained, router.Explain(st.As("general")))
	require.Equal(t, before, mustNext(t, router, st.As("general")))
}

func mustNext(t *testing.T, r *route.Router, st *state.State) string {
	t.Helper()
	agent, ok := r.Next(st)
	require.True(t, ok)
	return agent
}

// Two fields are always written together. A router that read them from two versions
// would find them different.
func TestNextReadsOneVersion(t *testing.T) {
	st := state.New(desk)
	router := route.Must(route.New(
		route.When(route.Or(
			route.And(route.Eq(vip, true), route.Eq(visits, 1)),
			route.And(route.Eq(vip, false), route.Eq(visits, 0))), "consistent"),
		route.Otherwise("torn"),
	))
	require.NoError(t, st.Patch(map[string]any{"vip": false, "visits": 0}))
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 2000 {
			if err := st.Patch(map[string]any{"vip": i%2 == 1, "visits": i % 2}); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		wg.Go(func() {
			for range 2000 {
				if agent, _ := router.Next(st); agent != "consistent" {
					t.Error(agent)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A write during the evaluation is not visible to it, here by a function of a rule,
// which should not write.
func TestWritesInBetweenDoNotShow(t *testing.T) {
	st := state.New(desk)
	router := route.Must(route.New(
		route.When(route.And(route.Func("writes", func(*state.State) bool { return intent.Set(st, "x") == nil }), route.Has(intent)), "a"),
		route.When(route.Has(intent), "b"),
		route.Otherwise("c"),
	))
	require.Equal(t, "c", mustNext(t, router, st))
	_, err := intent.Delete(st)
	require.NoError(t, err)
	require.Contains(t, router.Explain(st), "next: \"c\"\n")
	require.True(t, intent.Has(st))
}

// Inside a transaction the router reads what the transaction reads, and its reads
// are reads of the transaction.
func TestNextInATransaction(t *testing.T) {
	st := state.New(desk)
	router := route.Must(route.New(route.When(route.Has(intent), "a"), route.Otherwise("b")))
	runs := 0
	require.NoError(t, st.Update(func(tx *state.State) error {
		runs++
		agent, _ := router.Next(tx)
		if runs == 1 {
			require.Equal(t, "b", agent)
			require.NoError(t, intent.Set(st, "refund")) // another writer
		}
		return temper.Set(tx, mood(agent))
	}))
	require.Equal(t, 2, runs)
	require.Equal(t, mood("a"), temper.GetOr(st, ""))
}

func TestARouterIsNotUnmarshaled(t *testing.T) {
	var r route.Router
	require.ErrorContains(t, json.Unmarshal([]byte(`{"rules":[]}`), &r), "Parse")
}
