package crash

import (
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

func TestCrashReportsACaseThatHangs(t *testing.T) {
	defer func(d time.Duration) { kit.Watchdog = d }(kit.Watchdog)
	kit.Watchdog = 50 * time.Millisecond
	var mu sync.Mutex
	mu.Lock()
	c := Test{
		Open: func(*Process) *workspace.Options {
			mu.Lock() // a lock is held outside of the bubble, to the end of the process: its time stands still
			defer mu.Unlock()
			return &workspace.Options{}
		},
		Messages: []workspace.Message{{ID: "1", Content: state.UserText("Hello.")}},
	}
	k := c.newCase()
	t.Run("case", func(t *testing.T) {
		k = k.inBubble(t, (*testCase).play)
	})
	require.True(t, k.hung)
	require.Contains(t, k.text(), "time stands still")
	require.Contains(t, k.text(), "TestCrashReportsACaseThatHangs", "all stacks")
}
