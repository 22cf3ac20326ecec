package state_test

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests of this file prove that the README and the pages of docs say what is
// so: their code is the code of Examples and of programs with tests, their output
// is what the Examples and the quickstart print, and their links and commands name
// files that exist.

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

func TestTheGuideOpensWithExample(t *testing.T) {
	guide, example := readFile(t, "docs/guide/README.md"), readFile(t, "example_quick_test.go")
	source, output, found := strings.Cut(example, "\t// Output:\n")
	require.True(t, found)
	source = strings.NewReplacer("package state_test", "package main", "func Example()", "func main()").Replace(source) + "}\n"
	require.Equal(t, source, goBlocks(guide)[0])
	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")
	require.Contains(t, guide, "It prints\n\n```\n"+output+"```\n")
}

func TestReadmeShowsTheOutputOfTheQuickstart(t *testing.T) {
	first, _, _ := strings.Cut(readFile(t, "examples/quickstart/testdata/output.txt"), "\n")
	require.Contains(t, readFile(t, "README.md"), "```sh\ngo run ./examples/quickstart\n```\n")
	require.Contains(t, readFile(t, "README.md"), "```\n"+first+"\n```\n")
}

func TestCodeOfThePagesIsTested(t *testing.T) {
	examples := readAll(t, "example_*_test.go", "*/example_test.go", "*/example_*_test.go", "*/*/example_*_test.go",
		"examples/workflow/*_test.go", "examples/adk/*.go", "examples/durable/*/main.go",
		"adapter/*/example_test.go", "adapter/*/kit_test.go")
	for _, page := range pages(t) {
		blocks := goBlocks(readFile(t, page))
		if page == "docs/guide/README.md" {
			blocks = blocks[1:] // the program of TestTheGuideOpensWithExample
		}
		for _, block := range blocks {
			require.True(t, slices.ContainsFunc([]string{"", "\t", "\t\t", "\t\t\t"}, func(indent string) bool {
				return strings.Contains(examples, indentLines(block, indent))
			}), "%s: no Example has this code:\n%s", page, block)
		}
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

// pages returns the README and the files of docs.
func pages(t *testing.T) []string {
	found := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			found = append(found, filepath.ToSlash(file))
		}
	}
	return found
}

func TestTheGuideListsEveryPage(t *testing.T) {
	index := readFile(t, "docs/guide/README.md")
	for _, page := range pages(t) {
		name, err := filepath.Rel("docs/guide", page)
		require.NoError(t, err)
		if name != "README.md" && page != "README.md" {
			require.Contains(t, index, "("+filepath.ToSlash(name)+")")
		}
	}
}

// Each name that the guide calls needed is used by the program that it links to.
func TestTheGuideListsTheNamesOfAProgram(t *testing.T) {
	_, table, found := strings.Cut(readFile(t, "docs/guide/README.md"), "## The names that a program needs\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| .*: (`.*`) \\|").FindAllStringSubmatch(table, -1)
	programs := []string{"example_quick_test.go", "examples/chat/main.go", "examples/durable/service/main.go"}
	numbers := []string{"six: ", "nine more: ", "ten more: "}
	require.Len(t, rows, len(programs))
	for i, row := range rows {
		names := strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")
		require.Len(t, names, []int{6, 9, 10}[i])
		require.Contains(t, row[0], numbers[i])
		program := readFile(t, programs[i])
		for _, name := range names {
			require.Regexp(t, `\b`+regexp.QuoteMeta(name)+`\b`, program)
		}
		if i == 2 { // all that the service uses
			used := regexp.MustCompile(`\b(?:state|loop|statehttp|sqlitestore|tool|wire|workspace)\.[A-Z]\w*`).FindAllString(program, -1)
			slices.Sort(used)
			require.Len(t, slices.Compact(used), 16)
			require.Contains(t, row[0], "sixteen in all")
		}
	}
}

