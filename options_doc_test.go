package state_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

func TestTheGuideListsEveryOption(t *testing.T) {
	page := readFile(t, "docs/guide/options.md")
	for heading, options := range map[string]reflect.Type{
		"Field":             reflect.TypeFor[state.Field[any]](),
		"Limits":            reflect.TypeFor[state.Limits](),
		"loop.Loop":         reflect.TypeFor[loop.Loop](),
		"wire.Transport":    reflect.TypeFor[wire.Transport](),
		"transcript.Window": reflect.TypeFor[transcript.Window](),
		"inspect.Options":   reflect.TypeFor[inspect.Options](),
	} {
		_, section, found := strings.Cut(page, "\n## "+heading+"\n")
		require.True(t, found, heading)
		section, _, _ = strings.Cut(section, "\n## ")
		for _, field := range reflect.VisibleFields(options) {
			if field.IsExported() {
				require.Contains(t, section, "`"+field.Name+"`", heading)
			}
		}
	}
}
