package inspect_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/agentstate/state/internal/test/mutation"
	"github.com/stretchr/testify/require"
)

// mutants are mistakes in the pages that the tests of leaks must find.
var mutants = []mutation.Mutant{
	{
		Name: "clips before it masks", File: "internal/view/mask.go",
		Old: "	if len(s) <= 4*limit {", New: "	s, _ = clip(s, limit)\n	if len(s) <= 4*limit {",
	},
	{
		Name: "a diff is not masked", File: "internal/view/diff.go",
		Old: "mask := newMasker(s.now, views[0], views[1])", New: "mask := &masker{}",
	},
	{
		Name: "a past version is masked by its own secrets only", File: "internal/view/head.go",
		Old: "s.mask = newMasker(s.now, s.view)", New: "s.mask = newMasker(s.view)",
	},
	{
		Name: "a diff shows the configuration of servers", File: "internal/view/records.go",
		Old: `if e.Part == "setting" && e.Field == "mcp_servers" {`, New: "if false {",
	},
	{
		Name: "values are shown without a schema", File: "internal/view/mask.go",
		Old: "m.Blind = m.Blind || isBlind(v)", New: "_ = isBlind(v)",
	},
	{
		Name: "a part of a stream is not masked", File: "internal/view/mask.go",
		Old: "w.Write([]byte(s[:n]))", New: "b.WriteString(s[:n])",
	},
	{
		Name: "causes are not masked", File: "internal/view/mask.go",
		Old: "func (m *masker) id(s string) text { return m.line(s).Text }",
		New: "func (m *masker) id(s string) text { return text(s) }",
	},
}

func TestMutantsCompile(t *testing.T) { mutation.Compile(t, mutants) }

var failedLeakTest = regexp.MustCompile(`--- FAIL: TestNo(Page|Link)`)

// TestMutants builds the tests of leaks with each mutant and requires that they
// find it. It runs only if STATE_MUTANTS is set.
func TestMutants(t *testing.T) {
	for _, m := range mutation.Drawn(t, mutants) {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			program := m.Build(t, ".", "leak_test.go", "fixture_test.go", "crawler_test.go", "calls_test.go")
			cmd := exec.Command(program, "-test.run=^TestNo(Page|Link)", "-test.failfast")
			cmd.Env = append(os.Environ(), "STATE_SEED=1", "STATE_EFFORT=5") // it ends at the first leak
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "no test finds it")
			require.True(t, failedLeakTest.Match(out), "%s", out[max(0, len(out)-4000):])
		})
	}
}
