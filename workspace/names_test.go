package workspace_test

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace"
)

// go doc shows of an alias what its comment says, so that of Outcome has each field.
func TestTheCommentOfOutcomeHasItsFields(t *testing.T) {
	source, err := os.ReadFile("names.go")
	require.NoError(t, err)
	var got, want [][2]string
	for _, m := range regexp.MustCompile(`(?m)^\t//\t(\w+) +([\w.]+) +// .+$`).FindAllSubmatch(source, -1) {
		got = append(got, [2]string{string(m[1]), string(m[2])})
	}
	outcome, status := reflect.TypeFor[workspace.Outcome](), reflect.TypeFor[workspace.Status]()
	for i := range outcome.NumField() {
		f := outcome.Field(i)
		name := f.Type.String()
		if f.Type == status {
			name = "Status"
		}
		want = append(want, [2]string{f.Name, name})
	}
	require.Equal(t, want, got)
}
