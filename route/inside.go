package route

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

var inside = state.Inside(internal.Key{})
