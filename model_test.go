package state_test

import (
	"testing"

	"github.com/agentstate/state/internal/test/statemodel"
)

// The test of this file proves that a State does what its specification in
// internal/test/statemodel says, for random programs.

func TestModel(t *testing.T) { statemodel.Check(t) }
