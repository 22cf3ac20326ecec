// Package mistakes proves that a kit for tests finds mistakes and nothing else.
// A [Program] is a workflow of a user that may have one mistake. Without it, it
// must pass; with it, it must fail in the words that its row says, and in the
// text of its file in testdata/failures. Only tests import this package.
package mistakes

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/mutation"
)

// Program is a test of a user's workflow, with a mistake or without.
type Program struct {
	Row   int    // by which its file is sorted, or 0
	Part  string // of the kit, in one word
	Name  string
	Run   func(t *testing.T, mistake bool)
	Words []string // what the failure must say
}

func (p Program) title() string {
	name := strings.ReplaceAll(p.Name, " ", "_")
	if p.Row > 0 {
		name = fmt.Sprintf("%02d_%s", p.Row, name)
	}
	return name
}

// byPart returns the programs of each part, in the order of their rows.
func byPart(programs []Program) map[string][]Program {
	parts := map[string][]Program{}
	for _, p := range programs {
		parts[p.Part] = append(parts[p.Part], p)
	}
	for _, list := range parts {
		slices.SortStableFunc(list, func(a, b Program) int { return a.Row - b.Row })
	}
	return parts
}

// Sound runs the programs of each part without their mistakes, as TestSound.
func Sound(t *testing.T, programs []Program) {
	parts := byPart(programs)
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		t.Run(part, func(t *testing.T) {
			for _, p := range parts[part] {
				t.Run(p.title(), func(t *testing.T) { p.Run(t, false) })
			}
		})
	}
}

// brokenPart is the variable with which Find runs the test binary again, for the
// programs of a part to fail in TestBroken.
const brokenPart = "STATETEST_BROKEN"

// Broken is TestBroken, which Find runs.
func Broken(t *testing.T, programs []Program) {
	part := os.Getenv(brokenPart)
	if part == "" {
		t.Skip("TestMistakes runs it")
	}
	for _, p := range byPart(programs)[part] {
		t.Run(p.title(), func(t *testing.T) { p.Run(t, true) })
	}
}

// Find requires that each mistake is found, as TestMistakes. With update it
// writes the files.
func Find(t *testing.T, programs []Program, update bool) {
	effort.SkipShort(t)
	parts := byPart(programs)
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		t.Run(part, func(t *testing.T) {
			failures, out := failures(t, part)
			for _, p := range parts[part] {
				t.Run(p.title(), func(t *testing.T) {
					text, found := failures[p.title()]
					require.True(t, found, "the mistake is not found:\n%s", out)
					for _, words := range p.Words {
						require.Contains(t, text, words)
					}
					requireGolden(t, p.title()+".txt", text, update)
				})
			}
		})
	}
}

var (
	failureLine = regexp.MustCompile(`(?m)^    --- FAIL: TestBroken/(\S+) .*\n`)
	runTime     = regexp.MustCompile(`(?m)^( *--- FAIL: \S+) \(\d+\.\d+s\)$`)
	initName    = regexp.MustCompile(`\binit\.\d+\.func\d+`)
	tempDir     = regexp.MustCompile(`\S*TestBroken[^/\\\s]*[/\\]\d{3}[/\\]`)
	testLine    = regexp.MustCompile(`((?:_test|client)\.go):\d+`)
)

// failures runs TestBroken for a part. It returns what go test prints of each
// program that failed, without times, numbers of lines and temporary folders,
// and all that it prints.
func failures(t *testing.T, part string) (map[string]string, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestBroken$")
	cmd.Env = append(os.Environ(), brokenPart+"="+part, "STATETEST_UPDATE=")
	output, err := cmd.CombinedOutput()
	require.Error(t, err, "no program fails")
	out := string(output)
	texts := map[string]string{}
	places := failureLine.FindAllStringSubmatchIndex(out, -1)
	for i, place := range places {
		end := strings.LastIndex(out, "\nFAIL\n") + 1
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		text := runTime.ReplaceAllString(out[place[0]:max(place[1], end)], "$1")
		text = initName.ReplaceAllString(text, "init.N.funcN")
		text = testLine.ReplaceAllString(text, "$1:LINE")
		text = tempDir.ReplaceAllString(text, "DIR/")
		texts[out[place[2]:place[3]]] = strings.ReplaceAll(strings.TrimPrefix(text, "    "), "\n    ", "\n")
	}
	return texts, out
}

// requireGolden compares text with a file of testdata/failures, or writes it.
func requireGolden(t *testing.T, name, text string, update bool) {
	t.Helper()
	file := filepath.Join("testdata", "failures", name)
	if update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test -run TestMistakes -update writes it")
	require.Equal(t, string(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))), text)
}

// CheckFiles requires that each file of a failure belongs to a program.
func CheckFiles(t *testing.T, programs []Program) {
	files := map[string]bool{}
	for _, p := range programs {
		require.NotEmpty(t, p.Words, p.Name)
		require.False(t, files[p.title()], "two programs are called %s", p.title())
		files[p.title()] = true
	}
	found, err := filepath.Glob("testdata/failures/*.txt")
	require.NoError(t, err)
	for _, file := range found {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		require.True(t, files[name], "%s belongs to no program", file)
	}
}

// partMutant is a mutant and the part whose programs must notice it.
type partMutant struct {
	mutation.Mutant
	part string
}

func allMutants(mutants map[string][]mutation.Mutant) []partMutant {
	var all []partMutant
	for _, part := range slices.Sorted(maps.Keys(mutants)) {
		for _, m := range mutants[part] {
			all = append(all, partMutant{m, part})
		}
	}
	return all
}

// CompileMutants compiles the mistakes in a kit, by the part whose programs must
// notice them, as TestMutantsCompile.
func CompileMutants(t *testing.T, mutants map[string][]mutation.Mutant) {
	var list []mutation.Mutant
	for _, m := range allMutants(mutants) {
		m.Name = m.part + "/" + m.Name
		list = append(list, m.Mutant)
	}
	mutation.Compile(t, list)
}

// failedTest is what go test says of a program that notices a mutant.
var failedTest = regexp.MustCompile(`--- FAIL: (TestSound|TestMistakes)/`)

// FindMutants builds the tests of the package with each mutant, and requires that
// TestSound or TestMistakes fails. It takes minutes, and runs only if
// STATE_MUTANTS is set.
func FindMutants(t *testing.T, mutants map[string][]mutation.Mutant) {
	for _, m := range mutation.Drawn(t, allMutants(mutants)) {
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
