// Package licences keeps the list of the licences of what users of the modules
// link into their programs.
package licences

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/licences.md")

const (
	root = "../.."
	list = root + "/docs/licences.md"
	ours = "github.com/agentstate/state"
)

// licences are the names of what is accepted, each with words of its text. The
// text of the first BSD licences has the words of the last.
var licences = []struct{ name, words string }{
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License"},
	{"BSD-3-Clause", "may be used to endorse or promote products"},
	{"BSD-3-Clause", "used to endorse or promote products"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"ISC", "Permission to use, copy, modify, and"},
	{"CC0-1.0", "CC0 1.0 Universal"},
}

func TestTheListOfLicencesIsTrue(t *testing.T) {
	users := map[string][]string{} // our modules, by a line of the list
	for _, folder := range published(t) {
		for path, dir := range linked(t, folder) {
			row := fmt.Sprintf("| `%s` | %s |", path, licenceOf(t, path, dir))
			users[row] = append(users[row], folder)
		}
	}
	rows := make([]string, 0, len(users))
	for row, folders := range users {
		rows = append(rows, fmt.Sprintf("%s %s |\n", row, strings.Join(folders, ", ")))
	}
	slices.Sort(rows)
	want := "# Licences\n\nWhat a program links with the modules of this repository, which are under Apache-2.0. " +
		"Modules that only tests use are left out.\n" +
		"`go -C lab test ./licences -update` writes this page from the LICENSE files of the modules, and CI compares it.\n\n" +
		"| module | licence | linked by |\n|---|---|---|\n" + strings.Join(rows, "")
	if *update {
		require.NoError(t, os.WriteFile(list, []byte(want), 0o644))
	}
	have, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, string(have), want)
}

// published returns the folders of the modules that users import or install.
func published(t *testing.T) []string {
	folders := []string{"."}
	for _, pattern := range []string{"store/*/go.mod", "otelstate/go.mod", "adapter/*/go.mod", "inspect/cmd/*/go.mod"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			folder, err := filepath.Rel(root, filepath.Dir(file))
			require.NoError(t, err)
			folders = append(folders, folder)
		}
	}
	return folders
}

// linked returns the folders of the other modules whose packages the packages of
// a module import, without those that are for tests.
func linked(t *testing.T, folder string) map[string]string {
	golist := func(args ...string) []string {
		cmd := exec.Command("go", append([]string{"list"}, args...)...)
		cmd.Dir = filepath.Join(root, folder)
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.Output()
		require.NoError(t, err, folder)
		return strings.Fields(string(out))
	}
	_, err := os.ReadFile(filepath.Join(root, folder, "go.mod")) // so that the result is not cached when it changes
	require.NoError(t, err)
	packages := slices.DeleteFunc(golist("./..."), func(name string) bool {
		return strings.Contains(name, "/internal/test/") || strings.HasSuffix(name, "/storetest")
	})
	dirs := map[string]string{}
	for _, line := range golist(append([]string{"-deps", "-f", "{{with .Module}}{{.Path}}={{.Dir}}{{end}}"}, packages...)...) {
		path, dir, _ := strings.Cut(line, "=")
		if path != ours && !strings.HasPrefix(path, ours+"/") {
			dirs[path] = dir
		}
	}
	return dirs
}

func licenceOf(t *testing.T, path, dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "[LC][IO][CP]*")) // LICENSE, LICENCE, COPYING
	require.NoError(t, err)
	require.NotEmpty(t, files, "%s has no LICENSE", path)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	words := strings.Join(strings.Fields(string(text)), " ")
	var names []string
	for _, licence := range licences {
		bsd := strings.HasPrefix(licence.name, "BSD") && slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(name, "BSD")
		})
		if strings.Contains(words, licence.words) && !bsd {
			names = append(names, licence.name)
		}
	}
	require.NotEmpty(t, names, "%s has an unknown licence", path)
	return strings.Join(names, ", ")
}
