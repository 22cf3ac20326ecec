package statetest_test

import "github.com/agentstate/state/internal/test/mutation"

func init() {
	mutants["joined"] = []mutation.Mutant{
		{Name: "no branch is checked", File: "joined.go", Old: "len(written) > 0", New: "len(written) > 1000"},
		{Name: "only the first branch is checked", File: "joined.go", Old: "range forks {", New: "range forks[:min(1, len(forks))] {"},
	}
}
