package workspace

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

var inside = state.Inside(internal.Key{})

// Schema returns the schema of the States, for the other packages of this module.
func (m *Manager) Schema(internal.Key) *state.Schema { return m.schema }
