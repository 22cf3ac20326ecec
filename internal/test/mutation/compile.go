package mutation

import (
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
	"strings"
	"testing"

	"github.com/agentstate/state/internal/test/effort"
)

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
