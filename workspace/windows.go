package workspace

import (
	"context"
	"errors"
	"maps"

	"github.com/agentstate/state/internal"
)

// moveWindows moves, in the background, the windows that were due in a run, which
// has ended. It takes no turn of the workspace: a message that comes meanwhile is
// handled with the old windows. If the process dies, the next request finds them
// due again.
func (m *Manager) moveWindows(run *Run) {
	if m.opts.Window == nil {
		return
	}
	due := map[string]int{}
	run.dueWindows.Range(func(agent, extra any) bool {
		due[agent.(string)] = extra.(int)
		return true
	})
	late, _ := m.lateWindows.LoadAndDelete(run.user)
	moved, _ := late.(map[string]internal.Window)
	if len(due) == 0 && moved == nil {
		return
	}
	if _, moving := m.movingWindows.LoadOrStore(run.user, true); moving {
		return // it is still due at the next request
	}
	m.background(func() {
		defer m.movingWindows.Delete(run.user)
		err := m.Update(m.ctx, run.user, func(w *Workspace) error {
			if moved == nil { // otherwise the content has changed since, or a run has begun
				for agent, extra := range due {
					if _, err := m.opts.Window.Messages(m.ctx, w.State().As(agent), extra); err != nil {
						return &maskedError{w.Redact(err.Error()), err}
					}
				}
				moved = maps.Clone(inside.Windows().GetOr(w.State(), nil))
				return nil
			}
			return inside.Windows().Set(w.State(), moved)
		})
		switch {
		case errors.Is(err, ErrBusy) && moved != nil:
			m.lateWindows.Store(run.user, moved)
		case err != nil && context.Cause(m.ctx) == nil:
			m.logWarning(m.ctx, run.user, "window was not moved", err)
		}
	})
}
