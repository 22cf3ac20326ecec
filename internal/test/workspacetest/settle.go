package workspacetest

import (
	"context"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/workspace"
)

// Settle waits until no workspace in the store of a Manager has a run: until all
// messages have been handled, by this Manager or by others, or were given up.
func Settle(ctx context.Context, m *workspace.Manager) error {
	delay := backoff.Backoff{Min: 10 * time.Millisecond, Max: 160 * time.Millisecond}
	for {
		running := false
		for s, err := range m.Active(ctx) {
			if err != nil {
				return err
			}
			running = running || s.Run != nil
		}
		if !running {
			return m.Wait(ctx)
		}
		if err := delay.Wait(ctx); err != nil {
			return err
		}
	}
}
