package workspace

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// recoverRuns takes over the runs whose holders have died, until the Manager
// accepts no more messages. It looks for them at once, and then every TTL: a
// holder that nobody waits for is found dead 2.5 × TTL after its last heartbeat,
// when it is looked at again 1.5 × TTL after it was seen first, also if somebody
// begins to wait meanwhile. What it reads depends on the number of runs that
// others hold, and not on that of workspaces. Each time it also calls expire.
func (m *Manager) recoverRuns(expire func(context.Context) error) {
	for {
		wait := m.opts.TTL - rand.N(m.opts.TTL/4+1) // Managers that were opened together do not look together
		due, err := m.lookAtRuns(m.accepting)
		if err == nil {
			err = expire(m.accepting)
		}
		switch {
		case errors.Is(err, store.ErrClosed):
			return
		case err != nil:
			m.observed.noteBlind()
			m.noteStoreError(m.accepting, "", err)
			wait /= 4
		case due < wait:
			wait = max(due, m.opts.TTL/64)
		}
		if backoff.Sleep(m.accepting, wait) != nil {
			return
		}
	}
}

// lookAtRuns looks at all runs that others hold and this Manager does not watch.
// It returns the time until the first of them counts as free if it is not
// renewed.
func (m *Manager) lookAtRuns(ctx context.Context) (due time.Duration, err error) {
	due = math.MaxInt64
	own, seen := m.ownUsers(), map[string]bool{}
	for heads, err := range ledger.Running.Heads(ctx, m.db, m.sealer, func(user string) bool { return own[user] }) {
		if err != nil {
			return 0, err
		}
		for _, u := range heads {
			if h := u.Head; h != nil && h.Sweeping && ledger.CurrentTime().Sub(h.Deleted) > 2*m.opts.TTL {
				m.sweepLater(u.User)
			}
		}
		heads = slices.DeleteFunc(heads, func(u ledger.UserHead) bool { return u.Head == nil || u.Head.Run == nil })
		runs := make([]*ledger.Run, len(heads))
		for i, u := range heads {
			runs[i] = u.Head.Run
		}
		states, err := m.holder.records.States(ctx, runs...)
		if err != nil {
			return 0, err
		}
		for i, u := range heads {
			seen[u.User] = true
			o, free := m.observed.of(u.User), isFree(u.Head)
			if !free {
				result, err := o.see(ctx, u.Head, states[i])
				if err != nil {
					m.noteStoreError(ctx, u.User, err)
				}
				free = result == holderGone
			}
			if !free {
				due = min(due, o.untilExpired(u.Head))
			} else if l, err := m.glimpseLedger(u.User); err == nil {
				m.watchRun(u.User, l)
			}
		}
	}
	m.observed.keep(own, seen)
	return due, nil
}

// ownUsers returns the users whose runs this Manager holds, or watches.
func (m *Manager) ownUsers() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := map[string]bool{}
	for r := range m.localRuns {
		if r.lease.lost() == nil {
			own[r.ledger.User()] = true
		}
	}
	for user := range m.watched {
		own[user] = true
	}
	return own
}

// watchRun watches the run of a workspace in the background until there is
// none, and takes it over if its lease is vacant or its holder dies. It makes a
// goroutine that does so already look at once.
func (m *Manager) watchRun(user string, l *ledger.Ledger) {
	if m.opts.Run == nil {
		return
	}
	look, first := m.markWatched(user)
	if !first {
		return
	}
	started := m.background(func() {
		ctx, cancel := context.WithCancel(m.accepting)
		defer cancel()
		m.background(func() { m.watchVacancy(ctx, l, look) })
		delay := backoff.Backoff{Min: m.opts.TTL / 4, Max: 10 * m.opts.TTL}
		for {
			found, err := m.takeOverIfExpired(ctx, l, look)
			ended := err == nil && !found || ctx.Err() != nil
			if ended && (m.unmarkWatched(user) || ctx.Err() != nil) {
				return
			}
			switch {
			case ended:
			case err != nil && !mayPass(err): // nobody can load the run, and each try writes the head
				_ = delay.Wait(ctx)
			default:
				delay.Reset()
				_ = waitOrWake(ctx, m.opts.TTL/4, look)
			}
		}
	})
	if !started {
		m.unmarkWatched(user)
	}
}

// watchVacancy wakes look when the run of a workspace has ended or its lease is
// vacant.
func (m *Manager) watchVacancy(ctx context.Context, l *ledger.Ledger, look chan<- struct{}) {
	m.watchHead(ctx, l, func(h *ledger.Head) {
		if h.Run == nil || h.Run.Vacant() {
			wake(look)
		}
	}, func() {})
}

// takeOverIfExpired observes the run of a workspace until its lease is renewed
// or it ends. If its holder is gone, or its lease is vacant, it takes the run
// over and handles it in the background. It looks at the run when look is woken,
// and from time to time. found reports whether there was a run.
func (m *Manager) takeOverIfExpired(ctx context.Context, l *ledger.Ledger, look <-chan struct{}) (found bool, err error) {
	o := m.observed.of(l.User())
	for {
		var h *ledger.Head
		result := holderGone
		looking, cancel := m.withinStoreTimeout(ctx)
		err := m.persist(looking, l.User(), mayPass, func(ctx context.Context) (err error) {
			if h, err = l.ReadHead(ctx); err == nil && h.Run != nil && !isFree(h) {
				result, err = o.look(ctx, h)
			}
			if err != nil {
				o.noteBlind()
			}
			return err
		})
		cancel()
		if err == nil && h.Run != nil {
			l, err = m.keepLedger(l.User(), l)
		}
		switch {
		case err != nil || h.Run == nil:
			return false, err
		case result == holderGone:
			return true, m.takeOver(ctx, l, h.LeaseState())
		case result == holderRenewed:
			return true, nil
		}
		ttl := h.Run.LeaseTTL()
		if err := waitOrWake(ctx, min(ttl/4, max(ttl/64, o.untilExpired(h))), look); err != nil {
			return true, err
		}
	}
}
