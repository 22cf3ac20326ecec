package processes

import (
	"testing"

	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
)

// What package workspace promises in ordinary trouble holds on every store.
func TestTrouble(t *testing.T) {
	onStores(t, func(t *testing.T, fresh func(t testing.TB) store.Store) { workspacetest.Real(t, fresh) })
}
