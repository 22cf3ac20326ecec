package state_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

// The README opens with Example, and says truly what the commands print.
func TestReadmeIsTrue(t *testing.T) {
	readme, example := readFile(t, "README.md"), readFile(t, "example_quick_test.go")

	code := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(readme)
	require.NotNil(t, code, "the README has no code")
	source, output, found := strings.Cut(example, "\t// Output:\n")
	require.True(t, found)
	source = strings.NewReplacer("package state_test", "package main", "func Example()", "func main()").Replace(source) + "}\n"
	require.Equal(t, source, code[1])

	output = strings.ReplaceAll(strings.TrimSuffix(output, "}\n"), "\t// ", "")
	require.Contains(t, readme, "It prints\n\n```\n"+output+"```\n")

	first, _, _ := strings.Cut(readFile(t, "examples/quickstart/testdata/output.txt"), "\n")
	require.Contains(t, readme, "\n"+first+"\n")
	require.Contains(t, readme, "scripts/test: every module is vetted and tested\n")
	require.Contains(t, readFile(t, "scripts/test"), `echo "scripts/test: every module is vetted and tested"`)

	// The other blocks of code are parts of Examples.
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	require.Len(t, blocks, 6)
	for i, file := range []string{"tool/example_quick_test.go", "route/example_test.go", "provider/example_test.go", "store/example_test.go", "workspace/example_test.go"} {
		block := "\t" + strings.ReplaceAll(strings.TrimSuffix(blocks[i+1][1], "\n"), "\n", "\n\t") + "\n"
		require.Contains(t, readFile(t, file), block)
	}

	// Every example is in the table.
	dirs, err := os.ReadDir("examples")
	require.NoError(t, err)
	for _, dir := range dirs {
		require.Contains(t, readme, "(examples/"+dir.Name()+")")
	}
}
