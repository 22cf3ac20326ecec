package statetest_test

import "github.com/agentstate/state/internal/mutation"

func init() {
	mutants["orders"] = []mutation.Mutant{
		{Name: "one branch", File: "orders.go", Old: "if branches < 2 {", New: "if false {"},
		{Name: "states are not compared", File: "orders.go", Old: `if diff == "" {`, New: "if true {"},
		{Name: "the given order runs once", File: "orders.go", Old: "got := c.play(t, order)", New: "got := c.given\n\tif !slices.Equal(order, given) {\n\t\tgot = c.play(t, order)\n\t}"},
		{Name: "nothing is compared", File: "orders.go", Old: "if len(left) == 0 {", New: "if left == nil {"},
		{Name: "state of another order", File: "orders.go", Old: "case slices.Contains(c.states, st):", New: "case false:"},
		{Name: "deadlock is not reported", File: "orders.go", Old: "\tif problem != \"\" {", New: "\tif problem == \"no\" {"},
		{Name: "fields only", File: "content.go", Old: "for _, info := range st.Fields() {", New: "for _, info := range st.Fields() {\n\t\tif info.Name == \"messages\" {\n\t\t\tcontinue\n\t\t}"},
		{Name: "elements in any order", File: "content.go", Old: "\t\tlines[i] = string(element)\n\t}", New: "\t\tlines[i] = string(element)\n\t}\n\tslices.Sort(lines)"},
		{Name: "a Secret field is shown", File: "content.go", Old: "maskLines(masks, before), maskLines(masks, after)\n", New: "before, after\n"},
		{Name: "branch without Wait", File: "order.go", Old: "\t\tif !came {", New: "\t\tif !came && false {"},
		{Name: "number of a branch", File: "order.go", Old: "case branch < 0 || branch >= len(o.branches):\n\t\to.problem(\"Wait(%d): the branches are 0 to %d\", branch, len(o.branches)-1)\n", New: "case branch < 0 || branch >= len(o.branches):\n"},
		{Name: "branches that are left", File: "order.go", Old: `if waiting := o.waiting(); waiting != "" && !o.free {`, New: `if waiting := o.waiting(); waiting == "no" {`},
		{Name: "branch that does not come", File: "order.go", Old: "\t\t\t\to.free = true\n\t\t\t\to.problem(", New: "\t\t\t\to.free = true\n\t\t\t\t_ = fmt.Sprintf("},
		{Name: "no order", File: "order.go", Old: "if o.free || o.going == branch {", New: "if true {"},
	}
}
