package workspace_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace"
)

// Each option, and each member of a message, stands on the page of workspaces.
func TestTheGuideListsEveryOption(t *testing.T) {
	page, err := os.ReadFile("../docs/guide/workspaces.md")
	require.NoError(t, err)
	_, settings, found := strings.Cut(string(page), "\n## Settings\n")
	require.True(t, found)
	ofOptions, ofMessage, found := strings.Cut(settings, "`workspace.Message`:")
	require.True(t, found)
	for section, options := range map[string]reflect.Type{
		ofOptions: reflect.TypeFor[workspace.Options](),
		ofMessage: reflect.TypeFor[workspace.Message](),
	} {
		for _, field := range reflect.VisibleFields(options) {
			if field.IsExported() {
				require.Contains(t, section, "`"+field.Name+"`")
			}
		}
	}
}
