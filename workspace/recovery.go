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

// watchRun watches the run of a workspace in the background until there is
// none, and takes it over if its holder dies.
func (m *Manager) watchRun(user string, l *ledger) {
	if m.opts.Run == nil || !m.markWatched(user) {
		return
	}
	started := m.background(func() {
		defer m.unmarkWatched(user)
		for {
			found, err := m.takeOverIfExpired(m.ctx, l)
			if m.ctx.Err() != nil || err == nil && !found {
				return
			}
			if l.pause(m.ctx, l.ttl/3) != nil {
				return
			}
		}
	})
	if !started {
		m.unmarkWatched(user)
	}
}

// takeOverIfExpired observes the run of a workspace until its lease is renewed
// or it ends. If neither happens for 1.5 × TTL, it takes the run over and
// handles it in the background. The time is measured by this process alone.
// found reports whether there was a run.
func (m *Manager) takeOverIfExpired(ctx context.Context, l *ledger) (found bool, err error) {
	h, _, err := l.readHead(ctx)
	if err != nil || h.Run == nil {
		return false, err
	}
	observed, since, timeout := leaseStateOf(h), time.Now(), h.Run.ttl()*3/2
	for time.Since(since) < timeout {
		if err := l.pause(ctx, min(timeout/6, timeout-time.Since(since))); err != nil {
			return true, err
		}
		if h, _, err = l.readHead(ctx); err != nil {
			return true, err
		}
		if leaseStateOf(h) != observed {
			return true, nil
		}
	}
	defer m.trackRun()()
	next := l.newLease()
	expired := h.Run.Message
	h, err = l.takeOver(ctx, observed, m.opts.Takeover, m.opts.Attempts, next)
	switch {
	case errors.Is(err, errLeaseRenewed):
		return true, nil
	case err != nil:
		return true, err
	}
	m.reportDeadLetter(ctx, l, h, expired)
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

// reportDeadLetter calls OnMessageDead if the message is a dead letter.
func (m *Manager) reportDeadLetter(ctx context.Context, l *ledger, h *head, p pendingMessage) {
	if m.opts.Hooks.OnMessageDead == nil || h.messageState(p.ID) != messageDead {
		return
	}
	if msg, err := l.readMessage(ctx, p); err == nil {
		m.opts.Hooks.OnMessageDead(ctx, l.user, msg)
	}
}

// maxRecoveries is the number of workspaces that Recover observes concurrently.
const maxRecoveries = 64

// Recover finds the runs whose holder has died, takes them over and drains
// their queues in the background; see Wait. It returns when every run that it
// has found has renewed its lease, has ended or was taken over, which takes
// more than 1.5 × TTL if a holder has died. Call it when a process starts, and
// from time to time in a process that runs permanently: nothing else finds a
// message whose sender and whose holder have both died.
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

// List yields the users that have a workspace, in the order of the keys in the
// store.
func (m *Manager) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		after := ""
		for {
			next, err := m.nextEntry(ctx, after)
			if err != nil {
				yield("", wrapError("list", "", err))
				return
			}
			if next == nil {
				return
			}
			name, _, isBlob := strings.Cut(strings.TrimPrefix(next.Key, headPrefix), blobInfix)
			if isBlob {
				after = headPrefix + name + "/b0" // follows all blobs of this workspace
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

// nextEntry returns the first entry of a workspace after a key, or nil.
func (m *Manager) nextEntry(ctx context.Context, after string) (*store.Entry, error) {
	for e, err := range m.db.Scan(ctx, headPrefix, after) {
		return &e, err
	}
	return nil, nil
}
