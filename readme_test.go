package state_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of this file prove that the README, the guide and CONTRIBUTING.md
// say what is so: their code is the code of Examples, and that of the loop where a
// page shows it, their output is what the
// Examples and the quickstart print, and their links and commands name files
// that exist.

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

// goBlocks returns the blocks of Go code in a text.
func goBlocks(text string) []string {
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

func TestReadmeOpensWithExample(t *testing.T) {
	readme, example := readFile(t, "README.md"), readFile(t, "example_quick_test.go")
	source, output, found := strings.Cut(example, "\t// Output:\n")
	require.True(t, found)
	source = strings.NewReplacer("package state_test", "package main", "func Example()", "func main()").Replace(source) + "}\n"
	require.Equal(t, source, goBlocks(readme)[0])
	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")
	require.Contains(t, readme, "It prints\n\n```\n"+output+"```\n")
}

func TestReadmeShowsTheOutputOfTheQuickstart(t *testing.T) {
	first, _, _ := strings.Cut(readFile(t, "examples/quickstart/testdata/output.txt"), "\n")
	require.Contains(t, readFile(t, "README.md"), "```sh\ngo run ./examples/quickstart\n```\n")
	require.Contains(t, readFile(t, "README.md"), "```\n"+first+"\n```\n")
}

func TestCodeOfTheReadmeAndTheGuideIsTested(t *testing.T) {
	examples := readAll(t, "example_*_test.go", "*/example_test.go", "*/example_*_test.go", "examples/workflow/*_test.go",
		"examples/adk/main.go", "tool/loop.go", "lab/sdks/example_*_test.go", "adapter/*/example_test.go", "adapter/*/kit_test.go")
	blocks := goBlocks(readFile(t, "README.md"))[1:]
	require.NotEmpty(t, blocks)
	for _, page := range guidePages(t) {
		blocks = append(blocks, goBlocks(readFile(t, page))...)
	}
	for _, block := range blocks {
		require.True(t, slices.ContainsFunc([]string{"", "\t", "\t\t"}, func(indent string) bool {
			return strings.Contains(examples, indentLines(block, indent))
		}), "no Example has this code:\n%s", block)
	}
}

// indentLines returns a text in which each line that is not empty is indented.
func indentLines(text, indent string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if line != "\n" && line != "" {
			lines[i] = indent + line
		}
	}
	return strings.Join(lines, "")
}

// readAll returns the text of all files that match one of the patterns.
func readAll(t *testing.T, patterns ...string) string {
	var all strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			all.WriteString(readFile(t, file))
		}
	}
	return all.String()
}

// guidePages returns the files of the guide, and the pages on frameworks.
func guidePages(t *testing.T) []string {
	pages, err := filepath.Glob("docs/guide/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	return append(pages, "docs/adk.md", "docs/frameworks.md", "docs/langchaingo.md")
}

func TestTheGuideListsEveryPage(t *testing.T) {
	index := readFile(t, "docs/guide/README.md")
	for _, page := range guidePages(t) {
		name, err := filepath.Rel("docs/guide", page)
		require.NoError(t, err)
		if name != "README.md" {
			require.Contains(t, index, "("+name+")")
		}
	}
}

func TestReadmeListsEveryExample(t *testing.T) {
	dirs, err := fs.ReadDir(os.DirFS("examples"), ".")
	require.NoError(t, err)
	for _, dir := range dirs {
		names := []string{dir.Name()}
		if dir.Name() == "durable" { // a module of several
			names, err = filepath.Glob("examples/durable/*/main.go")
			require.NoError(t, err)
			for i, name := range names {
				names[i] = "durable/" + filepath.Base(filepath.Dir(name))
			}
		}
		for _, name := range names {
			require.Contains(t, readFile(t, "README.md"), "(examples/"+name+")")
		}
	}
}

func TestLinksAndFilesOfTheGuidesExist(t *testing.T) {
	code := regexp.MustCompile("(?s)```.*?```")
	link := regexp.MustCompile(`\]\(([^):#]+)\)`)
	file := regexp.MustCompile("`((?:[a-z_.]+/)*[a-z_]+\\.(?:go|md|mod)|(?:scripts|lab|\\.ci)/[a-z]+)`")
	for _, guide := range append([]string{"README.md", "CONTRIBUTING.md"}, guidePages(t)...) {
		text := readFile(t, guide)
		for _, name := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(guide), name[1]))
			require.NoError(t, err, "%s links to %s", guide, name[1])
		}
		for _, name := range file.FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(name[1])
			require.NoError(t, err, "%s names %s", guide, name[1])
		}
	}
}
