package workspacetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state/workspace"
)

// CallingProcess is a process that RandomCalls uses. Kill cuts its store off.
type CallingProcess struct {
	*workspace.Manager
	Kill func()
}

// RandomCalls calls the Managers of two processes at random, some calls with a
// context that ends. Processes that are killed or closed meanwhile are replaced
// by those that begin returns. At the end all are closed, and nothing is under
// way any more. It must be called in a bubble of testing/synctest.
func RandomCalls(t *testing.T, rng *rand.Rand, ttl time.Duration, begin func() CallingProcess) {
	chance := func(p float64) bool { return rng.Float64() < p }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all []CallingProcess
	next := func() CallingProcess {
		p := begin()
		all = append(all, p)
		return p
	}
	present := []CallingProcess{next(), next()}
	for n := range 40 {
		p := present[rng.IntN(len(present))]
		user := fmt.Sprint("user", rng.IntN(3))
		msg := WhenBusy(workspace.WhenBusy(rng.IntN(5)), Text(fmt.Sprint(n/2)))
		call, stop := context.WithCancel(ctx)
		if chance(0.2) {
			time.AfterFunc(time.Duration(rng.Int64N(int64(ttl))), stop)
		}
		go func() {
			defer stop()
			p.call(call, n, user, msg)
		}()
		time.Sleep(time.Duration(rng.Int64N(int64(ttl / 2))))
		if i := rng.IntN(len(present)); chance(0.15) {
			if chance(0.5) {
				present[i].Kill()
			} else {
				closed := present[i]
				go func() { _ = closed.Close() }()
				synctest.Wait()
			}
			present[i] = next()
		}
	}
	time.Sleep(10 * ttl)
	cancel()
	for _, p := range all {
		_ = p.Close()
	}
	time.Sleep(20 * ttl)
}

// call makes the n-th call. Its error is nobody's: the process may be killed.
func (p CallingProcess) call(ctx context.Context, n int, user string, msg workspace.Message) {
	switch n % 8 {
	case 0, 1:
		_, _ = p.Submit(ctx, user, msg)
	case 2, 3, 4:
		_, _ = p.Handle(ctx, user, msg)
	case 5:
		_ = p.Do(ctx, user, func(context.Context, *workspace.Run) error { return nil })
	case 6:
		if v, err := p.View(ctx, user); err == nil && v.Run != nil {
			_ = p.Cancel(ctx, user, v.Run.ID, "")
		}
		_, _ = p.Verify(ctx, user)
	case 7:
		_, _ = p.Reset(ctx, user)
	}
}
