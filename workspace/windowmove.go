package workspace

import (
	"context"
	"errors"
	"maps"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// moveWindows moves, in the background, the windows that were due in a run, which
// has ended. It takes no turn of the workspace: a message that comes meanwhile is
// handled with the old windows. If the process dies, the next request finds them
// due again.
func (m *Manager) moveWindows(run *Run) {
	due, moved := run.windows.take(), m.windowMoves.take(run.user)
	if len(due) == 0 && moved == nil {
		return
	}
	if _, moving := m.windowMoves.users.LoadOrStore(run.user, true); moving {
		return // it is still due at the next request
	}
	m.background(func() {
		defer m.windowMoves.users.Delete(run.user)
		err := m.Update(m.ctx, run.user, func(w *Workspace) error {
			windows := internal.Windows.(*state.Field[map[string]internal.Window])
			if moved == nil { // otherwise the content has changed since, or a run has begun
				for agent, extra := range due {
					if _, err := m.opts.Window.Messages(m.ctx, w.State().As(agent), extra); err != nil {
						return err
					}
				}
				moved = maps.Clone(windows.Or(w.State(), nil))
				return nil
			}
			return windows.Set(w.State(), moved)
		})
		switch {
		case errors.Is(err, ErrBusy) && moved != nil:
			m.windowMoves.put(run.user, moved)
		case err != nil && m.opts.Logger != nil && context.Cause(m.ctx) == nil:
			m.opts.Logger.Warn("workspace: a window has not moved", "user", run.user, "error", err)
		}
	})
}
