package statetest_test

import (
	"bytes"
	"flag"
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

	"github.com/agentstate/state/internal/effort"
)

// The tests of this file prove that the kit finds mistakes and nothing else. A
// program is a workflow of a user that may have one mistake. Without it, it must
// pass; with it, it must fail in the words that its row says, and in the text of
// its file in testdata/failures.

// program is a test of a user's workflow, with a mistake or without.
type program struct {
	row   int    // by which its file is sorted, or 0
	part  string // of the kit, in one word
	name  string
	run   func(t *testing.T, mistake bool)
	words []string // what the failure must say
}

// programs are those of all parts. <part>_mistakes_test.go appends its own in
// an init function.
var programs []program

var update = flag.Bool("update", false, "write the files of testdata")

func (p program) title() string {
	name := strings.ReplaceAll(p.name, " ", "_")
	if p.row > 0 {
		name = fmt.Sprintf("%02d_%s", p.row, name)
	}
	return name
}

// byPart returns the programs of each part, in the order of their rows.
func byPart() map[string][]program {
	parts := map[string][]program{}
	for _, p := range programs {
		parts[p.part] = append(parts[p.part], p)
	}
	for _, list := range parts {
		slices.SortStableFunc(list, func(a, b program) int { return a.row - b.row })
	}
	return parts
}

func TestSound(t *testing.T) {
	parts := byPart()
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		t.Run(part, func(t *testing.T) {
			for _, p := range parts[part] {
				t.Run(p.title(), func(t *testing.T) { p.run(t, false) })
			}
		})
	}
}

// brokenPart is the variable with which TestMistakes runs this test binary
// again, for the programs of a part to fail in TestBroken.
const brokenPart = "STATETEST_BROKEN"

func TestBroken(t *testing.T) {
	part := os.Getenv(brokenPart)
	if part == "" {
		t.Skip("TestMistakes runs it")
	}
	for _, p := range byPart()[part] {
		t.Run(p.title(), func(t *testing.T) { p.run(t, true) })
	}
}

func TestMistakes(t *testing.T) {
	effort.SkipShort(t)
	parts := byPart()
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		t.Run(part, func(t *testing.T) {
			failures, out := failures(t, part)
			for _, p := range parts[part] {
				t.Run(p.title(), func(t *testing.T) {
					text, found := failures[p.title()]
					require.True(t, found, "the mistake is not found:\n%s", out)
					for _, words := range p.words {
						require.Contains(t, text, words)
					}
					requireGolden(t, p.title()+".txt", text)
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
func requireGolden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", "failures", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test ./statetest -run TestMistakes -update writes it")
	require.Equal(t, string(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))), text)
}

func TestEachFileOfAFailureBelongsToAProgram(t *testing.T) {
	files := map[string]bool{}
	for _, p := range programs {
		require.NotEmpty(t, p.words, p.name)
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
