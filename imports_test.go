package state_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A layer is packages that may import each other and what is below them.
type layer struct {
	name     string
	packages []string // or folders, with all that is below them
	above    []string // layers, from the first one on
}

// layers has every package of every module of the repository. A package belongs
// to the row that names the longest part of its path.
var layers = []layer{
	{"values", []string{"internal"}, nil}, // they know no State
	{"state", []string{"."}, []string{"values"}},
	{"core", []string{"internal/origin", "internal/runctx", "tool", "route", "redactlog"}, []string{"state"}},
	{"conversations", []string{"transcript", "provider"}, []string{"core"}},
	{"stores", []string{"store"}, []string{"values"}},
	{"loop", []string{"loop"}, []string{"conversations"}},
	{"wire", []string{"wire"}, []string{"loop"}}, // its requests are those of a Turn
	{"workspace", []string{"workspace"}, []string{"loop", "stores"}},
	{"statehttp", []string{"statehttp", "internal/pagehttp"}, []string{"workspace"}},
	{"guests", []string{"adapter", "inspect", "otelstate"}, []string{"statehttp", "wire"}},
	{"kits", []string{"statetest", "store/storetest", "provider/providertest", "internal/test"}, []string{"workspace", "wire"}},
	{"programs", []string{"examples", "lab"}, []string{"guests", "kits"}},
}

// The packages of the repository import only packages of their own layer and of
// the layers below it. What a package has for its tests may import any.
func TestDirectionOfImports(t *testing.T) {
	below := map[string][]string{}
	for _, l := range layers {
		below[l.name] = []string{l.name}
		for _, name := range l.above {
			require.Contains(t, below, name, "the row of a layer is below those that it is above")
			below[l.name] = append(below[l.name], below[name]...)
		}
	}
	used := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && file != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := layerOf(path.Dir(filepath.ToSlash(file)))
		require.NotEmpty(t, from, "%s: its package has no row", file)
		used[from] = true
		for _, spec := range source.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if folder, ours := strings.CutPrefix(name+"/", "github.com/agentstate/state/"); ours {
				require.Contains(t, below[from], layerOf(path.Clean(folder)), "%s imports %s", file, name)
			}
		}
		return nil
	}))
	require.Len(t, used, len(layers), "each layer has a package")
}

// layerOf returns the layer of a package, by its folder, or "" if it has no row.
func layerOf(folder string) string {
	for at := folder; at != "." || folder == "."; at = path.Dir(at) {
		for _, l := range layers {
			if slices.Contains(l.packages, at) {
				return l.name
			}
		}
	}
	return ""
}
