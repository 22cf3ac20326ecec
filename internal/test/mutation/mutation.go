// Package mutation puts mistakes into copies of the sources, which tests must
// find. A mistake that no test finds shows a rule that no test keeps. Only tests
// import it.
//
// STATE_MUTANTS is the number n such that each n-th mutant is tested, beginning
// with one that STATE_DRAW determines, so that different draws test different
// ones. 1 is all of them. Without it, mutants are compiled only.
package mutation

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentstate/state/internal/test/effort"
)

// Mutant is a mistake in the sources of one package.
type Mutant struct {
	Name string

	// File, relative to the folder of the test, has Old exactly once. It is
	// replaced by New. A Mutant without File changes nothing.
	File, Old, New string
	Also           []Edit // further edits
}

// Edit replaces a text that a file has exactly once.
type Edit struct{ File, Old, New string }

// Drawn returns the mutants, or what a test has about them, that STATE_MUTANTS
// asks for. It skips the test if that is not set.
func Drawn[M any](t testing.TB, mutants []M) []M {
	t.Helper()
	text := os.Getenv("STATE_MUTANTS")
	if text == "" {
		t.Skip("STATE_MUTANTS is not set")
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("mutation: STATE_MUTANTS=%q is not a number above 0", text)
	}
	var drawn []M
	for i := int(effort.Draw(0) % uint64(n)); i < len(mutants); i += n {
		drawn = append(drawn, mutants[i])
	}
	return drawn
}

// Build compiles the tests of the package in folder with the mutant, and returns
// the file of the program. If patterns are given, only test files whose base
// names match one of them are compiled.
func (m Mutant) Build(t testing.TB, folder string, patterns ...string) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{} // file: what stands in its place, or "" if it is left out
	for _, file := range testFiles(t, folder) {
		if len(patterns) > 0 && !matchesAny(t, filepath.Base(file), patterns) {
			replace[absolute(t, file)] = ""
		}
	}
	for file, text := range m.mutated(t) {
		copied := filepath.Join(dir, strconv.Itoa(len(replace))+"_"+filepath.Base(file))
		replace[absolute(t, file)] = copied
		write(t, copied, []byte(text))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	check(t, err)
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	write(t, file, overlay)
	build := exec.Command("go", "test", "-c", "-gcflags=-l", "-ldflags=-s -w", "-overlay", file, "-o", program, folder)
	build.Env = append(os.Environ(), "GOGC=off") // builds take most of the time
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("mutation: %v\n%s", err, out)
	}
	return program
}

// edits returns all edits of the mutant.
func (m Mutant) edits() []Edit {
	if m.File == "" {
		return m.Also
	}
	return append([]Edit{{m.File, m.Old, m.New}}, m.Also...)
}

// mutated returns the texts of the edited files.
func (m Mutant) mutated(t testing.TB) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, e := range m.edits() {
		text, edited := texts[e.File]
		if !edited {
			data, err := os.ReadFile(e.File)
			check(t, err)
			text = string(data)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			t.Fatalf("mutation: %s has this text %d times, want once:\n%s", e.File, n, e.Old)
		}
		texts[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return texts
}

func testFiles(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	check(t, err)
	return files
}

func matchesAny(t testing.TB, name string, patterns []string) bool {
	t.Helper()
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matches, err := filepath.Match(pattern, name)
		check(t, err)
		return matches
	})
}

func absolute(t testing.TB, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	check(t, err)
	return path
}

func write(t testing.TB, file string, data []byte) {
	t.Helper()
	check(t, os.WriteFile(file, data, 0o600))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal("mutation:", err)
	}
}

// Compile applies the edits of each mutant and checks the types of its package,
// in a subtest each, so that a change of the sources that breaks a mutant is
// found without testing it. It skips the test with -short.
func Compile(t *testing.T, mutants []Mutant) {
	effort.SkipShort(t)
	c := compiler{files: token.NewFileSet(), sources: map[string]map[string]*ast.File{}}
	for _, m := range mutants {
		if dir := m.folder(); c.sources[dir] == nil {
			c.parseFolder(t, dir)
		}
	}
	c.config.Importer = importer.ForCompiler(c.files, "gc", exportedTypes(t, slices.Sorted(maps.Keys(c.sources))))
	for _, m := range mutants {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) { c.check(t, m) })
	}
}

// compiler checks the types of mutated packages.
type compiler struct {
	files   *token.FileSet
	sources map[string]map[string]*ast.File // by folder and file
	config  types.Config
}

func (c *compiler) parseFolder(t testing.TB, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	check(t, err)
	c.sources[dir] = map[string]*ast.File{}
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			c.sources[dir][name] = c.parse(t, name, nil)
		}
	}
}

func (c *compiler) parse(t testing.TB, name string, text any) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(c.files, name, text, parser.SkipObjectResolution)
	check(t, err)
	return file
}

func (c *compiler) check(t *testing.T, m Mutant) {
	dir := m.folder()
	files := maps.Clone(c.sources[dir])
	for name, text := range m.mutated(t) {
		name = filepath.Clean(name)
		if files[name] == nil {
			t.Fatalf("mutation: %s is not in the package of the first edit", name)
		}
		files[name] = c.parse(t, name, text)
	}
	_, err := c.config.Check(dir, c.files, slices.Collect(maps.Values(files)), nil)
	check(t, err)
}

// folder returns the folder of the package that has the mistake.
func (m Mutant) folder() string {
	edits := m.edits()
	if len(edits) == 0 {
		return "."
	}
	return filepath.Dir(edits[0].File)
}

// exportedTypes finds the compiled form of what the packages in the folders
// import.
func exportedTypes(t testing.TB, folders []string) func(path string) (io.ReadCloser, error) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	for _, folder := range folders {
		args = append(args, "."+string(filepath.Separator)+folder)
	}
	out, err := exec.Command("go", args...).Output()
	check(t, err)
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
}
