package workspace_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Messages that interrupt the runs of a user at the same time are all accepted.
func TestInterruptsAtOnce(t *testing.T) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: state.MustSchema()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			for range 10 {
				if _, _, err := m.Begin(ctx, "ann", workspace.Message{Content: state.UserText("Go on."), Busy: workspace.BusyInterrupt}); err != nil && ctx.Err() != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}
