package statetest_test

import "github.com/agentstate/state/internal/test/mutation"

func init() {
	mutants["orders"] = []mutation.Mutant{
		{Name: "one branch", File: "orders.go", Old: "if branches < 2 {", New: "if false {"},
		{Name: "states are not compared", File: "orders.go", Old: `if diff == "" {`, New: "if true {"},
		{Name: "the given order runs once", File: "orders.go", Old: "got := c.play(t, order)", New: "got := c.given\n\tif !slices.Equal(order, c.order) {\n\t\tgot = c.play(t, order)\n\t}"},
		{Name: "nothing is compared", File: "orders.go", Old: "if len(c.given.content) == 0 {", New: "if c.given.content == nil {"},
		{Name: "state of another order", File: "orders.go", Old: "case slices.Contains(c.states, st):", New: "case false:"},
		{Name: "deadlock is not reported", File: "orders.go", Old: "\tif problem != \"\" {", New: "\tif problem == \"no\" {"},
		{Name: "messages are not compared", File: "compare.go", Old: "		case f.Name == state.Messages.Name:\n			content[f.Name] = v\n", New: "		case f.Name == state.Messages.Name:\n"},
		{Name: "a Secret field is shown", File: "compare.go", Old: "content[f.Name] = s.Label(labelText(v))", New: "content[f.Name] = treeOf(v)",
			Also: []mutation.Edit{{File: "compare.go", Old: "return s.Mask(strings.ReplaceAll(diff, \"\\u00a0\", \" \"))", New: "return strings.ReplaceAll(diff, \"\\u00a0\", \" \")"}}},
		{Name: "branch without Wait", File: "order.go", Old: "if had == 0 && o.waiting[branch] == nil {", New: "if had < 0 {"},
		{Name: "number of a branch", File: "order.go", Old: "case branch < 0 || branch >= len(o.branches):\n\t\to.problem(\"Wait(%d): the branches are 0 to %d\", branch, len(o.branches)-1)\n", New: "case branch < 0 || branch >= len(o.branches):\n"},
		{Name: "branches that are left", File: "order.go", Old: `if waiting := o.names(); waiting != "" {`, New: `if waiting := o.names(); waiting == "no" {`},
		{Name: "branch that does not come", File: "order.go", Old: "\t\t\t\to.problem(\"branch %d was", New: "\t\t\t\t_ = fmt.Sprintf(\"branch %d was"},
		{Name: "no order", File: "order.go", Old: "	if goOn := o.arrive(branch); goOn != nil {", New: "	if goOn := o.arrive(branch); goOn == nil {"},
	}
}
