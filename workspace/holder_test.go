package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// holderRecords returns the holder records of a store.
func holderRecords(t *testing.T, db store.Store) map[string]store.Entry {
	t.Helper()
	records := map[string]store.Entry{}
	for e, err := range db.List(context.Background(), "agent:holder:", "", true) {
		require.NoError(t, err)
		records[e.Key] = e
	}
	return records
}

// onPlainStore is onStore with a store that is no store.Watcher.
func onPlainStore(t *testing.T, test func(t *testing.T, db store.Store, ttl time.Duration)) {
	t.Helper()
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		plain, _ := asProcess(db)
		test(t, plain, ttl)
	})
}

// A Manager renews its leases together, while it has some.
func TestHeartbeats(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var heads, records atomic.Int64
		counting := withFaults(db, func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if strings.HasPrefix(w.Key, "agent:holder:") {
					records.Add(1)
				} else {
					heads.Add(1)
				}
			}
			return false, nil
		})
		m, runs := hold(t, counting, workspace.Options{TTL: ttl})
		require.Empty(t, holderRecords(t, db), "a Manager without runs writes nothing")
		var all []*heldRun
		for i := range 200 {
			all = append(all, runs.Begin(t, fmt.Sprint("user", i), text("1")))
		}
		heads.Store(0)
		records.Store(0)
		time.Sleep(3 * ttl)
		require.Zero(t, heads.Load())
		require.InDelta(t, 9, records.Load(), 1, "one for each third of the TTL")
		for _, run := range all {
			require.NoError(t, run.Context().Err())
			run.Finish(t)
		}
		synctest.Wait()
		records.Store(0)
		time.Sleep(3 * ttl)
		require.Zero(t, records.Load(), "nothing is held")
		require.Len(t, holderRecords(t, db), 1)

		run := runs.Begin(t, "ann", text("1"))
		time.Sleep(3 * ttl)
		require.NoError(t, run.Context().Err())
		require.InDelta(t, 10, records.Load(), 1)
		closeEarly(t, m)
		require.Empty(t, holderRecords(t, db))
	})
}

// The next Manager with the name of one that has died serves its users at once.
func TestHolderIsSucceeded(t *testing.T) {
	for how, serve := range map[string]func(t *testing.T, m *workspace.Manager){
		"Recover": func(t *testing.T, m *workspace.Manager) { require.NoError(t, settle(t.Context(), m)) },
		"Submit": func(t *testing.T, m *workspace.Manager) {
			_, err := m.Submit(t.Context(), "ann", text("2"))
			require.NoError(t, err)
		},
		"Await": func(t *testing.T, m *workspace.Manager) {
			_, err := m.Await(t.Context(), "ann", "1")
			require.NoError(t, err)
		},
	} {
		t.Run(how, func(t *testing.T) {
			onPlainStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				process, kill := asProcess(db)
				_, runs := hold(t, process, workspace.Options{TTL: ttl, Name: "desk/0"})
				require.Len(t, holderRecords(t, db), 1)
				run := runs.Begin(t, "ann", text("1"))
				kill()
				time.Sleep(time.Second)

				began := time.Now()
				served := make(chan time.Duration, 3)
				m := open(t, db, workspace.Options{TTL: ttl, Name: "desk/0", Run: func(_ context.Context, r *workspace.Run) error {
					if r.Message().ID == "1" {
						require.Equal(t, run.ID(), r.ID())
						require.Equal(t, 1, r.Attempt(), "it counts as every takeover of a dead holder")
						served <- time.Since(began)
					}
					return nil
				}})
				serve(t, m)
				require.LessOrEqual(t, <-served, 100*time.Millisecond)
				require.NoError(t, m.Wait(t.Context()))
				require.Len(t, holderRecords(t, db), 1)
			})
		})
	}
}

