package workspace

import (
	"context"
	"fmt"

	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// suspension returns what is known of a call when the run suspends it.
func (r *Run) suspension() document.Suspension {
	s := document.Suspension{RunID: r.runID, At: ledger.CurrentTime()}
	if r.m.opts.Notify != nil {
		s.Notice = document.NoticeDue
	}
	return s
}

// tellWaiting tells the program, before the run ends, of the calls that wait and
// of which it was not told. They are stored first, so that nobody is told of a call
// that does not exist; that they are told is stored with the end of the run. What
// fails here is told by others: see tellLate.
func (r *Run) tellWaiting(ctx context.Context) {
	if r.m.opts.Notify == nil {
		return
	}
	untold := kept(r.suspended.calls(r.state), func(s Suspended) bool { return s.untold })
	if len(untold) == 0 || r.Commit(ctx) != nil {
		return
	}
	for _, call := range untold {
		if err := r.m.notify(ctx, r.user, call, r.Redact); err != nil {
			r.m.raise(ctx, alarmNotTold, r.user, err)
			continue
		}
		r.suspended.noteTold(call.Key)
	}
}

// notify calls Options.Notify.
func (m *Manager) notify(ctx context.Context, user string, call Suspended, redact func(string) string) error {
	err := m.callInTime(ctx, "Options.Notify", user, redact, func() error { return m.opts.Notify(ctx, user, call) })
	if err != nil {
		return &maskedError{redact(fmt.Sprintf("workspace: Options.Notify: %s of %s: %v", call.Key, call.Name, err)), err}
	}
	return nil
}

// tellLate tells the program of the calls of which the run that has suspended them
// has not told it, because it was interrupted, has failed or has died. It returns
// ErrBusy if a run is under way, which may be about to.
func (m *Manager) tellLate(ctx context.Context, v *View) error {
	if m.opts.Notify == nil {
		return nil
	}
	now := ledger.CurrentTime()
	untold := kept(v.Suspended(), func(s Suspended) bool {
		return !s.noticeAt.IsZero() && !s.noticeAt.After(now) && (s.Until.IsZero() || s.Until.After(now))
	})
	switch {
	case len(untold) == 0:
		return nil
	case v.Run != nil:
		return ErrBusy
	}
	for _, call := range untold {
		if err := m.notify(ctx, v.UserID(), call, v.Redact); err != nil {
			return err
		}
	}
	unused := func(h *ledger.Head) error { return checkUnused(h, nil) }
	return m.updateFrom(ctx, v.UserID(), unused, func(w *Workspace) error {
		for _, call := range untold {
			w.suspended.noteTold(call.Key)
		}
		return nil
	})
}
