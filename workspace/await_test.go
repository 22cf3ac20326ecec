package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// slow returns a Run that takes a second and replies. It fails for messages
// whose id begins with "bad".
func slow(_ context.Context, run *workspace.Run) error {
	time.Sleep(time.Second)
	if id := run.Message().ID; strings.HasPrefix(id, "bad") {
		return errors.New("no good")
	}
	run.SetReply("reply to " + run.Message().ID)
	return nil
}

// Handle returns when its message is handled, also if that was queued.
func TestHandleWaitsForAQueuedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, store.NewMemory(), workspace.Options{Run: slow})
		var wg sync.WaitGroup
		for i, id := range []string{"1", "2", "bad", "4"} {
			wg.Go(func() {
				began := time.Now()
				out, err := m.Handle(t.Context(), "ann", text(id))
				require.Equal(t, time.Duration(i+1)*time.Second, time.Since(began), "told at once")
				require.NotEmpty(t, out.RunID)
				if id == "bad" {
					require.ErrorIs(t, err, workspace.ErrRunFailed)
					require.ErrorContains(t, err, "no good")
					require.Equal(t, workspace.StatusFailed, out.Status)
					return
				}
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
				require.Equal(t, "reply to "+id, out.Reply)
			})
			synctest.Wait()
		}
		wg.Wait()
		require.NoError(t, m.Close())
	})
}

// If its ctx ends, Handle returns, but the message stays.
func TestHandleOfAQueuedMessageEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, store.NewMemory(), workspace.Options{Run: slow})
		_, err := m.Submit(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		out, err := m.Handle(ctx, "ann", text("2"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, workspace.StatusQueued, out.Status)
		out, err = m.Await(t.Context(), "ann", "2")
		require.NoError(t, err)
		require.Equal(t, "reply to 2", out.Reply)
		require.NoError(t, m.Close())
	})
}

// A run cannot wait for a message that begins after it.
func TestHandleWithinARunOfTheSameUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *workspace.Manager
		m = open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			switch run.Message().ID {
			case "1":
				_, err := m.Handle(ctx, "ann", text("2"))
				require.ErrorIs(t, err, workspace.ErrBusy)
				require.ErrorContains(t, err, "Submit")
				_, err = m.Await(ctx, "ann", "1")
				require.ErrorIs(t, err, workspace.ErrBusy)
				_, err = m.Handle(ctx, "bob", text("3"))
				require.NoError(t, err, "another user")
				_, err = m.Submit(ctx, "ann", text("4"))
				require.NoError(t, err)
			case "3":
				_, err := m.Handle(ctx, "ann", text("5"))
				require.ErrorIs(t, err, workspace.ErrBusy, "ann's run waits for this one")
			case "4":
				require.ErrorIs(t, run.Context().Err(), nil)
			}
			return nil
		}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		out, err := m.Await(t.Context(), "ann", "4")
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.NoError(t, m.Wait(t.Context()))
		for _, id := range []string{"2", "5"} {
			_, err = m.Await(t.Context(), "ann", id)
			require.ErrorIs(t, err, workspace.ErrNotFound, "it was not accepted")
		}
		require.NoError(t, m.Close())
	})
}

func TestAwait(t *testing.T) {
	for name, wrap := range map[string]func(*store.Memory) store.Store{
		"watcher": func(db *store.Memory) store.Store { return db },
		"poll":    func(db *store.Memory) store.Store { return plain{Store: db} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := wrap(store.NewMemory())
				m := open(t, db, workspace.Options{Run: slow})
				other := open(t, db, workspace.Options{}) // neither has a Run nor holds one
				began := time.Now()
				for _, id := range []string{"1", "bad", "3"} {
					_, err := m.Submit(t.Context(), "ann", text(id))
					require.NoError(t, err)
				}
				var wg sync.WaitGroup
				for _, manager := range []*workspace.Manager{m, other} {
					for i, id := range []string{"1", "bad", "3"} {
						wg.Go(func() {
							out, err := manager.Await(t.Context(), "ann", id)
							require.NoError(t, err)
							late := time.Since(began) - time.Duration(i+1)*time.Second
							require.GreaterOrEqual(t, late, time.Duration(0))
							if manager == m {
								require.Zero(t, late)
							} else {
								require.LessOrEqual(t, late, 250*time.Millisecond)
							}
							require.NotEmpty(t, out.RunID)
							out.RunID = ""
							want := workspace.Outcome{Status: workspace.StatusDone, Reply: "reply to " + id}
							if id == "bad" {
								want = workspace.Outcome{Status: workspace.StatusFailed, Reason: "no good"}
							}
							require.Equal(t, want, out)
						})
					}
				}
				wg.Wait()
				out, err := other.Await(t.Context(), "ann", "3")
				require.NoError(t, err, "it has ended before")
				require.Equal(t, "reply to 3", out.Reply)
				_, err = other.Await(t.Context(), "ann", "4")
				require.ErrorIs(t, err, workspace.ErrNotFound)
				require.NoError(t, m.Close())
				require.NoError(t, other.Close())
			})
		})
	}
}