// A waiting Manager takes a run over when the record of its holder is gone, and
// else after 1.5 × TTL.
func TestHolderDies(t *testing.T) {
	for name, test := range map[string]struct {
		deleted bool    // the record of the holder
		want    float64 // in TTLs, at most
	}{
		"record deleted": {true, 0.26},
		"silence":        {false, 1.5},
	} {
		for _, after := range []float64{0.1, 0.334, 0.5, 0.66, 1.9} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					db, ttl := store.NewMemory(), 10*time.Second
					process, kill := asProcess(db.Open())
					_, runs := hold(t, process, workspace.Options{TTL: ttl})
					runs.Begin(t, "ann", text("1"))
					records := holderRecords(t, db)
					served := make(chan bool, 1)
					m := open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
						if run.Message().ID == "1" {
							require.Equal(t, 1, run.Attempt())
							served <- true
						}
						return nil
					}})
					_, err := m.Submit(t.Context(), "ann", text("2"))
					require.NoError(t, err)
					time.Sleep(inTTLs(after, ttl))
					require.Empty(t, served)
					kill()
					for key := range records {
						if test.deleted {
							require.NoError(t, store.Delete(t.Context(), db, key, store.Always))
						}
					}
					died := time.Now()
					<-served
					require.LessOrEqual(t, time.Since(died), inTTLs(test.want, ttl))
					if name == "silence" {
						require.Greater(t, time.Since(died), ttl)
					}
					require.NoError(t, m.Wait(t.Context()))
					require.Len(t, holderRecords(t, db), 1, "that of the holder that died is gone")
				})
			})
		}
	}
}

// A run whose holder has died is taken over within 2.5 × TTL after the last
// heartbeat, whatever happens meanwhile to those who look: a message that comes
// late does not make them begin anew, another process goes on when one that has
// looked is closed, and a store that is away costs only the time in which nobody
// could look.
func TestDeadHolderIsFoundInTime(t *testing.T) {
	type world struct {
		ttl           time.Duration
		first, second *workspace.Manager
		away          *atomic.Bool
	}
	sleep := func(w *world, ttls float64) { time.Sleep(inTTLs(ttls, w.ttl)) }
	submit := func(t *testing.T, w *world) {
		_, err := w.first.Submit(t.Context(), "ann", text("2"))
		require.NoError(t, err)
	}
	outage := func(w *world, ttls float64) {
		w.away.Store(true)
		sleep(w, ttls)
		w.away.Store(false)
	}
	for name, test := range map[string]struct {
		want      float64 // in TTLs, at most
		meanwhile func(t *testing.T, w *world)
	}{
		"nobody waits": {2.5, func(*testing.T, *world) {}},
		"a message comes late": {2.5, func(t *testing.T, w *world) {
			require.NoError(t, w.second.Close())
			sleep(w, 1.3+rand.Float64())
			submit(t, w)
		}},
		"the process that has the message is closed": {2.5, func(t *testing.T, w *world) {
			sleep(w, rand.Float64()/4)
			submit(t, w)
			sleep(w, rand.Float64())
			require.NoError(t, w.first.Close())
		}},
		"the store is away while a message waits": {1.5 + 0.6 + 0.5 + 0.1, func(t *testing.T, w *world) {
			submit(t, w)
			sleep(w, 0.3+rand.Float64())
			outage(w, 0.6)
		}},
		"the store is away while nobody waits": {2.5 + 0.2 + 1.25, func(_ *testing.T, w *world) {
			sleep(w, 0.3+2*rand.Float64())
			outage(w, 0.2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for range effort.Runs(20) {
				synctest.Test(t, func(t *testing.T) {
					db, ttl := store.NewMemory(), 10*time.Second
					link, away := withOutages(db.Open(), true)
					served := make(chan bool, 2)
					opts := workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
						served <- run.Message().ID == "1"
						return nil
					}}
					w := &world{ttl, open(t, link, opts), open(t, link, opts), away}
					time.Sleep(rand.N(2 * ttl))
					process, kill := asProcess(db.Open())
					_, runs := hold(t, process, workspace.Options{TTL: ttl})
					runs.Begin(t, "ann", text("1"))
					kill()
					died := time.Now()
					test.meanwhile(t, w)
					require.True(t, <-served)
					require.LessOrEqual(t, time.Since(died), inTTLs(test.want, ttl))
					require.Greater(t, time.Since(died), ttl)
				})
			}
		})
	}
}

