package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/agentstate/state/internal/effort"
	"github.com/agentstate/state/store"
	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

var concurrency = []test{
	{"OneWinnerIfAbsent", func(f *fixture) {
		f.race(func(key string) store.Condition { return store.IfAbsent })
	}},
	{"OneWinnerIfRevision", func(f *fixture) {
		f.race(func(key string) store.Condition { return store.IfRevision(f.put(key, "start", store.IfAbsent)) })
	}},
	{"OneDeleteIfRevision", func(f *fixture) {
		handles := f.handles(4)
		for round := range 10 {
			key := fmt.Sprintf("key %d", round)
			cond := store.IfRevision(f.put(key, "start", store.IfAbsent))
			won := make([]bool, len(handles))
			f.together(len(handles), func(worker int) error {
				return only(&won[worker], handles[worker].Delete(f.ctx, key, cond))
			})
			require.Len(f, winners(won), 1, "deletes of the same revision that were made")
			f.hasNot(key)
		}
	}},
	{"NoUpdateIsLost", func(f *fixture) {
		const workers, rounds = 8, 15
		handles := f.handles(4)
		f.together(workers, func(worker int) error {
			s := handles[worker%len(handles)]
			for range rounds {
				for {
					entry, err := s.Get(f.ctx, "counter")
					cond := store.IfRevision(entry.Revision)
					if errors.Is(err, store.ErrNotFound) {
						cond, err = store.IfAbsent, nil
					}
					if err != nil {
						return err
					}
					n, _ := strconv.Atoi(string(entry.Value)) // 0 if there is none
					_, err = s.Put(f.ctx, "counter", []byte(strconv.Itoa(n+1)), cond)
					if err == nil {
						break
					}
					if !errors.Is(err, store.ErrConflict) {
						return err
					}
					time.Sleep(time.Duration(worker) * 100 * time.Microsecond)
				}
			}
			return nil
		})
		entry, err := f.s.Get(f.ctx, "counter")
		require.NoError(f, err)
		require.Equal(f, strconv.Itoa(workers*rounds), string(entry.Value))
	}},
	{"AllHandlesSeeAWrite", func(f *fixture) {
		handles := f.handles(4)
		for i := range 20 {
			value := strconv.Itoa(i)
			revision, err := handles[i%4].Put(f.ctx, "key", []byte(value), store.Always)
			require.NoError(f, err)
			for _, s := range handles {
				entry, err := s.Get(f.ctx, "key")
				require.NoError(f, err)
				require.Equal(f, readable{"key", value, revision}, text(entry))
			}
		}
	}},
	{"Linearizable", func(f *fixture) {
		r := &race{ctx: f.ctx, began: time.Now()}
		n := effort.LogSeed(f.T)
		handles := f.handles(4)
		f.together(8, func(worker int) error {
			c := &racer{race: r, number: worker, random: rand.New(rand.NewPCG(n, uint64(worker)))}
			for turn := range 100 {
				i := c.random.IntN(len(c.seen))
				q, call := c.choose(i, turn), r.now()
				a := answer(f.ctx, handles[worker%len(handles)], q)
				end := r.now()
				if a.Outcome == failed {
					return fmt.Errorf("%s: %s", q.Op, a.Problem)
				}
				c.learn(i, q, a)
				r.mu.Lock()
				r.history.add(worker, q, call, a, end)
				r.mu.Unlock()
			}
			return nil
		})
		values, err := r.history.values()
		require.NoError(f, err)
		ok := porcupine.CheckOperations(register(values), r.history)
		require.True(f, ok, "no order of the calls explains what they returned")
	}},
}

// handles opens n handles.
func (f *fixture) handles(n int) []store.Store {
	handles := make([]store.Store, n)
	for i := range handles {
		handles[i] = f.open()
	}
	return handles
}

// race lets eight writers of four handles write with the same condition, again and
// again, and demands that one of them wins.
func (f *fixture) race(condition func(key string) store.Condition) {
	f.Helper()
	handles := f.handles(4)
	for round := range 10 {
		key := fmt.Sprintf("key %d", round)
		cond := condition(key)
		won, revisions := make([]bool, 8), make([]store.Revision, 8)
		f.together(len(won), func(worker int) error {
			var err error
			revisions[worker], err = handles[worker%4].Put(f.ctx, key, []byte(strconv.Itoa(worker)), cond)
			return only(&won[worker], err)
		})
		winner := winners(won)
		require.Len(f, winner, 1, "writes with the same condition that were made")
		f.has(key, strconv.Itoa(winner[0]), revisions[winner[0]])
	}
}

// only lets a writer win or conflict, and returns any other error.
func only(won *bool, err error) error {
	*won = err == nil
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

func winners(won []bool) []int {
	var winners []int
	for i := range won {
		if won[i] {
			winners = append(winners, i)
		}
	}
	return winners
}
