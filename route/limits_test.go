package route_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
)

// listOf returns n texts as a JSON array.
func listOf(n int, text string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(text+",", n), ",") + "]"
}

func TestRulesFromOthersHaveLimits(t *testing.T) {
	rule := func(when string) string { return `{"when":` + when + `,"agent":"a"}` }
	match := func(pattern string) string {
		return fmt.Sprintf(`{"field":"intent","op":"match","value":%q}`, pattern)
	}
	const tooMany = "the patterns of a router have at most 2000 instructions"
	for _, c := range []struct {
		name         string
		within, over string // the rules
		err          string
	}{
		{
			"one pattern", "[" + rule(match("["+strings.Repeat("a", 1022)+"]")) + "]", "[" + rule(match("["+strings.Repeat("a", 1023)+"]")) + "]",
			`route: $.rules[0].when.value: field "intent": a pattern has at most 1024 bytes, got 1025`,
		},
		{
			"one program", "[" + rule(match("a{1000}b{900}")) + "]", "[" + rule(match("a{1000}b{1000}")) + "]",
			"route: $.rules[0].when.value: " + tooMany,
		},
		{
			"nested repetitions", "[" + rule(match("((a{10}){10}){10}")) + "]", "[" + rule(`{"not":`+match("(?:(?:abcdefghijklmnopqrst){30}){30}")+"}") + "]",
			"route: $.rules[0].when.not.value: " + tooMany,
		},
		{
			"all programs", listOf(4, rule(match("a{1,200}"))), listOf(6, rule(match("a{1,200}"))),
			"route: $.rules[4].when.value: " + tooMany,
		},
		{
			"bytes", "[" + rule(`{"or":`+listOf(8000, `{"field":"visits","op":"has"}`)+"}") + "]",
			"[" + rule(`{"or":`+listOf(10_000, `{"field":"visits","op":"has"}`)+"}") + "]",
			"route: $.rules: a router has at most 262144 bytes of JSON",
		},
		{
			"values", "[" + rule(`{"field":"visits","op":"in","value":`+listOf(100_000, "1")+`}`) + "]",
			"[" + rule(`{"field":"visits","op":"in","value":`+listOf(140_000, "1")+`}`) + "]",
			"route: $.rules: a router has at most 262144 bytes of JSON",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := route.Parse(desk, []byte(`{"rules":`+c.within+`}`))
			require.NoError(t, err)
			r.Next(state.New(desk))
			_, err = route.Parse(desk, []byte(`{"rules":`+c.over+`}`))
			require.ErrorIs(t, err, route.ErrInvalidRules)
			require.ErrorContains(t, err, c.err)
		})
	}
}

func TestRulesInGoHaveTheLimitsOfParse(t *testing.T) {
	long := strings.Repeat("<", 200_000)
	for name, c := range map[string]struct{ within, over []route.Rule }{
		"patterns": {
			[]route.Rule{route.When(route.Match(intent, "a{1000}"), "a")},
			[]route.Rule{route.When(route.And(route.Match(intent, strings.Repeat("a{999}", 3))), "a")},
		},
		"bytes": {
			[]route.Rule{route.When(route.Eq(intent, long), "a")},
			[]route.Rule{route.When(route.In(intent, long, long), "a")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(route.Must(route.New(c.within...))) // it escapes "<"
			require.NoError(t, err)
			_, err = route.Parse(desk, data)
			require.NoError(t, err)
			_, err = route.New(c.over...)
			require.ErrorIs(t, err, route.ErrInvalidRules)
		})
	}
}

func TestMatchLooksAtTheBeginningOfALongText(t *testing.T) {
	const limit = 64 << 10
	for name, c := range map[string]struct {
		pattern, text string
		want          bool
	}{
		"within":      {"z", strings.Repeat("a", limit-1) + "z", true},
		"behind":      {"z", strings.Repeat("a", limit) + "z", false},
		"half a rune": {"^[a€]*$", strings.Repeat("a", limit-1) + "€", true},
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(desk)
			require.NoError(t, intent.Set(st, c.text))
			r := route.Must(route.New(route.When(route.Match(intent, c.pattern), "a")))
			_, got := r.Next(st)
			require.Equal(t, c.want, got)
		})
	}
}