// Everything that a holder does after others have taken its runs is refused, and
// it hears of it with its next heartbeat.
func TestHolderIsReplaced(t *testing.T) {
	onPlainStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var log bytes.Buffer
		process, _ := asProcess(db)
		_, runs := hold(t, process, workspace.Options{TTL: ttl, Name: "desk", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		run := runs.Begin(t, "ann", text("1"))
		other := runs.Begin(t, "bob", text("1"))
		require.NoError(t, notes.Set(run.State(), []string{"late"}))
		m := open(t, db, workspace.Options{TTL: ttl, Name: "desk", Run: func(ctx context.Context, run *workspace.Run) error {
			if run.UserID() == "dan" {
				time.Sleep(3 * ttl)
			}
			return ctx.Err()
		}})
		_, err := m.Handle(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		require.ErrorIs(t, run.Commit(t.Context()), workspace.ErrFenced)
		began := time.Now()
		<-other.Context().Done()
		require.LessOrEqual(t, time.Since(began), ttl/3+ttl/100)
		require.ErrorIs(t, context.Cause(other.Context()), workspace.ErrFenced)
		require.ErrorIs(t, context.Cause(other.Context()), workspace.ErrHolder)
		synctest.Wait()
		require.Contains(t, log.String(), workspace.ErrHolder.Error())
		require.Empty(t, notes.GetOr(view(t, m, "ann").State(), nil))

		// It goes on without the name, and does not take it back.
		next := runs.Begin(t, "cem", text("1"))
		_, err = m.Handle(t.Context(), "dan", text("1"))
		require.NoError(t, err)
		next.Finish(t)
	})
}

// A holder that loses its only run hears that another process has its name, although it
// has no more leases to renew.
func TestHolderThatIsReplacedSaysSoWithoutRuns(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var log bytes.Buffer
		process, _ := asProcess(db)
		_, runs := hold(t, process, workspace.Options{TTL: ttl, Name: "desk", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		run := runs.Begin(t, "ann", text("1"))
		time.Sleep(ttl / 10) // by now the lease is watched, where the store can
		m := open(t, db, workspace.Options{TTL: ttl, Name: "desk", Run: nothing})
		_, err := m.Await(t.Context(), "ann", "1")
		require.NoError(t, err)
		<-run.Context().Done()
		time.Sleep(ttl)
		synctest.Wait()
		require.Contains(t, log.String(), `msg="holder record was lost"`)
		require.Contains(t, log.String(), workspace.ErrHolder.Error()+`: \"desk\"`)
	})
}

// Within a process, a second Manager with a name is logged as long as the first one is
// open, and has the name.
func TestTwoManagersWithANameInOneProcess(t *testing.T) {
	db, other := store.NewMemory(), store.NewMemory()
	opened := func(on store.Store, name string) (*workspace.Manager, string) {
		var log bytes.Buffer
		m, err := workspace.Open(t.Context(), on, &workspace.Options{Name: name, Run: nothing, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		return m, log.String()
	}
	const alarm = "another Manager has the name of the holder: \\\"desk\\\": this process has opened it"
	first, log := opened(db, "desk")
	require.Empty(t, log)
	for name, on := range map[string]store.Store{"desk": other, "desk-1": db, "": db} {
		for range 1 + len(name)%2 {
			m, log := opened(on, name)
			require.Empty(t, log, name)
			require.NoError(t, m.Close())
		}
	}
	second, log := opened(db, "desk")
	require.Contains(t, log, alarm)
	require.NoError(t, first.Close(), "which frees nothing")
	third, log := opened(db, "desk")
	require.Contains(t, log, alarm)
	require.NoError(t, second.Close())
	require.NoError(t, third.Close())
	fourth, log := opened(db, "desk")
	require.Empty(t, log)
	require.NoError(t, fourth.Close())
}

// A store that is away for half of the TTL costs no lease, also if its answers
// are lost.
func TestHeartbeatsDuringAnOutage(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("reply lost ", lost), func(t *testing.T) {
			onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
				process, away := withOutages(db, lost)
				_, runs := hold(t, process, workspace.Options{TTL: ttl})
				run := runs.Begin(t, "ann", text("1"))
				contender := open(t, db, workspace.Options{TTL: ttl, Run: nothing})
				_, err := contender.Submit(t.Context(), "ann", text("2"))
				require.NoError(t, err)
				for range 10 {
					time.Sleep(ttl/3 - ttl/100)
					away.Store(true)
					time.Sleep(ttl / 2)
					away.Store(false)
					time.Sleep(ttl / 10)
					require.NoError(t, run.Context().Err())
				}
				run.Finish(t)
			})
		})
	}
}

