package statetest_test

import "github.com/agentstate/state/internal/mutation"

func init() {
	mutants["interfere"] = []mutation.Mutant{
		{Name: "same state runs once", File: "interfere.go", Old: "second := c.play(t, nil)", New: "second := first"},
		{Name: "no comparison", File: "interfere.go", Old: "if d := firstDifference(want.sights, got.sights); d != nil {", New: "if d := firstDifference(nil, nil); d != nil {"},
		{Name: "no Vary", File: "interfere.go", Old: "case len(c.vary) == 0:", New: "case false:"},
		{Name: "field that may be read", File: "interfere.go", Old: "if !v.denied(view) {", New: "if false {"},
		{Name: "agent outside of the team", File: "interfere.go", Old: "if len(view.Fields()) == 0 {", New: "if false {"},
		{Name: "state of another run", File: "interfere.go", Old: "case slices.Contains(c.states, st):", New: "case false:"},
		{Name: "nothing seen", File: "interfere.go", Old: "case v == nil && !any:", New: "case v == nil && !any && false:"},
		{Name: "same value", File: "interfere.go", Old: "was == is && (!is || reflect.DeepEqual(before, after))", New: "was == is && (!is || reflect.DeepEqual(before, after) && false)"},
		{Name: "models do not report", File: "interfere.go", Old: "for _, problem := range seen.problems {", New: "for _, problem := range seen.problems[:0] {"},
		{Name: "replies left", File: "seen.go", Old: "\t\t\tif len(missing) > 0 {", New: "\t\t\tif false {"},
		{Name: "requests of all agents", File: "seen.go", Old: "if r.Agent != s.agent {", New: "if false {"},
		{Name: "no requests", File: "seen.go", Old: "if r.Agent != s.agent {", New: "if true {"},
		{Name: "no Describe", File: "seen.go", Old: `strings.Split(view.Describe(), "\n")`, New: "nil"},
		{Name: "no Version", File: "seen.go", Old: "[]string{fmt.Sprint(view.Version())}", New: "nil"},
		{Name: "no Changes", File: "seen.go", Old: "changeLines(view))", New: "changeLines(nil))"},
		{Name: "what the second run does not show", File: "seen.go", Old: "{{want, got}, {got, want}}", New: "{{got, want}, {got, want}}"},
		{Name: "what the first run does not show", File: "seen.go", Old: "{{want, got}, {got, want}}", New: "{{want, got}, {want, got}}"},
		{Name: "no masks", File: "seen.go", Old: "lineDiff(maskLines(masks, d.want), maskLines(masks, d.got))", New: "lineDiff(d.want, d.got)"},
	}
}
