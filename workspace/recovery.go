package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

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
		o := &observation{m: m}
		delay := backoff.Backoff{Min: m.opts.TTL / 4, Max: 10 * m.opts.TTL}
		for {
			found, err := m.takeOverIfExpired(ctx, l, o, look)
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
	})
}

// takeOverIfExpired observes the run of a workspace until its lease is renewed
// or it ends. If its holder is gone, or its lease is vacant, it takes the run
// over and handles it in the background. It looks at the run when look is woken,
// and from time to time. found reports whether there was a run.
func (m *Manager) takeOverIfExpired(
	ctx context.Context, l *ledger.Ledger, o *observation, look <-chan struct{},
) (found bool, err error) {
	for {
		var h *ledger.Head
		result := holderGone
		looking, cancel := m.withinStoreTimeout(ctx)
		err := m.persist(looking, l.User(), mayPass, func(ctx context.Context) (err error) {
			if h, err = l.ReadHead(ctx); err == nil && h.Run != nil && !isFree(h) {
				result, err = o.look(ctx, h)
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
	if m.readOnly {
		return wrapError("recover", "", store.ErrReadOnly)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.accepting, func() { cancel(context.Cause(m.accepting)) })()
	began := time.Now()
	var workspaces, runs atomic.Int64
	failed, err := m.forEachUser(ctx, "recover", func(user string) error {
		l, err := m.glimpseLedger(user)
		if err != nil {
			return err
		}
		found, err := m.takeOverIfExpired(ctx, l, &observation{m: m}, nil)
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err) // the store knows only that its call was cancelled
		}
		workspaces.Add(1)
		if found {
			runs.Add(1)
		}
		return err
	})
	count := recoveryCounts{workspaces: int(workspaces.Load()), runs: int(runs.Load()), failed: failed}
	m.logRecovery(ctx, count, time.Since(began))
	return err
}
