package workspace_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// badWays are the ways in which code of users does not return.
var badWays = map[string]func(){
	"panics": func() { panic("for the test") },
	"ends":   runtime.Goexit,
}

// logFunc is a handler of package slog that calls a function.
type logFunc func()

func (logFunc) Enabled(context.Context, slog.Level) bool    { return true }
func (f logFunc) Handle(context.Context, slog.Record) error { f(); return nil }
func (f logFunc) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f logFunc) WithGroup(string) slog.Handler             { return f }

// A Logger whose handler panics changes nothing, nor does an Anchor that panics,
// also at a heartbeat.
func TestLoggerThatPanics(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var logged atomic.Int32
		m := open(t, db, workspace.Options{
			TTL: ttl, Tracer: &recorder{}, // it makes the run renew its lease by itself
			Run: func(_ context.Context, run *workspace.Run) error {
				time.Sleep(3 * ttl)
				return visits.Set(run.State(), 1)
			},
			Anchor: anchorFuncs{advance: func(context.Context) error { panic("for the test") }},
			Logger: slog.New(logFunc(func() { logged.Add(1); panic("for the test") })),
			Hooks:  workspace.Hooks{OnRunStart: func(context.Context, *workspace.Run) { panic("for the test") }},
		})
		_, err := m.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		out, err := m.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.Positive(t, logged.Load())
		require.NotZero(t, m.Stats().Heartbeats)
		require.NoError(t, m.Close())
	})
}

// anchorFuncs is an Anchor whose methods a test replaces.
type anchorFuncs struct {
	load    func(context.Context) (workspace.Mark, error)
	advance func(context.Context) error
}

func (a anchorFuncs) Load(ctx context.Context, _ string) (workspace.Mark, error) {
	if a.load == nil {
		return workspace.Mark{}, nil
	}
	return a.load(ctx)
}

func (a anchorFuncs) Advance(ctx context.Context, _ string, _ workspace.Mark) error {
	if a.advance == nil {
		return nil
	}
	return a.advance(ctx)
}

// An Anchor that does not return is one that has failed.
func TestAnchorThatDoesNotReturn(t *testing.T) {
	for name, bad := range badWays {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				m := open(t, db, workspace.Options{TTL: ttl, Run: visit, Anchor: anchorFuncs{
					advance: func(context.Context) error { bad(); return nil },
				}})
				_, err := m.Submit(t.Context(), "ann", text("1"))
				require.NoError(t, err)
				out, err := m.Await(t.Context(), "ann", "1")
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				require.NoError(t, m.Close())

				m = open(t, db, workspace.Options{TTL: ttl, Run: visit, Anchor: anchorFuncs{
					load: func(context.Context) (workspace.Mark, error) { bad(); return workspace.Mark{}, nil },
				}})
				_, err = m.View(t.Context(), "ann")
				require.ErrorContains(t, err, "Anchor")
				require.NoError(t, m.Close())
			})
		})
	}
}

// A call that waits for an Anchor does not keep others from ending.
func TestAnchorThatHangs(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		m := open(t, db, workspace.Options{TTL: ttl, Run: visit, Anchor: anchorFuncs{
			load: func(ctx context.Context) (workspace.Mark, error) {
				<-ctx.Done()
				return workspace.Mark{}, ctx.Err()
			},
		}})
		long, cancelLong := context.WithCancel(t.Context())
		defer cancelLong()
		go func() { _, _ = m.View(long, "ann") }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := m.Handle(short, "ann", text("1"))
			ended <- err
		}()
		time.Sleep(2 * time.Second)
		select {
		case err := <-ended:
			require.ErrorIs(t, err, context.DeadlineExceeded)
		default:
			cancelLong()
			require.Fail(t, "it waits for another call")
		}
		cancelLong()
		require.NoError(t, m.Close())
	})
}
