package state

import (
	"reflect"
	"slices"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/cell"
)

// windows is the field in which package transcript keeps where the window of each
// agent begins. Every schema has it, with the readers of the messages, each of
// which may write it. It is no field of the program's: it is not listed, and its
// changes are not told.
var windows = &Field[map[string]internal.Window]{Name: windowsName}

const windowsName = "messages.window"

// maxWithheld is how many pieces of a conversation are withheld: the latest.
const maxWithheld = 1000

// laterWindow is the handler of windows. Of two windows of an agent, that which
// begins later counts, whole: branches may move them at the same time.
var laterWindow = newHandler("later", false,
	func(current map[string]internal.Window, _ bool, update map[string]internal.Window) (map[string]internal.Window, error) {
		merged := make(map[string]internal.Window, len(current)+len(update))
		for agent, w := range current {
			merged[agent] = w
		}
		for agent, w := range update {
			now, ok := merged[agent]
			withheld := slices.Concat(now.Withheld, w.Withheld)
			if ok && w.Before <= now.Before {
				w = now
			}
			w.Withheld = withheld[max(0, len(withheld)-maxWithheld):]
			merged[agent] = w
		}
		return merged, nil
	})

// newWindowsSpec returns the spec of windows in a schema.
func newWindowsSpec(messages *fieldSpec) *fieldSpec {
	sp, err := newFieldSpec(windowsName, reflect.TypeFor[map[string]internal.Window](), cell.New)
	if err != nil {
		panic(err) // a bug of this package
	}
	sp.handler, sp.ephemeral = laterWindow.h, messages.ephemeral
	sp.owner, sp.read, sp.write = messages.owner, messages.read, messages.read
	return sp
}

// fieldOf returns the spec of a declared field, or of windows for its accessor.
func (s *Schema) fieldOf(name string, f any) (*fieldSpec, bool) {
	if f == any(windows) {
		return s.windows, true
	}
	sp, ok := s.byName[name]
	return sp, ok
}
