package workspace_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// logFunc is a handler of package slog that calls a function.
type logFunc func()

func (logFunc) Enabled(context.Context, slog.Level) bool    { return true }
func (f logFunc) Handle(context.Context, slog.Record) error { f(); return nil }
func (f logFunc) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f logFunc) WithGroup(string) slog.Handler             { return f }

// A Logger whose handler panics changes nothing, also at a heartbeat.
func TestLoggerThatPanics(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var logged atomic.Int32
		m := open(t, db, workspace.Options{
			TTL: ttl, Tracer: &recorder{}, // it makes the run renew its lease by itself
			Run: func(_ context.Context, run *workspace.Run) error {
				time.Sleep(3 * ttl)
				return visits.Set(run.State(), 1)
			},
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
