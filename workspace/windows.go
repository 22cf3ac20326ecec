package workspace

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// movedWindows are windows that have moved and are not stored yet, of an epoch of
// the workspace: see [ledger.Head].
type movedWindows struct {
	epoch   uint64
	windows map[string]internal.Window // by agent
}

// maxSummaryTime is the time after which the context of a summary that is made in
// the background ends.
const maxSummaryTime = 5 * time.Minute

// errEpochEnded is the error of a window whose workspace was reset or deleted.
var errEpochEnded = errors.New("workspace: it was reset or deleted")

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
	moved, _ := late.(movedWindows)
	if moved.epoch != run.epoch {
		moved = movedWindows{epoch: run.epoch}
	}
	if len(due) == 0 && moved.windows == nil {
		return
	}
	if _, moving := m.movingWindows.LoadOrStore(run.user, true); moving {
		return // it is still due at the next request
	}
	m.background(func() {
		defer m.movingWindows.Delete(run.user)
		ctx, cancel := context.WithTimeout(m.ctx, maxSummaryTime)
		defer cancel()
		c := startCode("summary", run.Redact, func() error { return m.storeWindows(ctx, run.user, due, &moved) })
		if !m.waitInGrace(ctx, c.done) {
			m.leaveCode(ctx, c, run.user, run.runID)
			return
		}
		switch {
		case c.err == nil, errors.Is(c.err, errEpochEnded):
		case errors.Is(c.err, errPanic):
			m.raise(ctx, alarmPanic.of(c.what), run.user, c.err)
		case errors.Is(c.err, ErrBusy) && moved.windows != nil:
			m.lateWindows.Store(run.user, moved)
		case context.Cause(m.ctx) == nil:
			m.raise(ctx, alarmWindow, run.user, c.err)
		}
	})
}

// storeWindows moves the windows that are due, unless that is done, and stores
// them. It returns errEpochEnded if the workspace is in another epoch.
func (m *Manager) storeWindows(ctx context.Context, user string, due map[string]int, moved *movedWindows) error {
	check := func(h *ledger.Head) error {
		if h.Epoch != moved.epoch {
			return errEpochEnded
		}
		return checkUnused(h, nil)
	}
	ctx = m.withFiles(ctx, ownerOf(user)) // for summaries
	return m.updateFrom(ctx, user, check, func(w *Workspace) error {
		if moved.windows != nil { // the content has changed since, or a run has begun
			return inside.Windows().Set(w.State(), moved.windows)
		}
		for agent, extra := range due {
			st := w.State()
			if agent != "" {
				st = st.As(agent)
			}
			if _, err := m.opts.Window.Messages(ctx, st, extra); err != nil {
				return &maskedError{w.Redact(err.Error()), err}
			}
		}
		moved.windows = maps.Clone(inside.Windows().GetOr(w.State(), nil))
		return nil
	})
}
