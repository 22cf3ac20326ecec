package state_test

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// Each option stands on the page of its subject.
func TestTheGuideListsEveryOption(t *testing.T) {
	for _, subject := range []struct {
		page    string
		options reflect.Type
	}{
		{"fields", reflect.TypeFor[state.Field[any]]()},
		{"fields", reflect.TypeFor[state.Limits]()},
		{"loop", reflect.TypeFor[loop.Loop]()},
		{"wire", reflect.TypeFor[wire.Transport]()},
		{"conversations", reflect.TypeFor[transcript.Window]()},
		{"observability", reflect.TypeFor[inspect.Options]()},
	} {
		page := readFile(t, "docs/guide/"+subject.page+".md")
		for _, field := range reflect.VisibleFields(subject.options) {
			if field.IsExported() {
				require.Regexp(t, "`(\\w+\\.)?"+regexp.QuoteMeta(field.Name)+"`", page, subject.page)
			}
		}
	}
}
