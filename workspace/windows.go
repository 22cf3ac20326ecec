package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// dueWindows are the windows of agents that are to be moved after a run, with the
// number of tokens that the latest request had besides the conversation.
type dueWindows struct {
	mu    sync.Mutex
	extra map[string]int
}

func (d *dueWindows) add(agent string, extra int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.extra == nil {
		d.extra = map[string]int{}
	}
	d.extra[agent] = extra
}

func (d *dueWindows) take() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	extra := d.extra
	d.extra = nil
	return extra
}

// Window returns the window of the workspace, or nil.
func (r turnRun) Window() any { return r.m.opts.Window }

// DeferWindow notes that the window of an agent is to be moved after the run.
func (r turnRun) DeferWindow(agent string, extra int) { r.windows.add(agent, extra) }

// cacheKey returns the key under which a provider caches the conversation of a
// user. It does not tell the user's id.
func (m *Manager) cacheKey(user string) string {
	sum := sha256.Sum256([]byte(m.cacheSalt + user))
	return hex.EncodeToString(sum[:16])
}

// windowMoves are the windows that were moved and could not be stored because a
// run had begun, by user.
type windowMoves struct {
	mu    sync.Mutex
	moves map[string]map[string]internal.Window
	users sync.Map // those whose windows are being moved
}

func (w *windowMoves) put(user string, moved map[string]internal.Window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.moves == nil {
		w.moves = map[string]map[string]internal.Window{}
	}
	w.moves[user] = moved
}

func (w *windowMoves) take(user string) map[string]internal.Window {
	w.mu.Lock()
	defer w.mu.Unlock()
	moved := w.moves[user]
	delete(w.moves, user)
	return moved
}

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