// Await returns what is known when its ctx or the Manager ends.
func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs := hold(t, store.NewMemory(), workspace.Options{})
		runs.Begin(t, "ann", text("1"))
		_, err := m.Submit(t.Context(), "ann", text("2"))
		require.NoError(t, err)
		for id, want := range map[string]workspace.Status{"1": workspace.StatusStarted, "2": workspace.StatusQueued} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			out, err := m.Await(ctx, "ann", id)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, want, out.Status)
		}
		ended := make(chan error)
		go func() {
			_, err := m.Await(t.Context(), "ann", "2")
			ended <- err
		}()
		synctest.Wait()
		closeEarly(t, m)
		require.ErrorIs(t, <-ended, workspace.ErrClosed)
	})
}

// What an operator does to a message ends those that wait for it.
func TestAwaitOfAMessageThatIsDropped(t *testing.T) {
	for name, test := range map[string]struct {
		id   string
		drop func(*workspace.Manager) error
		want error // of Handle
	}{
		"reset": {"2", func(m *workspace.Manager) error {
			_, err := m.Reset(context.Background(), "ann")
			return err
		}, workspace.ErrInterrupted},
		"discard": {"2", func(m *workspace.Manager) error {
			return m.Discard(context.Background(), "ann", "2")
		}, workspace.ErrRunFailed},
		"delete": {"2", func(m *workspace.Manager) error {
			return m.Delete(context.Background(), "ann")
		}, workspace.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			for _, elsewhere := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					db := plain{Store: store.NewMemory()}
					m, runs := hold(t, db, workspace.Options{})
					runs.Begin(t, "ann", text("1"))
					ended := make(chan error)
					go func() {
						_, err := m.Handle(t.Context(), "ann", text(test.id))
						ended <- err
					}()
					synctest.Wait()
					dropping := m
					if elsewhere {
						dropping = open(t, db, workspace.Options{})
					}
					require.NoError(t, test.drop(dropping))
					require.ErrorIs(t, <-ended, test.want)
					_ = m.Close()
				})
			}
		})
	}
}

// A message that has ended long ago is not found.
func TestAwaitAfterManyEndings(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: nothing})
	for i := range 100 {
		_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint("m", i)))
		require.NoError(t, err)
	}
	_, err := m.Await(t.Context(), "ann", "m0")
	require.ErrorIs(t, err, workspace.ErrNotFound)
	out, err := m.Await(t.Context(), "ann", "m36")
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)
}

// The looks at a workspace are shared by those that wait.
func TestAwaitSharesItsLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := store.NewMemory()
		_, runs := hold(t, memory, workspace.Options{TTL: time.Hour})
		run := runs.Begin(t, "ann", text("1"))
		db := fakestore.Count(plain{Store: memory})
		m := open(t, db, workspace.Options{})
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				_, err := m.Await(t.Context(), "ann", "1")
				require.NoError(t, err)
			})
		}
		synctest.Wait()
		before := db.Read()
		time.Sleep(10 * time.Second)
		require.InDelta(t, 40, db.Read()-before, 1, "four a second")
		run.Finish(t)
		wg.Wait()
	})
}

// The newest replies are remembered, as many as are small together.
func TestRepliesOutliveTheirRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sizes := map[string]int{"0": 63 << 10, "11": 65 << 10, "12": 20 << 10, "29": 0}
		m := open(t, store.NewMemory(), workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
			size, ok := sizes[run.Message().ID]
			if !ok {
				size = 2 << 10
			}
			run.SetReply(strings.Repeat("x", size))
			return nil
		}})
		for i := range 30 {
			_, err := m.Handle(t.Context(), "ann", text(strconv.Itoa(i)))
			require.NoError(t, err)
		}
		for range 2 {
			require.NoError(t, m.Compact(t.Context(), "ann"))
			var kept []int
			for i := range 30 {
				out, err := m.Handle(t.Context(), "ann", text(strconv.Itoa(i)))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDuplicate, out.Status)
				require.Equal(t, workspace.StatusDone, out.First)
				if out.Reply != "" {
					kept = append(kept, i)
				}
			}
			// 16 replies of 2 KiB, one of 20 KiB, and 6 more of 2 KiB.
			require.Equal(t, []int{5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}, kept)
		}
		require.NoError(t, m.Close())
	})
}

// Handle returns what Await returns afterwards, here and in another process.
func TestHandleReturnsWhatAwaitReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := store.NewMemory()
		m := open(t, db, workspace.Options{Run: slow})
		other := open(t, db, workspace.Options{})
		for id, want := range map[string]string{
			"1":   `{"status":"done","run_id":"RUN","reply":"reply to 1"}`,
			"bad": `{"status":"failed","run_id":"RUN","reason":"no good"}`,
		} {
			out, _ := m.Handle(t.Context(), "ann", text(id))
			require.NotEmpty(t, out.RunID)
			data, err := json.Marshal(out)
			require.NoError(t, err)
			require.Equal(t, strings.Replace(want, "RUN", out.RunID, 1), string(data))
			for _, m := range []*workspace.Manager{m, other} {
				again, err := m.Await(t.Context(), "ann", id)
				require.NoError(t, err)
				require.Equal(t, out, again)
			}
		}
		require.NoError(t, other.Close())
		require.NoError(t, m.Close())
	})
}
