package processes

import (
	"testing"
	"time"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
)

// Through outages, deaths and deployments, every message that is accepted ends
// once on every store, and nobody waits for longer than promised.
func TestStorm(t *testing.T) {
	storm := workspacetest.Storm{
		Length: min(10*time.Minute, time.Duration(effort.Runs(4))*time.Second), TTL: time.Second, Users: min(100, effort.Runs(10)),
	}
	onStores(t, func(t *testing.T, fresh func(t testing.TB) store.Store) { workspacetest.RealStorm(t, storm, fresh) })
}