func TestPagesAreShort(t *testing.T) {
	limits := map[string]int{"README.md": 150, "docs/design.md": 120}
	for _, page := range pages(t) {
		require.LessOrEqual(t, strings.Count(readFile(t, page), "\n"), cmp.Or(limits[page], 200), page)
	}
}

func TestTheGuideListsEveryExample(t *testing.T) {
	index := readFile(t, "docs/guide/README.md")
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
			require.Contains(t, index, "(../../examples/"+name+")")
		}
	}
}

func TestLinksAndFilesOfThePagesExist(t *testing.T) {
	code := regexp.MustCompile("(?s)```.*?```")
	link := regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]*))?\)`)
	file := regexp.MustCompile("`((?:[a-z_.]+/)*[a-z_]+\\.(?:go|md|mod)|(?:scripts|lab|\\.ci)/[a-z]+)`")
	all := append(pages(t), "CONTRIBUTING.md", "SECURITY.md", "VERSIONING.md", "AGENTS.md", "CHANGELOG.md")
	for _, pattern := range []string{"*/README.md", "adapter/*/README.md", "lab/reports/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		all = append(all, files...)
	}
	for _, page := range all {
		text := readFile(t, page)
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", page, match[1])
			if match[2] != "" {
				require.Contains(t, anchors(readFile(t, target)), match[2], "%s links to a section of %s", page, target)
			}
		}
		for _, name := range file.FindAllStringSubmatch(text, -1) {
			_, err := os.Stat(name[1])
			if err != nil { // in the folder of the page
				_, err = os.Stat(filepath.Join(filepath.Dir(page), name[1]))
			}
			require.NoError(t, err, "%s names %s", page, name[1])
		}
	}
}

// anchors returns the anchors of the headings of a page.
func anchors(text string) []string {
	var found []string
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		words := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		found = append(found, strings.ReplaceAll(words, " ", "-"))
	}
	return found
}

func TestEachGuaranteeNamesATest(t *testing.T) {
	row := regexp.MustCompile("(?:`([a-z/]+)` )?((?:`Test[A-Za-z0-9]+`(?:, )?)+)")
	name := regexp.MustCompile("Test[A-Za-z0-9]+")
	found := 0
	for _, match := range row.FindAllStringSubmatch(readFile(t, "docs/guarantees.md"), -1) {
		tests := readAll(t, filepath.Join(match[1], "*_test.go"))
		for _, test := range name.FindAllString(match[2], -1) {
			require.Contains(t, tests, "func "+test+"(", "package %q", match[1])
			found++
		}
	}
	require.Greater(t, found, 20)
}

func TestEachCellOfTheComparisonHasASource(t *testing.T) {
	page := readFile(t, "docs/comparison.md")
	table, rest, found := strings.Cut(page, "## In one process")
	require.True(t, found)
	label, source := regexp.MustCompile(`\[([A-Z0-9]+)\]`), regexp.MustCompile(`(?m)^(?:([0-9]+)\.|- ([A-Z0-9]+):) `)
	sources := map[string]bool{}
	for _, match := range source.FindAllStringSubmatch(rest, -1) {
		sources[match[1]+match[2]] = false
	}
	rows := regexp.MustCompile(`(?m)^\| .*\|$`).FindAllString(table, -1)
	require.Greater(t, len(rows), 1)
	for _, row := range rows[1:] {
		for _, cell := range strings.Split(strings.Trim(row, "|"), "|")[1:] {
			labels := label.FindAllStringSubmatch(cell, -1)
			require.NotEmpty(t, labels, cell)
			for _, match := range labels {
				require.Contains(t, sources, match[1], cell)
				sources[match[1]] = true
			}
		}
	}
	require.NotContains(t, slices.Collect(maps.Values(sources)), false, "a source is of no cell: %v", sources)
	tests := readAll(t, "*_test.go", "*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go")
	for _, name := range regexp.MustCompile("`((?:Test|Example)[A-Za-z0-9_]+)`").FindAllStringSubmatch(rest, -1) {
		require.True(t, strings.Contains(tests, "func "+name[1]+"("), name[1])
	}
}
