package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
)

var concurrencyTests = []storeTest{
	{"OneWinnerIfAbsent", func(f *fixture) {
		f.testOneWinner(func(key string) store.Condition { return store.IfAbsent })
	}},
	{"OneWinnerIfRevision", func(f *fixture) {
		f.testOneWinner(func(key string) store.Condition { return store.IfRevision(f.put(key, "start", store.IfAbsent)) })
	}},
	{"OneDeleteIfRevision", func(f *fixture) {
		handles := f.openHandles(4)
		for round := range 10 {
			key := fmt.Sprintf("key %d", round)
			cond := store.IfRevision(f.put(key, "start", store.IfAbsent))
			won := make([]bool, len(handles))
			f.runWorkers(len(handles), func(worker int) error {
				return allowConflict(&won[worker], store.Delete(f.ctx, handles[worker], key, cond))
			})
			require.Len(f, indexesOfWinners(won), 1, "successful deletes of one revision")
			f.requireMissing(key)
		}
	}},
	{"NoUpdateIsLost", func(f *fixture) {
		const workers, rounds = 8, 15
		handles := f.openHandles(4)
		f.runWorkers(workers, func(worker int) error {
			s := handles[worker%len(handles)]
			for range rounds {
				for {
					entry, err := store.Get(f.ctx, s, "counter")
					cond := store.IfRevision(entry.Revision)
					if errors.Is(err, store.ErrNotFound) {
						cond, err = store.IfAbsent, nil
					}
					if err != nil {
						return err
					}
					n, _ := strconv.Atoi(string(entry.Value)) // 0 if there is none
					_, err = store.Put(f.ctx, s, "counter", []byte(strconv.Itoa(n+1)), cond)
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
		entry, err := store.Get(f.ctx, f.s, "counter")
		require.NoError(f, err)
		require.Equal(f, strconv.Itoa(workers*rounds), string(entry.Value))
	}},
	{"AllHandlesSeeAWrite", func(f *fixture) {
		handles := f.openHandles(4)
		for i := range 20 {
			value := strconv.Itoa(i)
			revision, err := store.Put(f.ctx, handles[i%4], "key", []byte(value), store.Always)
			require.NoError(f, err)
			for _, s := range handles {
				entry, err := store.Get(f.ctx, s, "key")
				require.NoError(f, err)
				require.Equal(f, printableEntry{"key", value, revision}, printable(entry))
			}
		}
	}},
	{"Linearizable", func(f *fixture) {
		r, n := newRecorder(""), effort.LogSeed(f.T)
		handles := f.openHandles(4)
		f.runWorkers(8, func(worker int) error {
			return newClient(r, worker, n).run(100, func(_ int, o operation) (operationResult, int64, error) {
				return o.execute(f.ctx, handles[worker%len(handles)]), r.now(), nil
			})
		})
		values, err := r.history.revisionValues()
		require.NoError(f, err)
		ok := porcupine.CheckOperations(registerModel(values), r.history)
		require.True(f, ok, "no order of the calls explains their results")
	}},
}

// openHandles opens n handles.
func (f *fixture) openHandles(n int) []store.Store {
	handles := make([]store.Store, n)
	for i := range handles {
		handles[i] = f.open()
	}
	return handles
}

// testOneWinner lets eight writers with four handles write with the same
// condition and requires that exactly one write is made, in each of ten rounds.
func (f *fixture) testOneWinner(condition func(key string) store.Condition) {
	f.Helper()
	handles := f.openHandles(4)
	for round := range 10 {
		key := fmt.Sprintf("key %d", round)
		cond := condition(key)
		won, revisions := make([]bool, 8), make([]store.Revision, 8)
		f.runWorkers(len(won), func(worker int) error {
			var err error
			revisions[worker], err = store.Put(f.ctx, handles[worker%4], key, []byte(strconv.Itoa(worker)), cond)
			return allowConflict(&won[worker], err)
		})
		winner := indexesOfWinners(won)
		require.Len(f, winner, 1, "successful writes with one condition")
		f.requireEntry(key, strconv.Itoa(winner[0]), revisions[winner[0]])
	}
}

// allowConflict sets won if err is nil, and returns err unless it is a
// conflict.
func allowConflict(won *bool, err error) error {
	*won = err == nil
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

func indexesOfWinners(won []bool) []int {
	var winners []int
	for i := range won {
		if won[i] {
			winners = append(winners, i)
		}
	}
	return winners
}
