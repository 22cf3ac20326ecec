package statetest_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/agentstate/state"

// A program that imports the kit has the flags of package testing.
func TestOnlyTestsImportTheKit(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			if !strings.HasPrefix(path, filepath.Join("..", "statetest")) {
				require.NotContains(t, spec.Path.Value, module+"/statetest", path)
			}
		}
		return nil
	})
	require.NoError(t, err)
}

func TestNoPackageNeedsPackageTesting(t *testing.T) {
	kits := []string{module + "/statetest", module + "/statetest/crash", module + "/provider/providertest", module + "/store/storetest"}
	for path, deps := range dependencies(t, "../...") {
		if strings.Contains(path, "/internal/") || slices.Contains(kits, path) {
			continue
		}
		require.NotContains(t, deps, "testing", path)
		require.NotContains(t, deps, module+"/statetest", path)
	}
}

func TestTheKitNeedsNoOtherModules(t *testing.T) {
	for line := range strings.Lines(list(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{.Module.Path}} {{join .Imports \" \"}}{{end}}", ".")) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		modules := []string{module, "github.com/google/go-cmp", "github.com/google/jsonschema-go", "golang.org/x/exp"}
		require.Contains(t, modules, words[1])
		readers := []string{module + "/tool", module + "/statetest"}
		if words[1] == module && !slices.Contains(readers, words[0]) {
			require.NotContains(t, words[2:], "github.com/google/jsonschema-go/jsonschema", words[0])
		}
	}
}

// dependencies returns all that each package of the patterns needs.
func dependencies(t *testing.T, patterns ...string) map[string][]string {
	t.Helper()
	deps := map[string][]string{}
	for line := range strings.Lines(list(t, append([]string{"-f", "{{.ImportPath}} {{join .Deps \" \"}}"}, patterns...)...)) {
		words := strings.Fields(line)
		deps[words[0]] = words[1:]
	}
	return deps
}

// list returns what go list prints.
func list(t *testing.T, args ...string) string {
	t.Helper()
	var errors strings.Builder
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Stderr = &errors
	out, err := cmd.Output()
	require.NoError(t, err, errors.String())
	return string(out)
}
