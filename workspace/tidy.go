package workspace

import (
	"context"
	"sync"
)

// tidying is the work that nobody waits for: compaction. Little of it is done at
// once, so that it does not keep the store from runs. What is not done, because
// the process ends or too much waits, is done after a later compaction.
type tidying struct {
	m *core

	mu      sync.Mutex
	workers int
	waiting []func(context.Context)
	users   map[string]bool // whose workspaces wait for tidy
}

const (
	// tidyingAtOnce is the number of goroutines that tidy up.
	tidyingAtOnce = 4
	// maxTidying is the number of functions that wait for them.
	maxTidying = 4096
)

func newTidying(m *core) *tidying { return &tidying{m: m, users: map[string]bool{}} }

// later calls fn in the background, with a context that ends when the Manager is
// closed. Close waits for it. It reports false if fn is not called, because the
// Manager is closed or too much waits.
func (t *tidying) later(fn func(context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) >= maxTidying {
		return false
	}
	if t.workers < tidyingAtOnce {
		if !t.m.background(t.work) {
			return false
		}
		t.workers++
	}
	t.waiting = append(t.waiting, fn)
	return true
}

// work calls functions until none waits.
func (t *tidying) work() {
	for {
		fn := t.next()
		if fn == nil {
			return
		}
		fn(t.m.ctx)
	}
}

// next returns the function that waits longest, or nil, with which the worker
// ends.
func (t *tidying) next() func(context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 || t.m.ctx.Err() != nil {
		t.workers--
		t.waiting = nil
		return nil
	}
	fn := t.waiting[0]
	t.waiting = t.waiting[1:]
	return fn
}

// note calls fn later, unless another function of the user waits. It reports
// false if it is not called.
func (t *tidying) note(user string, fn func(context.Context)) bool {
	t.mu.Lock()
	waits := t.users[user]
	t.users[user] = true
	t.mu.Unlock()
	if waits {
		return true
	}
	called := t.later(func(ctx context.Context) {
		defer t.forget(user)
		fn(ctx)
	})
	if !called {
		t.forget(user)
	}
	return called
}

func (t *tidying) forget(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.users, user)
}
