package workspace_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// distant is a store whose calls take as long as those of a server nearby.
type distant struct{ store.Store }

func (s distant) Unwrap() store.Store { return s.Store }

func (s distant) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	time.Sleep(time.Millisecond)
	return s.Store.Get(ctx, keys...)
}

func (s distant) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	time.Sleep(2 * time.Millisecond)
	return s.Store.Batch(ctx, writes)
}

// A healthy Manager shows none of the signs that docs/production.md lists and logs
// nothing that needs attention, whether it has little to do or much, and whether
// or not senders go away.
func TestNoSignsOfTroubleInHealth(t *testing.T) {
	rows := []struct {
		name    string
		ttl     time.Duration // 0: the default
		every   time.Duration
		seconds int
		leaves  bool // every tenth sender goes away
	}{
		{"one message in 3 s", 0, 3 * time.Second, 600, false},
		{"one message in 3 s, TTL of 1 s", time.Second, 3 * time.Second, 600, false},
		{"one message in 100 s", 0, 100 * time.Second, 600, false},
		{"senders go away", 0, 3 * time.Second, 600, true},
		{"1 000 messages in 1 s", 0, time.Millisecond, max(5, effort.Runs(5)), false}, // 600 s take minutes
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, logged := newLog(slog.LevelWarn)
				m := open(t, distant{store.NewMemory()}, workspace.Options{TTL: row.ttl, Logger: log, Runs: 1000,
					Run: func(ctx context.Context, run *workspace.Run) error {
						for range 2 {
							time.Sleep(100 * time.Millisecond) // the model
							if err := ctx.Err(); err != nil {
								return context.Cause(ctx)
							}
							if err := visit(ctx, run); err != nil {
								return err
							}
							if err := run.Commit(ctx); err != nil {
								return err
							}
						}
						return nil
					}})
				var senders sync.WaitGroup
				sent := int64(time.Duration(row.seconds) * time.Second / row.every)
				for i := range sent {
					senders.Go(func() {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if row.leaves && i%10 == 0 {
							defer time.AfterFunc(time.Duration(i*7%300)*time.Millisecond, cancel).Stop()
						}
						_, _ = m.Handle(ctx, fmt.Sprint("user", i%1000), text(fmt.Sprint(i)))
					})
					time.Sleep(row.every)
				}
				senders.Wait()
				require.NoError(t, m.Wait(t.Context()))
				got := m.Stats()
				require.NoError(t, m.Shutdown(t.Context()))
				require.Empty(t, logged())
				require.Empty(t, cmp.Diff(work.Stats{}, got, cmpopts.IgnoreFields(work.Stats{},
					"Workspaces", "Started", "Done", "Commits", "Heartbeats", "Compactions", "BytesWritten")))
				require.Greater(t, got.Done, sent*9/10) // a sender may go before its message is accepted
				require.Positive(t, got.Heartbeats)
			})
		})
	}
}
