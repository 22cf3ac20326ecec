package workspace_test

import (
	"testing"
	"time"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
)

// Through outages, deaths and deployments, every message that is accepted ends
// once, and nobody waits for longer than promised.
func TestStorm(t *testing.T) {
	length := min(10*time.Minute, time.Duration(effort.Runs(1))*time.Minute)
	workspacetest.VirtualStorm(t, workspacetest.Storm{Length: length, TTL: 10 * time.Second, Users: 100},
		func(testing.TB) store.Store { return store.NewMemory() })
}
