package statetest_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/agentstate/state"

// kits are the folders whose packages are for tests only.
var kits = regexp.MustCompile(`^\.\./(statetest|internal/test|provider/providertest|store/storetest|lab)/`)

// A program that imports a kit has the flags of package testing.
func TestOnlyTestsImportTheKits(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || kits.MatchString(path) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.NotEqual(t, "testing", imported, path)
			require.False(t, kits.MatchString(strings.Replace(imported, module, "..", 1)+"/"), "%s imports %s", path, imported)
		}
		return nil
	})
	require.NoError(t, err)
}

func TestTheKitNeedsNoOtherModules(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{.Module.Path}} {{join .Imports \" \"}}{{end}}", ".").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		modules := []string{module, "github.com/google/go-cmp", "github.com/google/jsonschema-go"}
		require.Contains(t, modules, words[1])
		readers := []string{module + "/tool", module + "/statetest"}
		if words[1] == module && !slices.Contains(readers, words[0]) {
			require.NotContains(t, words[2:], "github.com/google/jsonschema-go/jsonschema", words[0])
		}
	}
}
