package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
	"google.golang.org/adk/v2/session"
	adktool "google.golang.org/adk/v2/tool"
)

// BenchmarkStep measures a step with two calls, in conversations of n steps: with
// the tools and sessions of adk, with the tools of a state, and with its sessions
// as well.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{10, 50, 200} {
		run := func(name string, play func(b *testing.B)) {
			b.Run(fmt.Sprintf("%s/steps=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					play(b)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/step")
			})
		}
		run("adk", func(b *testing.B) {
			play(b, b.Context(), n, session.InMemoryService(), []adktool.Tool{ownTool(b, 0)})
		})
		run("state", func(b *testing.B) {
			playKit(b, state.NewContext(b.Context(), state.New(noteSchema)), n, nil, session.InMemoryService())
		})
		run("state,window", func(b *testing.B) {
			playKit(b, state.NewContext(b.Context(), state.New(noteSchema)), n, &transcript.Window{Target: 2000}, session.InMemoryService())
		})
		run("sessions,memory", func(b *testing.B) { playRun(b, n, store.NewMemory()) })
		run("sessions,SQLite", func(b *testing.B) {
			db, err := sqlitestore.Open(b.Context(), filepath.Join(b.TempDir(), "s.db"), nil)
			must(b, err)
			playRun(b, n, db)
			must(b, db.Close())
		})
	}
}

func playKit(tb testing.TB, ctx context.Context, n int, window *transcript.Window, sessions session.Service) {
	kit := NewKit(window, ourTool(0))
	plug, err := kit.Plugin()
	must(tb, err)
	play(tb, ctx, n, sessions, kit.Tools(), plug)
}

// playRun plays in a run of the workspace of the session.
func playRun(b *testing.B, n int, db store.Store) {
	m, err := workspace.Open(b.Context(), db, &workspace.Options{Schema: noteSchema})
	must(b, err)
	must(b, m.Do(b.Context(), Name("desk", "ann", "s"), func(ctx context.Context, _ *workspace.Run) error {
		playKit(b, ctx, n, nil, Service(m))
		return nil
	}))
	must(b, m.Close())
}
