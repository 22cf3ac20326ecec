package main

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkoutOf makes a git repository with files.
func checkoutOf(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	for _, args := range []string{"init -q", "add .", "-c user.name=a -c user.email=a@localhost commit -qm first"} {
		out, err := exec.Command("git", append([]string{"-C", root}, strings.Fields(args)...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return root
}

func twoModules() map[string]string {
	return map[string]string{
		"LICENSE":      "free",
		"go.mod":       "module example.com/a\n\ngo 1.25.0\n",
		"a.go":         "package a\n",
		"store/go.mod": "module example.com/a/store\n\ngo 1.25.0\n\nrequire example.com/a v0.0.0\n\nreplace example.com/a => ..\n",
		"store/go.sum": "example.com/z v1.0.0 h1:z=\nexample.com/a v0.0.1 h1:old=\n",
		"store/s.go":   "package store\n\nimport _ \"example.com/a\"\n",
	}
}

func TestModulesRequireEachOtherAtTheVersion(t *testing.T) {
	root, proxy := checkoutOf(t, twoModules()), t.TempDir()
	tags, err := release(root, "v1.2.3", proxy)
	require.NoError(t, err)
	require.Equal(t, []string{"v1.2.3", "store/v1.2.3"}, tags)

	mod, err := os.ReadFile(filepath.Join(root, "store/go.mod"))
	require.NoError(t, err)
	require.Equal(t, "module example.com/a/store\n\ngo 1.25.0\n\nrequire example.com/a v1.2.3\n", string(mod))
	sum, err := os.ReadFile(filepath.Join(root, "store/go.sum"))
	require.NoError(t, err)
	require.Regexp(t, `^example.com/a v1.2.3 h1:\S+=\nexample.com/a v1.2.3/go.mod h1:\S+=\nexample.com/z v1.0.0 h1:z=\n$`, string(sum))
}

func TestAModuleIsPackedWithItsFilesAndALicence(t *testing.T) {
	root, proxy := checkoutOf(t, twoModules()), t.TempDir()
	_, err := release(root, "v1.2.3", proxy)
	require.NoError(t, err)
	for module, want := range map[string][]string{
		"example.com/a":       {"LICENSE", "a.go", "go.mod"},
		"example.com/a/store": {"go.mod", "go.sum", "s.go", "LICENSE"},
	} {
		archive, err := zip.OpenReader(filepath.Join(proxy, module, "@v/v1.2.3.zip"))
		require.NoError(t, err)
		defer archive.Close()
		var names []string
		for _, file := range archive.File {
			names = append(names, strings.TrimPrefix(file.Name, module+"@v1.2.3/"))
		}
		require.Equal(t, want, names)
	}
}

func TestAReleaseIsRefused(t *testing.T) {
	tests := []struct{ version, file, text, want string }{
		{"1.2.3", "", "", "is not a version"},
		{"v1.2", "", "", "is not a version"},
		{"v1.2.3", "go.mod", "module example.com/a\n\nreplace example.com/x => ../x\n", "which is not released with it"},
		{"v1.2.3", "go.mod", "module example.com/a\n\nrequire example.com/a/store v0.0.0\n", "modules require each other"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			files := twoModules()
			if tt.file != "" {
				files[tt.file] = tt.text
			}
			_, err := release(checkoutOf(t, files), tt.version, t.TempDir())
			require.ErrorContains(t, err, tt.want)
		})
	}
}
