package document

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

var inside = state.Inside(internal.Key{})

// windowsName is the name of the field of windows in a document.
var windowsName = inside.Windows().Name
