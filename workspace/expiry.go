package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// expirySends is the time after which a call that has expired, and is still not
// answered, is looked at again, in TTLs: the message that answers it may have to
// wait, or have been undone.
const expirySends = 15

// expirer returns a function that lets messages answer the calls that have expired,
// in all workspaces. It remembers which messages it has sent, and is for one
// goroutine.
func (m *Manager) expirer() func(context.Context) error {
	var sent map[ledger.Expiry]time.Time
	return func(ctx context.Context) error {
		next := map[ledger.Expiry]time.Time{}
		for e, err := range ledger.Expired(ctx, m.db, m.sealer, ledger.CurrentTime()) {
			if err != nil {
				return err
			}
			at, known := sent[e]
			if known && time.Since(at) < expirySends*m.opts.TTL {
				next[e] = at
				continue
			}
			err = m.expireCalls(ctx, e.User)
			switch {
			case err == nil, errors.Is(err, ErrNotSuspended): // somebody has decided
				next[e] = time.Now()
			case !errors.Is(err, ErrClosed):
				m.logWarning(ctx, e.User, "calls have expired and are not answered", err)
			}
		}
		sent = next
		return nil
	}
}

// expireCalls sends the message. Its id is that of the calls, so that several
// Managers send one, and an operator can see that it has failed.
func (m *Manager) expireCalls(ctx context.Context, user string) error {
	v, err := m.View(ctx, user)
	if err != nil {
		return err
	}
	now, id := ledger.CurrentTime(), sha256.New()
	msg := Message{Busy: BusyEnqueue}
	for _, s := range v.Suspended() {
		if !s.Until.IsZero() && !s.Until.After(now) {
			msg.Answers = append(msg.Answers, runctx.Expiry(s.ToolCall))
			_, _ = io.WriteString(id, s.RunID+"/"+runctx.Key(s.ToolCall)+"/"+s.Until.String()+"\n")
		}
	}
	msg.ID = "expiry-" + hex.EncodeToString(id.Sum(nil)[:16])
	failed := func(d DeadLetter) bool { return d.Message.ID == msg.ID }
	if len(msg.Answers) == 0 || slices.ContainsFunc(v.DeadLetters, failed) {
		return nil
	}
	out, err := m.Submit(ctx, user, msg)
	if err == nil && out.Status == StatusDuplicate { // it waits, which refuses another one, or its run was undone
		msg.ID = ""
		_, err = m.Submit(ctx, user, msg)
	}
	return err
}
