package ledger

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
)

// schedule is what the schedules of all explorers have: each follows from its
// seed.
type schedule struct {
	seed        uint64
	rng         *rand.Rand
	rates       rates
	step, steps int

	count   map[string]int // of what has happened
	tracing bool
	trace   []string
	problem string
}

// newSchedule returns a schedule of one of the explorers.
func newSchedule(seed, explorer uint64, tracing bool) schedule {
	return schedule{seed: seed, rng: rand.New(rand.NewPCG(seed, explorer)), tracing: tracing, count: map[string]int{}}
}

func (s *schedule) chance(rate float64) bool { return rate > 0 && s.rng.Float64() < rate }

func (s *schedule) logf(format string, args ...any) {
	if s.tracing {
		s.trace = append(s.trace, fmt.Sprintf("%4d: ", s.step)+fmt.Sprintf(format, args...))
	}
}

type violated struct{}

// violated ends the schedule.
func (s *schedule) violated(format string, args ...any) {
	if s.problem == "" {
		s.problem = fmt.Sprintf(format, args...)
		s.logf("VIOLATION: %s", s.problem)
	}
	panic(violated{})
}

func (s *schedule) of() *schedule { return s }

// scheduled is a schedule of an explorer.
type scheduled interface {
	run() (problem string)
	of() *schedule
}

// explore runs 500 schedules, multiplied by STATE_EFFORT, from STATE_SEED on. The
// first hundreds of them, and some thousands of any others, must make everything
// that is wanted happen.
func explore(t *testing.T, begin func(seed uint64, tracing bool) scheduled, wanted []string) {
	first, schedules := effort.Seed(0), effort.Runs(500)
	var (
		next  atomic.Uint64
		bad   atomic.Pointer[schedule]
		mu    sync.Mutex
		total = map[string]int{}
		wg    sync.WaitGroup
	)
	start := time.Now()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // much garbage, little live data
	for range 2 {
		wg.Go(func() {
			for bad.Load() == nil {
				n := next.Add(1) - 1
				if n >= uint64(schedules) {
					return
				}
				x := begin(first+n, false)
				if x.run() != "" {
					bad.CompareAndSwap(nil, x.of())
				}
				mu.Lock()
				for what, n := range x.of().count {
					total[what] += n
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d schedules in %v: %v", min(next.Load(), uint64(schedules)), time.Since(start).Round(time.Millisecond), total)
	if s := bad.Load(); s != nil {
		again := begin(s.seed, true)
		again.run()
		t.Log(strings.Join(again.of().trace, "\n"))
		require.Equal(t, s.step, again.of().step, "the same seed has to be the same schedule")
		t.Fatalf("VIOLATION with STATE_SEED=%d: %s", s.seed, s.problem)
	}
	if schedules >= 5000 || first == 0 && schedules >= 300 {
		for _, what := range wanted {
			require.NotZero(t, total[what], "%s never happened", what)
		}
	}
}
