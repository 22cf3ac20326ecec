package workspace

import (
	"context"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// watchHead calls seen with the head of a workspace, and again after each change
// by any process, until ctx ends. It returns at once if the store reports no
// changes. others is called after changes of other values whose keys begin as that
// of the head: for a user part, those of the threads.
func (m *core) watchHead(ctx context.Context, l *ledger.Ledger, seen func(*ledger.Head), others func()) {
	db, ok := store.As[store.Watcher](m.db)
	if !ok {
		return
	}
	delay := backoff.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for ctx.Err() == nil {
		changes := db.Watch(ctx, l.Key())
		if h, err := l.ReadHead(ctx); err == nil { // what was written before is not reported
			seen(h)
		}
		for e, err := range changes {
			if err != nil {
				if !mayPassInRun(err) {
					return
				}
				break
			}
			if e.Key != l.Key() {
				others()
				continue
			}
			h := &ledger.Head{}
			if !e.Deleted {
				if h, err = l.HeadOf(e.Entry); err != nil {
					continue
				}
			}
			delay.Reset()
			seen(h)
		}
		if delay.Wait(ctx) != nil {
			return
		}
	}
}

// pollHead calls seen with the head of a workspace in intervals, until ctx ends.
// The head is nil if it cannot be read and that will not pass.
func (m *core) pollHead(ctx context.Context, l *ledger.Ledger, interval time.Duration, seen func(*ledger.Head)) {
	for backoff.Sleep(ctx, interval) == nil {
		if h, err := l.ReadHead(ctx); err == nil || !mayPassInRun(err) {
			seen(h)
		}
	}
}
