package statetest_test

import "github.com/agentstate/state/internal/test/mutation"

func init() {
	mutants["model"] = []mutation.Mutant{
		{Name: "conversations are not checked", File: "modelcheck.go", Old: "if len(findings) > 0 &&", New: "if len(findings) > 99 &&"},
		{Name: "calls are not compared", File: "madecalls.go", Old: "if len(made) == 0 ||", New: "if true || len(made) == 0 ||"},
		{Name: "calls without ids are not compared", File: "madecalls.go", Old: "if c.ID != \"\" {\n\t\tif made", New: "if true {\n\t\tif made"},
		{Name: "replies may be left", File: "model.go", Old: "len(missing) > 0 && !t.Skipped() {", New: "len(missing) > 99 && !t.Skipped() {"},
		{Name: "requests need no reply", File: "model.go", Old: "m.errorf(\"%s, finds no reply", New: "_ = fmt.Sprintf(\"%s, finds no reply"},
		{Name: "any number of equal requests", File: "modelcheck.go", Old: "maxEqual   = 3 ", New: "maxEqual   = 99 "},
		{Name: "equal requests of a reply each", File: "modelcheck.go", Old: "if from == nil || from.times == 0 || from.times == 1 || from != last.from {", New: "if from == nil {"},
		{Name: "program that does not stop", File: "modelcheck.go", Old: "fatalEqual = 100", New: "fatalEqual = 200"},
		{Name: "secrets in failures", File: "model.go", Old: "m.secrets.Add(st)", New: "_ = st"},
		{Name: "secrets of replies that are left", File: "model.go", Old: "s.Missing(m.secrets.Mask)", New: "s.Missing(unmasked)"},
		{Name: "replies for any agent", File: "reply.go", Old: "if r.agent != nil &&", New: "if false &&"},
		{Name: "replies to any text", File: "reply.go", Old: "if !request.reads(text) {", New: "if false {"},
		{Name: "When is not asked", File: "reply.go", Old: "if !fn(request) {", New: "if false && !fn(request) {"},
		{Name: "Times is not kept", File: "script.go", Old: "return e.times < 0 || e.given < max(1, e.times)", New: "return e.times < 0 || e.given < 1"},
		{Name: "messages that are nil", File: "model.go", Old: "return !inside.IsMessage(msg)", New: "return msg != nil && !inside.IsMessage(msg)"},
	}
}
