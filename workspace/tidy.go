package workspace

import (
	"context"
	"sync"

	"github.com/agentstate/state/workspace/internal/turns"
)

// tidying is the work that nobody waits for: compaction. Little of it is done at
// once, so that it does not keep the store from runs. What is not done, because
// the process ends or too much waits, is done after a later compaction.
type tidying struct {
	m    *core
	line *turns.Line

	mu    sync.Mutex
	users map[string]bool // for whom a function is called or waits
}

const (
	// tidyingAtOnce is the number of functions that are called at once.
	tidyingAtOnce = 4
	// maxTidying is the number of those that are called or wait.
	maxTidying = 4096
)

func newTidying(m *core) *tidying {
	return &tidying{m: m, line: turns.NewLine(tidyingAtOnce), users: map[string]bool{}}
}

// note calls fn in the background, with a context that ends when the Manager is
// closed, unless it calls a function for the user already, or will. Close waits
// for it. It reports false if the Manager is closed or too much waits.
func (t *tidying) note(user string, fn func(context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users[user] {
		return true
	}
	if len(t.users) >= maxTidying {
		return false
	}
	t.users[user] = t.m.background(func() {
		defer t.forget(user)
		if t.line.Enter(t.m.ctx) != nil {
			return
		}
		defer t.line.Leave()
		if t.m.ctx.Err() == nil {
			fn(t.m.ctx)
		}
	})
	return t.users[user]
}

func (t *tidying) forget(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.users, user)
}
