package crash_test

import "github.com/agentstate/state/internal/test/mutation"

func init() {
	const (
		all   = "return []fault{crashBefore, crashAfter, lost, dropped, unavailable, stall}"
		check = "judge.go"
	)
	mutants["crash"] = []mutation.Mutant{
		{Name: "effects are not compared", File: check, Old: "findings := compareEffects(want.effects, got.effects)", New: "var findings []string"},
		{Name: "fields are not compared", File: check, Old: "findings = append(findings, compareFields(want.fields, got.fields, ignore)...)", New: ""},
		{Name: "messages of the user are not compared", File: check, Old: "if slices.Equal(want.users, got.users) {", New: "if true {"},
		{Name: "any message may be trimmed", File: check, Old: "return keep > 0 &&", New: "return true || keep > 0 &&"},
		{Name: "replies are not compared", File: check, Old: "if want[i] != got[i] {", New: "if false {"},
		{Name: "conversations are not compared", File: "requests.go", Old: "if slices.Equal(want, got) {", New: "if true {"},
		{Name: "any request may be made", File: "requests.go", Old: "if slices.Contains(want, r) || slices.Contains(got[:i], r) {", New: "if true {"},
		{Name: "requests are not counted", File: "requests.go", Old: "len(got) > limit", New: "false"},
		{Name: "the conversation is not checked", File: check, Old: "return append(findings, checkEndConversation(w, v)...)", New: "return findings"},
		{Name: "each failure is excused", File: "driver.go", Old: "if !k.excuse(v.DeadLetters[i]) {", New: "if false {"},
		{Name: "goroutines may be left", File: "case.go", Old: `if left != "" {`, New: "if false {"},
		{Name: "undisturbed cases are not compared", File: "test.go", Old: "	if !second.failed() {", New: "	if second.failed() {"},
		{Name: "no process dies after a call", File: "point.go", Old: all, New: "return []fault{crashBefore, lost, dropped, unavailable, stall}"},
		{Name: "no answer is lost", File: "point.go", Old: all, New: "return []fault{crashBefore, crashAfter, dropped, unavailable, stall}"},
		{Name: "no process stands still", File: "point.go", Old: all, New: "return []fault{crashBefore, crashAfter, lost, dropped, unavailable}"},
		{Name: "processes go on after their death", File: "point.go", Old: "\tp.end(errDead)\n", New: "", Also: []mutation.Edit{
			{File: "point.go", Old: "\tp.dead = true\n", New: ""},
		}},
		{Name: "what is on its way does not arrive", File: "point.go", Old: "_, _ = do(pt)", New: ""},
		{Name: "keys are not known again", File: "world.go", Old: `case e.Key == "" || !found:`, New: "case true || !found:"},
		{Name: "keys are of any input", File: "world.go", Old: "case first.Input != e.Input:", New: "case first.Key == \"\":"},
		{Name: "an equal request gets another answer", File: "../script.go", Old: "return g.plain.equal(plain) })", New: "return false })"},
		{Name: "calls are not made again", File: "../madecalls.go", Old: "if m.Text() == origin.NoResult {", New: "if m.Text() == origin.NoResult+\".\" {"},
	}
}
