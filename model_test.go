package state_test

import (
	"testing"

	"github.com/agentstate/state/internal/test/statemodel"
)

// The tests of this file prove that a State does what its specification in
// internal/test/statemodel says, for random programs. Then follow the mistakes that
// such programs found, as the shortest program that shows each.

func TestModel(t *testing.T) { statemodel.Check(t) }
