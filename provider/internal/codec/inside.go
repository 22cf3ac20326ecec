package codec

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

var messages_ = state.Inside(internal.Key{})
