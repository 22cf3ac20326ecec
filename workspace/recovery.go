package workspace

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state/store"
)

// watch looks after the run of a workspace, in the background, until there is none:
// if its holder dies, it is taken over.
func (m *Manager) watchRun(user string, l *ledger) {
	if m.opts.Run == nil {
		return
	}
	m.mu.Lock()
	twice := m.watched[user]
	m.watched[user] = true
	m.mu.Unlock()
	if twice {
		return
	}
	forget := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watched, user)
	}
	if !m.background(func() {
		defer forget()
		for {
			found, err := m.takeOverIfExpired(m.ctx, l)
			if m.ctx.Err() != nil || err == nil && !found {
				return
			}
			if l.pause(m.ctx, l.ttl/3) != nil {
				return
			}
		}
	}) {
		forget()
	}
}

// rescue looks at the run of a workspace until it shows a sign of life or ends, or,
// if it does neither for long enough, takes it over, to be worked off in the
// background. It returns whether it has found a run.
func (m *Manager) takeOverIfExpired(ctx context.Context, l *ledger) (found bool, err error) {
	h, _, err := l.readHead(ctx)
	if err != nil || h.Run == nil {
		return false, err
	}
	seen, since, silence := leaseStateOf(h), time.Now(), h.Run.duration()*3/2
	for time.Since(since) < silence {
		if err := l.pause(ctx, min(silence/6, silence-time.Since(since))); err != nil {
			return true, err
		}
		if h, _, err = l.readHead(ctx); err != nil {
			return true, err
		}
		if leaseStateOf(h) != seen {
			return true, nil
		}
	}
	defer m.trackRun()()
	next := l.newLease()
	lost := h.Run.Message
	h, err = l.takeOver(ctx, seen, m.opts.Takeover, m.opts.Attempts, next)
	switch {
	case errors.Is(err, errLeaseRenewed):
		return true, nil
	case err != nil:
		return true, err
	}
	m.reportDeadLetter(ctx, l, h, lost)
	if h.Run == nil || h.Run.LeaseID != next.leaseID {
		return true, nil
	}
	run, err := m.newRun(m.ctx, l, h)
	if err != nil {
		return true, err
	}
	m.opts.Hooks.runStarted(run.ctx, run)
	m.drainInBackground(run)
	return true, nil
}

// buried tells of a message that was given up, if it was.
func (m *Manager) reportDeadLetter(ctx context.Context, l *ledger, h *head, lost pendingMessage) {
	if m.opts.Hooks.OnMessageDead == nil || h.messageState(lost.ID) != "dead" {
		return
	}
	if msg, err := l.readMessage(ctx, lost); err == nil {
		m.opts.Hooks.OnMessageDead(ctx, l.user, msg)
	}
}

// rescuers is how many workspaces Recover looks at at the same time.
const maxRecoveries = 64

// Recover looks for runs whose process has died, takes them over and works off, in
// the background, what waits behind them; see Wait. It takes longer than the TTL, for
// it has to see that they are silent, and returns when every run that it has found
// has shown a sign of life, has ended or was taken over. Call it when a process starts, and from time to time
// in one that always runs: a message whose sender went away with the process that
// had taken it is found by nothing else.
func (m *Manager) Recover(ctx context.Context) error {
	leave, err := m.enter()
	if err != nil {
		return wrapError("recover", "", err)
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.ctx, func() { cancel(context.Cause(m.ctx)) })()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		free = make(chan struct{}, maxRecoveries)
	)
	fail := func(user string, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, wrapError("recover", user, err))
	}
	for user, err := range m.List(ctx) {
		if err != nil {
			fail(user, err)
			break
		}
		l, err := m.ledger(user)
		if err != nil {
			fail(user, err)
			break
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if _, err := m.takeOverIfExpired(ctx, l); err != nil {
				fail(user, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// List yields the users who have a workspace, in the order of their keys.
func (m *Manager) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		after := ""
		for {
			var next *store.Entry
			for e, err := range m.db.Scan(ctx, headPrefix, after) {
				if err != nil {
					yield("", wrapError("list", "", err))
					return
				}
				next = &e
				break
			}
			if next == nil {
				return
			}
			name, _, blob := strings.Cut(strings.TrimPrefix(next.Key, headPrefix), blobInfix)
			if blob { // after those of this workspace
				after = headPrefix + name + "/b0"
				continue
			}
			after = next.Key
			user, err := decodeUser(name)
			if err != nil {
				err = corrupt(next.Key, err.Error())
			}
			if !yield(user, wrapError("list", user, err)) || err != nil {
				return
			}
		}
	}
}
