package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// threadGhost looks at all writes of the workspaces of one user.
type threadGhost struct {
	t     testing.TB
	seed  uint64
	rng   *rand.Rand
	mu    sync.Mutex
	db    store.Store
	calm  bool // no more faults
	heads map[string]threadHead
	made  int // threads
	late  int // writes that were made although their sender has given up
}

type threadHead struct {
	Deleted          *time.Time
	Closed, Sweeping bool
	Seq              uint64
}

func (h threadHead) lives() bool { return h.Seq > 0 && h.Deleted == nil }

func (g *threadGhost) chance(rate float64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.calm && g.rng.Float64() < rate
}

// rule delays calls, and loses some of them or their replies, or makes them later.
func (g *threadGhost) rule(dead *atomic.Bool) fakestore.Rule {
	return func(ctx context.Context, c fakestore.Call, do func() error) error {
		select { // not longer than ctx: who waits for the lock of a run stops virtual time
		case <-time.After(time.Duration(g.intN(20)) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if dead.Load() || c.Op == "Batch" && g.chance(0.05) {
			return errors.New("the request is lost")
		}
		if c.Op != "Batch" {
			return do()
		}
		if g.chance(0.03) {
			go func() {
				time.Sleep(time.Duration(g.intN(3000)) * time.Millisecond)
				g.mu.Lock()
				g.late++
				g.mu.Unlock()
				_, _ = g.batch(context.WithoutCancel(ctx), c.Writes)
			}()
			return store.ErrUnknownOutcome
		}
		err := do()
		if err == nil && g.chance(0.05) {
			return store.ErrUnknownOutcome
		}
		return err
	}
}

func (g *threadGhost) intN(n int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.rng.IntN(n)
}

// batch makes writes one after the other, and judges those that were made.
func (g *threadGhost) batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	revs, err := g.db.Batch(ctx, writes)
	if err != nil {
		return revs, err
	}
	before := g.heads["ann%2F"]
	for _, w := range writes {
		id, ok := strings.CutPrefix(w.Key, "agent:workspace:")
		if !ok {
			continue
		}
		var h threadHead
		if !w.Delete {
			require.NoError(g.t, json.Unmarshal(w.Value, &h))
		}
		if h.lives() && !g.heads[id].lives() && id != "ann%2F" {
			g.made++
			require.False(g.t, before.Closed && id != "ann" || g.heads[id].Closed, "seed %d: %s is made after the user was deleted", g.seed, id)
		}
		if g.heads[id].Closed {
			require.True(g.t, h.Closed, "seed %d: %s forgets that the user was deleted", g.seed, id)
		}
		g.heads[id] = h
	}
	return revs, err
}

// ghostStore makes the writes through the ghost.
type ghostStore struct {
	store.Store
	ghost *threadGhost
}

func (s ghostStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	return s.ghost.batch(ctx, writes)
}

// In random schedules with faults, two threads and the user part stay what they
// are said to be, and a user who is deleted is gone in the end.
func TestThreadsUnderFaults(t *testing.T) {
	var made, late, deleted int
	for seed := range uint64(effort.Runs(150)) {
		synctest.Test(t, func(t *testing.T) {
			memory := store.NewMemory()
			g := &threadGhost{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), db: memory, heads: map[string]threadHead{}}
			var wg sync.WaitGroup
			var kills []context.CancelFunc
			deleting := time.Duration(g.intN(600)) * time.Millisecond
			for p := range 3 {
				dead := new(atomic.Bool)
				ctx, kill := context.WithCancel(t.Context())
				kills = append(kills, kill)
				opts := workspace.Options{Run: visit, TTL: 500 * time.Millisecond, StoreTimeout: 2 * time.Second}
				m := open(t, fakestore.New(ghostStore{memory, g}, g.rule(dead)), opts)
				for i := range 3 {
					wg.Go(func() {
						for n := range 6 {
							time.Sleep(time.Duration(g.intN(200)) * time.Millisecond)
							id := []string{"ann", "ann/1", "ann/2"}[g.intN(3)]
							switch g.intN(8) {
							case 0:
								_ = m.Delete(t.Context(), id)
							case 1:
								_ = m.Fork(t.Context(), "ann/1", id, workspace.ForkPoint{})
							default:
								_, _ = m.Handle(ctx, id, text(fmt.Sprint(p, i, n)))
							}
						}
					})
				}
				if p == 0 && seed%4 > 0 {
					wg.Go(func() {
						time.Sleep(deleting)
						err := m.DeleteUser(t.Context(), "ann")
						if g.chance(0.3) { // the process dies; what it holds would wait for its store for ever
							dead.Store(true)
							kill()
						}
						if err != nil {
							return
						}
						deleted++
						g.mu.Lock()
						defer g.mu.Unlock()
						for id, h := range g.heads {
							require.False(t, h.lives(), "seed %d: %s is there after the deletion", seed, id)
						}
					})
				}
			}
			wg.Wait()
			g.mu.Lock()
			g.calm = true
			g.mu.Unlock()
			for _, kill := range kills {
				kill()
			}
			healthy := open(t, ghostStore{memory, g}, workspace.Options{Run: visit, TTL: 500 * time.Millisecond})
			time.Sleep(30 * time.Second)
			synctest.Wait()
			require.NoError(t, healthy.Wait(t.Context()))
			g.mu.Lock()
			part := g.heads["ann%2F"]
			made, late = made+g.made, late+g.late
			g.mu.Unlock()
			ids := idsOf(t, healthy)
			if part.Closed {
				require.Empty(t, ids, "seed %d", seed)
				require.False(t, part.Sweeping, "seed %d", seed)
				for key := range entries(t, memory) {
					require.False(t, strings.HasPrefix(key, "agent:blob:") || strings.HasPrefix(key, "agent:busy:"), "seed %d: %s", seed, key)
				}
				return
			}
			for _, id := range ids {
				_, err := healthy.Verify(t.Context(), id)
				require.NoError(t, err, "seed %d: %s", seed, id)
			}
		})
	}
	t.Logf("%d workspaces were made, %d writes were late, %d deletions have returned", made, late, deleted)
	require.Positive(t, made)
	require.Positive(t, late)
	require.Positive(t, deleted)
}
