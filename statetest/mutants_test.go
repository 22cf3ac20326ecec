package statetest_test

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/mutation"
)

// mutants are the mistakes in the kit, by the part whose programs must notice
// them: each removes one check. <part>_mutants_test.go adds its own in an init
// function.
var mutants = map[string][]mutation.Mutant{}

// partMutant is a mutant and the part whose programs must notice it.
type partMutant struct {
	mutation.Mutant
	part string
}

func allMutants() []partMutant {
	var all []partMutant
	for _, part := range slices.Sorted(maps.Keys(mutants)) {
		for _, m := range mutants[part] {
			all = append(all, partMutant{m, part})
		}
	}
	return all
}

func TestMutantsCompile(t *testing.T) {
	var list []mutation.Mutant
	for _, m := range allMutants() {
		m.Name = m.part + "/" + m.Name
		list = append(list, m.Mutant)
	}
	mutation.Compile(t, list)
}

// failedTest is what go test says of a program that notices a mutant.
var failedTest = regexp.MustCompile(`--- FAIL: (TestSound|TestMistakes)/`)

// TestMutants builds these tests with each mutant, and requires that TestSound
// or TestMistakes fails. It takes minutes, and runs only if STATE_MUTANTS is
// set.
func TestMutants(t *testing.T) {
	for _, m := range mutation.Drawn(t, allMutants()) {
		t.Run(m.part+"/"+strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			program := m.Build(t, ".")
			cmd := exec.Command(program, "-test.run=^(TestSound|TestMistakes)$/^"+m.part+"$")
			cmd.Env = append(os.Environ(), "STATETEST_UPDATE=")
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "no program of %s notices it", m.part)
			require.True(t, failedTest.Match(out), "%s", out[max(0, len(out)-4000):])
		})
	}
}
