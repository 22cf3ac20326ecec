package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
	"github.com/stretchr/testify/require"
)

var presenceTests = []storeTest{
	{"AnnounceAndWithdraw", forPresence(func(f *presenceFixture) {
		other := f.openPresence()
		f.requireAbsent("name", f.p, other)
		lost, withdraw := f.announce(f.p, "name")
		f.requirePresent("name", f.p, other)
		require.NoError(f, withdraw())
		f.requireAbsent("name", f.p, other)
		f.requireNotLost(lost)
	})},
	{"Conflict", forPresence(func(f *presenceFixture) {
		other := f.openPresence()
		lost, _ := f.announce(f.p, "name")
		for _, p := range []store.Presence{f.p, other} {
			_, _, err := p.Announce(f.ctx, "name")
			require.ErrorIs(f, err, store.ErrConflict)
			var named *store.Error
			require.ErrorAs(f, err, &named)
			require.Equal(f, "name", named.Key)
			f.requirePresent("name", f.p, other)
		}
		f.requireNotLost(lost)
	})},
	{"AnnounceAgain", forPresence(func(f *presenceFixture) {
		other := f.openPresence()
		_, withdraw := f.announce(f.p, "name")
		require.NoError(f, withdraw())
		lost, next := f.announce(other, "name")
		require.NoError(f, withdraw(), "a second call")
		f.requirePresent("name", f.p, other)
		require.NoError(f, next())
		f.requireAbsent("name", f.p, other)
		f.requireNotLost(lost)
	})},
	{"NamesAreBytes", forPresence(func(f *presenceFixture) {
		names := []string{
			"a", "A", "a ", " a", "ab", "a/b", "a.b", "a*", "a.*", "a.>", "a%", "a_", "a\x00", "\x00", "\n", "\u00e4", "a\u0308",
			"{a}", "'", `"`, "`", `\`, "$1", "?", strings.Repeat("a", store.MaxKey), strings.Repeat("a", store.MaxKey-1),
		}
		withdraws := make([]func() error, len(names))
		for i, name := range names {
			f.requireAbsent(name, f.p)
			_, withdraws[i] = f.announce(f.p, name)
			f.requirePresent(name, f.p)
		}
		for i, name := range names {
			require.NoError(f, withdraws[i]())
			f.requireAbsent(name, f.p)
			if i+1 < len(names) {
				f.requirePresent(names[i+1], f.p)
			}
		}
	})},
	{"InvalidNames", forPresence(func(f *presenceFixture) {
		for _, name := range []string{"", "\xff", strings.Repeat("a", store.MaxKey+1)} {
			_, _, err := f.p.Announce(f.ctx, name)
			require.ErrorIs(f, err, store.ErrInvalidKey)
			_, err = f.p.IsPresent(f.ctx, name)
			require.ErrorIs(f, err, store.ErrInvalidKey)
		}
	})},
	{"NamesAreNotKeys", forPresence(func(f *presenceFixture) {
		f.announce(f.p, "name")
		f.requireMissing("name")
		require.Empty(f, f.scanAll("", ""))
		revision := f.put("name", "value", store.IfAbsent)
		require.NoError(f, f.s.Delete(f.ctx, "name", store.IfRevision(revision)))
		f.requirePresent("name", f.p)
	})},
	{"ManyNames", forPresence(func(f *presenceFixture) {
		// More than a pool of connections has.
		for i := range 40 {
			f.announce(f.p, fmt.Sprint(i))
		}
		for i := range 40 {
			f.requirePresent(fmt.Sprint(i), f.p)
		}
		f.requireAbsent("40", f.p)
		f.put("key", "value", store.Always)
	})},
	{"OneContenderWins", forPresence(func(f *presenceFixture) {
		handles := []store.Presence{f.p, f.openPresence(), f.openPresence()}
		for round := range 10 {
			name := fmt.Sprint(round)
			var mu sync.Mutex
			winners := 0
			f.runWorkers(9, func(i int) error {
				_, _, err := handles[i%len(handles)].Announce(f.ctx, name)
				if errors.Is(err, store.ErrConflict) {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				winners++
				return err
			})
			require.Equal(f, 1, winners, "round %d", round)
		}
	})},
	{"LooksDisturbNothing", forPresence(func(f *presenceFixture) {
		handles := []store.Presence{f.openPresence(), f.openPresence()}
		ctx, cancel := context.WithCancel(f.ctx)
		var lookers sync.WaitGroup
		for _, p := range handles {
			lookers.Go(func() {
				for ctx.Err() == nil {
					_, _ = p.IsPresent(ctx, "name")
				}
			})
		}
		defer lookers.Wait()
		defer cancel()
		for range 20 {
			_, withdraw := f.announce(f.p, "name")
			f.requirePresent("name", f.p)
			require.NoError(f, withdraw())
			f.requireAbsent("name", f.p)
		}
	})},
	{"EndedContext", forPresence(func(f *presenceFixture) {
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		_, _, err := f.p.Announce(ended, "name")
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.p.IsPresent(ended, "name")
		require.ErrorIs(f, err, context.Canceled)
		f.requireAbsent("name", f.p)
	})},
	{"OutlivesContext", forPresence(func(f *presenceFixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		lost, withdraw, err := f.p.Announce(ctx, "name")
		require.NoError(f, err)
		cancel()
		time.Sleep(20 * time.Millisecond)
		f.requirePresent("name", f.p)
		f.requireNotLost(lost)
		require.NoError(f, withdraw())
		f.requireAbsent("name", f.p)
	})},
	{"DeadlineWhileAnnouncing", forPresence(func(f *presenceFixture) {
		for i := range 20 {
			name := fmt.Sprint(i)
			ctx, cancel := context.WithTimeout(f.ctx, time.Duration(i*i)*50*time.Microsecond)
			_, withdraw, err := f.p.Announce(ctx, name)
			cancel()
			if err == nil {
				f.requirePresent(name, f.p)
				require.NoError(f, withdraw())
			} else {
				require.ErrorIs(f, err, context.DeadlineExceeded)
			}
			f.awaitAbsent(f.p, name)
		}
	})},
	{"Close", forPresence(func(f *presenceFixture) {
		other := f.openPresence()
		one, withdraw := f.announce(f.p, "one")
		two, _ := f.announce(f.p, "two")
		third, _ := f.announce(other, "three")
		require.NoError(f, f.p.Close())
		f.mustEnd("an announcement of a closed store", func() { <-one; <-two })
		f.awaitAbsent(other, "one")
		f.awaitAbsent(other, "two")
		f.requirePresent("three", other)
		f.requireNotLost(third)
		f.mustEnd("withdraw after Close", func() { _ = withdraw() })
		_, _, err := f.p.Announce(f.ctx, "name")
		require.ErrorIs(f, err, store.ErrClosed)
		_, err = f.p.IsPresent(f.ctx, "three")
		require.ErrorIs(f, err, store.ErrClosed)
	})},
}

// presenceFixture is a fixture of a store that is a Presence.
type presenceFixture struct {
	*fixture
	p store.Presence // the first handle
}

// forPresence returns a test that is skipped if the store is not a Presence.
func forPresence(run func(f *presenceFixture)) func(f *fixture) {
	return func(f *fixture) {
		p, ok := store.As[store.Presence](f.s)
		if !ok {
			f.Skip("the store is not a Presence")
		}
		run(&presenceFixture{f, p})
	}
}

func (f *presenceFixture) openPresence() store.Presence { return f.open().(store.Presence) }

// announce requires that a name can be announced.
func (f *presenceFixture) announce(p store.Presence, name string) (lost <-chan struct{}, withdraw func() error) {
	f.Helper()
	lost, withdraw, err := p.Announce(f.ctx, name)
	require.NoError(f, err)
	return lost, withdraw
}

func (f *presenceFixture) requirePresent(name string, handles ...store.Presence) {
	f.Helper()
	for _, p := range handles {
		present, err := p.IsPresent(f.ctx, name)
		require.NoError(f, err)
		require.True(f, present, "%q is absent", name)
	}
}

func (f *presenceFixture) requireAbsent(name string, handles ...store.Presence) {
	f.Helper()
	for _, p := range handles {
		present, err := p.IsPresent(f.ctx, name)
		require.NoError(f, err)
		require.False(f, present, "%q is present", name)
	}
}

func (f *presenceFixture) requireNotLost(lost <-chan struct{}) {
	f.Helper()
	select {
	case <-lost:
		f.Fatal("the announcement is lost")
	default:
	}
}

// awaitAbsent waits until a server has noticed that a connection has ended.
func (f *presenceFixture) awaitAbsent(p store.Presence, name string) {
	f.Helper()
	awaitAbsent(f.ctx, f, p, name)
}

func awaitAbsent(ctx context.Context, t require.TestingT, p store.Presence, name string) {
	testkit.Until(func() bool {
		present, err := p.IsPresent(ctx, name)
		require.NoError(t, err)
		return !present
	})
}

// Presence tests that the names of a process are absent after it was killed,
// and not before. The data set at an address must exist, and its store must be
// a [store.Presence]. See [Main].
func Presence(t *testing.T, address string) {
	p, ok := store.As[store.Presence](open(t, address))
	require.True(t, ok, "the store is not a Presence")
	defer func() { _ = p.Close() }()
	job := task{Job: "announce", Address: address, Prefix: newPrefix("presence")}
	var names []string
	var processes []*worker.Process
	for i := range 3 {
		job.Seed = uint64(i)
		process, err := job.start(t.Context())
		require.NoError(t, err)
		defer process.Stop()
		var announced string
		ok, err := process.Read(&announced)
		require.NoError(t, err)
		if !ok {
			t.Fatalf("the process ended by itself: %v", process.Wait())
		}
		require.Equal(t, job.announcedName(), announced)
		names, processes = append(names, announced), append(processes, process)
	}
	requirePresence := func(want ...bool) {
		t.Helper()
		for i, name := range names {
			present, err := p.IsPresent(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, want[i], present, "the name of process %d", i)
		}
	}
	requirePresence(true, true, true)
	for i, want := range [][]bool{{false, true, true}, {false, false, true}, {false, false, false}} {
		_, _, err := p.Announce(t.Context(), names[i])
		require.ErrorIs(t, err, store.ErrConflict, "the name of a process that runs")
		processes[i].Kill()
		killed := time.Now()
		awaitAbsent(t.Context(), t, p, names[i])
		t.Logf("absent %v after the kill", time.Since(killed))
		requirePresence(want...)
		_, withdraw, err := p.Announce(t.Context(), names[i])
		require.NoError(t, err, "the name of a process that was killed")
		require.NoError(t, withdraw())
		requirePresence(want...)
	}
}

func (t task) announcedName() string { return fmt.Sprint(t.Prefix, t.Seed) }

// announce is the job of a worker of Presence: it announces a name, prints it,
// and waits to be killed.
func announce(s store.Store, t task) error {
	lost, _, err := s.(store.Presence).Announce(context.Background(), t.announcedName())
	if err != nil {
		return err
	}
	if err := worker.Print(t.announcedName()); err != nil {
		return err
	}
	go func() {
		<-lost
		panic("storetest: the announcement is lost")
	}()
	_, err = io.Copy(io.Discard, os.Stdin) // ends with the test
	return err
}
