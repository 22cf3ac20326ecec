package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

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
