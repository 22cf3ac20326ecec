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
	in := func(n int) string { return `{"field":"visits","op":"in","value":` + listOf(n, "1") + `}` }
	class := func(size int) string { return "[" + strings.Repeat("a", size-2) + "]" } // one instruction
	for _, c := range []struct {
		name         string
		within, over string // the rules
		err          string
	}{
		{
			"rules", listOf(1000, rule(match("a"))), listOf(1001, rule(match("a"))),
			"route: $.rules: a router has at most 1000 rules, got 1001",
		},
		{
			"one pattern", "[" + rule(match(class(1<<16))) + "]", "[" + rule(match(class(1<<16+1))) + "]",
			"route: $.rules[0].when.value: a router has at most 65536 bytes of patterns, and has 65537 up to here",
		},
		{
			"all patterns", listOf(2, rule(match(class(1<<15)))), listOf(3, rule(match(class(1<<15)))),
			"route: $.rules[2].when.value: a router has at most 65536 bytes of patterns, and has 98304 up to here",
		},
		{
			"one program", "[" + rule(match("a{1000}b{900}")) + "]", "[" + rule(match("a{1000}b{1000}")) + "]",
			"route: $.rules[0].when.value: a router has at most 2000 instructions of compiled patterns, and has 2002 up to here",
		},
		{
			"nested repetitions", "[" + rule(match("((a{10}){10}){10}")) + "]", "[" + rule(`{"not":`+match("(?:(?:abcdefghijklmnopqrst){30}){30}")+"}") + "]",
			"route: $.rules[0].when.not.value: a router has at most 2000 instructions of compiled patterns, and has 18031 up to here",
		},
		{
			"all programs", listOf(4, rule(match("a{1,200}"))), listOf(6, rule(match("a{1,200}"))),
			"route: $.rules[5].when.value: a router has at most 2000 instructions of compiled patterns, and has 2394 up to here",
		},
		{
			"classes", "[" + rule(match(`^\p{L}{1,64}$`)) + "]", "[" + rule(match(strings.Repeat(`\p{L}`, 100))) + "]",
			"instructions of compiled patterns",
		},
		{
			"values of one in", "[" + rule(in(10_000)) + "]", "[" + rule(in(10_001)) + "]",
			"route: $.rules[0].when.value: a router has at most 10000 values of in, and has 10001 up to here",
		},
		{
			"values of all ins", "[" + rule(`{"or":`+listOf(2, in(5000))+"}") + "]", "[" + rule(`{"or":`+listOf(3, in(5000))+"}") + "]",
			"route: $.rules[0].when.or[2].value: a router has at most 10000 values of in, and has 15000 up to here",
		},
		{
			"bytes", "[" + rule(`{"or":`+listOf(10_000, `{"field":"visits","op":"has"}`)+"}") + "]",
			"[" + rule(`{"or":`+listOf(100_000, `{"field":"visits","op":"has"}`)+"}") + "]",
			"route: $.rules: a router has at most 2097152 bytes of JSON, got ",
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
	many := make([]int, 10_000)
	long := strings.Repeat("<", 1<<20-2)
	tooMany := make([]route.Rule, 1001)
	for i := range tooMany {
		tooMany[i] = route.When(route.Has(intent), "a")
	}
	for name, c := range map[string]struct{ within, over []route.Rule }{
		"rules":  {tooMany[1:], tooMany},
		"values": {[]route.Rule{route.When(route.In(visits, many...), "a")}, []route.Rule{route.When(route.In(visits, append(many, 1)...), "a")}},
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
