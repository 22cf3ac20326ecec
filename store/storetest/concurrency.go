package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
)

var concurrencyTests = []storeTest{
	oneWinner("OneWinnerIfAbsent", func(f *fixture, key string) store.Write {
		return store.Write{Key: key, Cond: store.IfAbsent}
	}),
	oneWinner("OneWinnerIfRevision", func(f *fixture, key string) store.Write {
		return store.Write{Key: key, Cond: store.IfRevision(f.put(key, "start", store.IfAbsent))}
	}),
	oneWinner("OneDeleteIfRevision", func(f *fixture, key string) store.Write {
		return store.Write{Key: key, Delete: true, Cond: store.IfRevision(f.put(key, "start", store.IfAbsent))}
	}),
	{"NoUpdateIsLost", func(f *fixture) { f.testUpdates("counter") }},
	{"AllHandlesSeeAWrite", func(f *fixture) {
		handles := f.openHandles(4)
		for i := range 20 {
			value := strconv.Itoa(i)
			revision, err := store.Put(f.ctx, handles[i%4], "key", []byte(value), store.Always)
			require.NoError(f, err)
			for _, f.s = range handles {
				require.Equal(f, []printableEntry{{"key", value, revision}}, f.getAll("key"))
				require.Equal(f, []printableEntry{{Key: "other"}, {"key", value, revision}}, f.getAll("other", "key"))
			}
		}
	}},
	{"Linearizable", func(f *fixture) {
		r, n := newRecorder(""), effort.LogSeed(f.T)
		handles := f.openHandles(4)
		f.runWorkers(8, func(worker int) error {
			return newClient(r, worker, n).run(100, func(o operation) (operationResult, error) {
				return o.execute(f.ctx, handles[worker%len(handles)]), nil
			})
		})
		require.NoError(f, r.history.check())
	}},
}

// oneWinner tests that of eight writers with four handles who make the same write
// exactly one succeeds, in each of ten rounds.
func oneWinner(name string, write func(f *fixture, key string) store.Write) storeTest {
	return storeTest{name, func(f *fixture) {
		handles := f.openHandles(4)
		for _, key := range numbered("key ", 10) {
			w := write(f, key)
			made := make([][]store.Revision, 8)
			f.runWorkers(len(made), func(worker int) (err error) {
				own := w
				own.Value = []byte(strconv.Itoa(worker))
				made[worker], err = handles[worker%4].Batch(f.ctx, []store.Write{own})
				if errors.Is(err, store.ErrConflict) {
					return nil
				}
				return err
			})
			var winners []int
			for worker, revisions := range made {
				if len(revisions) > 0 {
					winners = append(winners, worker)
				}
			}
			require.Len(f, winners, 1, "successful writes with one condition")
			if w.Delete {
				f.requireMissing(key)
				continue
			}
			f.requireEntry(key, strconv.Itoa(winners[0]), made[winners[0]][0])
		}
	}}
}

// testUpdates lets eight workers with four handles read the keys, and append to
// all of their values in one batch, if nobody else has written them meanwhile.
func (f *fixture) testUpdates(keys ...string) {
	f.Helper()
	const workers, rounds = 8, 15
	handles := f.openHandles(4)
	f.runWorkers(workers, func(worker int) error {
		s := handles[worker%len(handles)]
		for round := 0; round < rounds; {
			entries, err := s.Get(f.ctx, keys...)
			if err != nil {
				return err
			}
			var writes []store.Write
			if len(keys) > 1 {
				writes = append(writes, store.Write{Key: fmt.Sprint("by ", worker), Value: []byte(strconv.Itoa(round))})
			}
			for _, e := range entries {
				w := store.Write{Key: e.Key, Value: append(e.Value, '+'), Cond: store.IfRevision(e.Revision)}
				if e.Revision == "" {
					w.Cond = store.IfAbsent
				}
				writes = append(writes, w)
			}
			// Half of the workers use the other order: a store that locks one key
			// after the other must not deadlock.
			if worker%2 == 1 {
				slices.Reverse(writes)
			}
			_, err = s.Batch(f.ctx, writes)
			switch {
			case err == nil:
				round++
			case errors.Is(err, store.ErrConflict):
				time.Sleep(time.Duration(worker) * 100 * time.Microsecond)
			default:
				return err
			}
		}
		return nil
	})
	for _, e := range f.getAll(keys...) {
		require.Equal(f, strings.Repeat("+", workers*rounds), e.Value)
	}
}
