package histories

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// Law is a property of histories. Each history is made and judged for one of
// the cases in turn, such as a provider or a policy.
type Law[C any] struct {
	Cases   []C
	History func(*rand.Rand, C) []state.Message
	Obeys   func(C, []state.Message) error // nil if it obeys

	// Parts says that every part of a history obeys. Hold then shrinks a
	// history that does not obey to a smallest part that does not.
	Parts bool
}

// Hold makes 500 histories, multiplied by STATE_EFFORT, and judges them. It
// reports the shortest that breaks the law, with the STATE_SEED that makes it
// again.
func (l Law[C]) Hold(t *testing.T) {
	t.Helper()
	n := effort.Runs(500)
	seed := effort.Seed(1)
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // little live data and much garbage
	var next atomic.Int64
	var mu sync.Mutex
	var worst []state.Message
	failures, at := 0, -1
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				of := l.Cases[i%len(l.Cases)]
				msgs := l.History(rand.New(rand.NewPCG(seed, uint64(i))), of)
				if l.broken(of, msgs) == nil {
					continue
				}
				mu.Lock()
				if failures++; at < 0 || len(msgs) < len(worst) {
					worst, at = msgs, i
				}
				enough := failures >= 50
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	workers.Wait()
	if failures == 0 {
		return
	}
	of := l.Cases[at%len(l.Cases)]
	if l.Parts {
		worst = l.shrink(of, worst)
	}
	t.Errorf("%d of %d histories break the law; STATE_SEED=%d, history %d, case %v:\n%v\n%s",
		failures, n, seed, at, of, l.broken(of, worst), Render(worst))
}

// broken returns why the history breaks the law. A panic breaks it.
func (l Law[C]) broken(of C, msgs []state.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 4<<10)
			err = fmt.Errorf("panic: %v\n%s", p, stack[:runtime.Stack(stack, false)])
		}
	}()
	return l.Obeys(of, msgs)
}

// shrink returns the history without the messages that are not needed to break
// the law.
func (l Law[C]) shrink(of C, msgs []state.Message) []state.Message {
	for size := (len(msgs) + 1) / 2; size > 0; {
		removed := false
		for i := 0; i+size <= len(msgs); {
			without := slices.Concat(msgs[:i], msgs[i+size:])
			if l.broken(of, without) != nil {
				msgs, removed = without, true
			} else {
				i++
			}
		}
		if !removed {
			size /= 2
		}
	}
	return msgs
}

// Render returns a history with one message per line.
func Render(msgs []state.Message) string {
	var b strings.Builder
	for i, m := range msgs {
		shown := "nil"
		if m != nil {
			shown = m.String()
			if raw := string(m.Raw()); len(raw) < 600 {
				shown = raw
			}
		}
		fmt.Fprintf(&b, "%4d %s\n", i, shown)
	}
	return b.String()
}
