package genkitstate_test

import (
	"os"
	"strings"
	"testing"
)

// The code of the README is that of the Example.
func TestReadmeQuotesTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(err)
	example, err := os.ReadFile("example_test.go")
	must(err)
	_, code, _ := strings.Cut(string(readme), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if code == "" || !strings.Contains(string(example), "\t"+strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n\t")+"\n") {
		t.Errorf("not in the Example:\n%s", code)
	}
}