// A record that an operator has damaged or deleted costs the runs of its holder
// an attempt, and nothing else.
func TestHolderRecordIsLost(t *testing.T) {
	for name, harm := range map[string]func(db store.Store, key string) error{
		"deleted": func(db store.Store, key string) error {
			return store.Delete(context.Background(), db, key, store.Always)
		},
		"damaged": func(db store.Store, key string) error {
			_, err := store.Put(context.Background(), db, key, []byte("{"), store.Always)
			return err
		},
	} {
		for _, holder := range []string{"", "desk"} {
			t.Run(name+holder, func(t *testing.T) {
				onPlainStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
					var attempts []int
					m := open(t, db, workspace.Options{TTL: ttl, Name: holder, Run: func(ctx context.Context, run *workspace.Run) error {
						if attempts = append(attempts, run.Attempt()); len(attempts) > 1 {
							require.Equal(t, []string{"kept"}, notes.GetOr(run.State(), nil))
							return visits.Set(run.State(), 1)
						}
						require.NoError(t, notes.Set(run.State(), []string{"kept"}))
						require.NoError(t, run.Commit(ctx))
						for key := range holderRecords(t, db) {
							require.NoError(t, harm(db, key))
						}
						<-ctx.Done()
						require.ErrorIs(t, context.Cause(ctx), workspace.ErrFenced)
						return ctx.Err()
					}})
					_, err := m.Submit(t.Context(), "ann", text("1"))
					require.NoError(t, err)
					out, err := m.Await(t.Context(), "ann", "1")
					require.NoError(t, err)
					require.Equal(t, workspace.StatusDone, out.Status)
					require.Equal(t, []int{0, 1}, attempts)
					require.Equal(t, 1, visits.GetOr(view(t, m, "ann").State(), 0))
					require.NoError(t, m.Close())
				})
			})
		}
	}
}

// A run that its Manager has given up is taken over although the Manager goes on
// to make heartbeats for others.
func TestAbandonedRun(t *testing.T) {
	onPlainStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		var away atomic.Bool
		m := open(t, withFaults(db, func(writes []store.Write) (bool, error) {
			for _, w := range writes {
				if away.Load() && strings.Contains(w.Key, ":ann") {
					return false, errors.New("connection refused")
				}
			}
			return false, nil
		}), workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			if run.UserID() == "ann" {
				away.Store(true)
				return nil // its end cannot be stored
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		_, err := m.Submit(t.Context(), "bob", text("1"))
		require.NoError(t, err)
		_, err = m.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		time.Sleep(4 * ttl)
		var attempts []int
		other := open(t, db, workspace.Options{TTL: ttl, Run: func(_ context.Context, run *workspace.Run) error {
			require.Equal(t, "ann", run.UserID())
			attempts = append(attempts, run.Attempt())
			return nil
		}})
		out, err := other.Handle(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.Equal(t, []int{1, 0}, attempts)
		require.NotNil(t, view(t, other, "bob").Run)
	})
}

func TestHolderNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"desk": true, "a/b:c%": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "a b": false, "a\n": false, "é": false, "\xff": false,
	} {
		m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Name: name})
		if ok {
			require.NoError(t, err, "%q", name)
			require.NoError(t, m.Close())
		} else {
			require.ErrorIs(t, err, workspace.ErrInvalid, "%q", name)
		}
	}
}

// A holder record is sealed as everything else is, and is no workspace.
func TestHolderRecordIsSealed(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Name: "desk", Keys: []workspace.Key{key("a")}})
	for _, e := range holderRecords(t, db) {
		require.NotContains(t, string(e.Value), "desk")
		require.NotContains(t, string(e.Value), "heartbeats")
	}
	require.Empty(t, users(t, m))
	require.NoError(t, m.Close())
}
