package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// Every Start has one End, whatever happens to the process, the run or the
// context.
func TestTracerEnds(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range effort.Runs(15) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			db, ttl := store.Store(store.NewMemory()), 3*time.Second
			type process struct {
				*workspace.Manager
				tracer *recorder
			}
			var all []process
			desk := func(delay time.Duration, fate int) func(ctx context.Context, run *workspace.Run) error {
				return func(ctx context.Context, run *workspace.Run) error {
					_ = visits.Set(run.State(), 1)
					_ = run.Commit(ctx)
					if fate < 6 {
						select {
						case <-ctx.Done():
						case <-time.After(delay):
						}
					} else {
						time.Sleep(delay)
					}
					switch fate {
					case 0:
						return errors.New("broken")
					case 1:
						return workspace.RetryAfter(errors.New("busy"), delay/2)
					case 2:
						panic("broken")
					}
					return context.Cause(ctx)
				}
			}
			workspacetest.RandomCalls(t, rng, ttl, func() workspacetest.CallingProcess {
				s, kill := asProcess(db)
				delay, fate := time.Duration(rng.Int64N(int64(2*ttl))), rng.IntN(8)
				tracer := &recorder{}
				m := open(t, s, workspace.Options{TTL: ttl, Run: desk(delay, fate), Tracer: tracer, Queue: 3, Runs: 2})
				all = append(all, process{m, tracer})
				return workspacetest.CallingProcess{Manager: m, Kill: kill}
			})
			for _, p := range all {
				require.Empty(t, p.tracer.unended(), "program %d", i)
				require.Zero(t, p.Stats().Held, "program %d", i)
			}
		})
	}
}

// A Tracer that panics, takes long or calls the Manager does no harm: each
// message is handled once, in the first attempt.
func TestBadTracer(t *testing.T) {
	for name, bad := range map[string]func(m *workspace.Manager, ttl time.Duration){
		"panics":          func(*workspace.Manager, time.Duration) { panic("broken") },
		"takes long":      func(_ *workspace.Manager, ttl time.Duration) { time.Sleep(2 * ttl) },
		"calls a Manager": func(m *workspace.Manager, _ time.Duration) { _, _ = m.Summary(context.Background(), "ann") },
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				var calls atomic.Int32
				var log bytes.Buffer
				opts := workspace.Options{
					TTL: ttl, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
					Run: func(ctx context.Context, run *workspace.Run) error {
						calls.Add(1)
						require.Zero(t, run.Attempt())
						time.Sleep(ttl)
						require.NoError(t, visits.Set(run.State(), 1))
						return run.Commit(ctx)
					},
				}
				other := open(t, db, opts)
				var m *workspace.Manager
				tracer := &recorder{in: func(work.Operation) { bad(m, ttl) }}
				opts.Tracer = tracer
				m = open(t, db, opts)
				for _, id := range []string{"1", "2", "3"} {
					_, err := m.Submit(t.Context(), "ann", text(id))
					require.NoError(t, err)
				}
				require.NoError(t, settle(t.Context(), other))
				out, err := m.Handle(t.Context(), "ann", text("4"))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				require.NoError(t, m.Wait(t.Context()))
				require.EqualValues(t, 4, calls.Load())
				require.Zero(t, m.Stats().Fenced)
				require.Zero(t, other.Stats().TakenOver)
				require.NoError(t, other.Close())
				_ = m.Close()
				time.Sleep(100 * ttl) // for the operations that have waited for the Tracer
				synctest.Wait()
				switch name {
				case "panics":
					require.Equal(t, 1, strings.Count(log.String(), "Tracer panicked"))
				case "takes long":
					require.Contains(t, log.String(), "Tracer.Start took long")
					require.Empty(t, tracer.unended())
				default:
					require.Empty(t, tracer.unended())
				}
			})
		})
	}
}
