package workspace_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace"
)

func TestTheGuideListsEveryOption(t *testing.T) {
	page, err := os.ReadFile("../docs/guide/options.md")
	require.NoError(t, err)
	for heading, options := range map[string]reflect.Type{
		"workspace.Options": reflect.TypeFor[workspace.Options](),
		"workspace.Message": reflect.TypeFor[workspace.Message](),
	} {
		_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
		require.True(t, found, heading)
		section, _, _ = strings.Cut(section, "\n## ")
		for _, field := range reflect.VisibleFields(options) {
			if field.IsExported() {
				require.Contains(t, section, "`"+field.Name+"`", "docs/guide/options.md, "+heading)
			}
		}
	}
}
