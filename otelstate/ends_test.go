package otelstate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// Every span ends exactly once, whatever happens to the process, the run, the
// tool or the context, and the metrics count what Stats counts.
func TestEverySpanEndsOnce(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range effort.Runs(6) {
		synctest.Test(t, func(t *testing.T) { testProgram(t, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
}

// fates are what a run may come to.
const fates = 9

// runWith returns an Options.Run that calls tools and comes to a fate.
func runWith(e *telemetry, delay time.Duration, fate int) func(ctx context.Context, run *workspace.Run) error {
	wait := tool.Must(tool.New("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		time.Sleep(delay) // also after ctx has ended
		if fate == 3 {
			panic("broken tool")
		}
		return "waited", ctx.Err()
	}))
	return func(ctx context.Context, run *workspace.Run) error {
		_ = visits.Set(run.State(), 1)
		_ = run.Commit(ctx)
		agent, end := e.Agent(ctx, run.State())
		call := state.ToolCall{ID: "1", Name: "wait", Input: `{}`}
		results := must(tool.Run(agent, run.State(), []*tool.Tool{wait}, []state.ToolCall{call, call}))
		end(results[0].Err)
		_ = run.State().History().Append(state.InferenceResult{Raw: chatResponse, StartedAt: time.Now()})
		switch fate {
		case 0:
			return errors.New("broken")
		case 1:
			return workspace.RetryAfter(errors.New("busy"), delay/2)
		case 2:
			panic("broken")
		case 4:
			time.Sleep(delay) // also after ctx has ended
		}
		return context.Cause(ctx)
	}
}

func testProgram(t *testing.T, rng *rand.Rand) {
	chance := func(p float64) bool { return rng.Float64() < p }
	db, ttl := store.Store(store.NewMemory()), 3*time.Second
	type process struct {
		*workspace.Manager
		*telemetry
	}
	var all []process
	workspacetest.RandomCalls(t, rng, ttl, func() workspacetest.CallingProcess {
		e := newTelemetry(t, otelstate.Options{Reads: true, Content: chance(0.5)})
		s, kill := workspacetest.AsProcess(db)
		delay := time.Duration(rng.Int64N(int64(2 * ttl)))
		m := open(t, s, workspace.Options{
			TTL: ttl, Run: runWith(e, delay, rng.IntN(fates)), Tracer: e.Tracer, Queue: 3, Runs: 2,
			Takeover: workspace.Takeover(rng.IntN(2)),
		})
		all = append(all, process{m, e})
		return workspacetest.CallingProcess{Manager: m, Kill: kill}
	})
	for _, p := range all {
		require.Empty(t, p.unended())
		stats := p.Stats()
		for name, want := range map[string]int64{
			"agentstate.fenced":       stats.Fenced,
			"agentstate.takeovers":    stats.TakenOver,
			"agentstate.runs":         stats.Started,
			"agentstate.dead_letters": stats.DeadLetters,
		} {
			require.Equal(t, want, p.sum(t, name), "%s %+v", name, stats)
		}
		require.LessOrEqual(t, p.sum(t, "agentstate.conflicts"), stats.Conflicts)
	}
}
