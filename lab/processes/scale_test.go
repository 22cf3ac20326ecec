package processes

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/cost"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// What looks at all workspaces reads each head once, and what looks at one
// workspace does not notice the others. The memory for it does not depend on the
// number of workspaces.
func TestScale(t *testing.T) {
	effort.SkipShort(t) // the race detector changes what the heap holds
	made := t.TempDir()
	// Not in parallel: they measure the heap of this process.
	t.Run("memory", func(t *testing.T) { scale(t, store.NewMemory(), made) })
	t.Run("sqlite", func(t *testing.T) { scale(t, open(t, sqlite(t)), made) })
	for _, p := range servers {
		t.Run(p.name, func(t *testing.T) {
			p.find(t)
			scale(t, open(t, p.fresh(t)), made)
		})
	}
}

const (
	// recordsEach is the number of records of a workspace.
	recordsEach = 10
	// deletions is the number of workspaces that are deleted in all.
	deletions = 20
)

// scale fills a store with workspaces and measures, after a quarter of them and
// at the end.
func scale(t *testing.T, db store.Store, made string) {
	most := min(100_000, max(1000, effort.Runs(100)))
	s := scaled{db: db, made: made, deletedEvery: most / deletions}
	s.fill(t, most/4)
	s.time(t, "first Busy", 4, func(m *workspace.Manager) { // opens connections
		require.NoError(t, workspacetest.Settle(t.Context(), m))
	})
	few := s.measure(t)
	s.fill(t, most)
	many := s.measure(t)
	// A ledger for each user would take a multiple of this.
	const slack = 1 << 20
	for i, m := range many {
		require.LessOrEqual(t, m.heap, few[i].heap+slack, m.name+": bytes held at most")
	}
}

// scaled is a store with many users.
type scaled struct {
	db           store.Store
	made         string // folder of the entries that were made
	users        int
	deletedEvery int // number of users of which one is deleted
	expired      int // number of deleted users that were removed
}

type measurement struct {
	name string
	heap int64 // bytes held, at most
}

func scaledUser(i int) string { return fmt.Sprintf("user%06d", i) }

// fill adds users. The library writes their workspaces to a store in memory, from
// which they are copied, because a batch of many entries takes less time than the
// operations that have made them.
func (s *scaled) fill(t *testing.T, users int) {
	const chunk = 125
	began := time.Now()
	var keys atomic.Int64
	var wg sync.WaitGroup
	free := make(chan struct{}, 4)
	errs := make(chan error, users/chunk+1)
	for from := s.users; from < users && len(errs) == 0; from += chunk {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			n, err := s.addUsers(t.Context(), from, min(from+chunk, users))
			keys.Add(int64(n))
			if err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	s.users = users
	t.Logf("filled up to %d users, with %d keys more, in %s", users, keys.Load(), time.Since(began).Round(time.Millisecond))
}

// addUsers adds some users, and returns the number of their keys. The stores get
// the same entries, which the first of them makes.
func (s *scaled) addUsers(ctx context.Context, from, to int) (int, error) {
	var entries []store.Entry
	file := filepath.Join(s.made, fmt.Sprint(from, "-", to))
	data, err := os.ReadFile(file)
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(data)).Decode(&entries)
	} else if entries, err = s.makeWorkspaces(ctx, from, to); err == nil {
		var encoded bytes.Buffer
		if err = gob.NewEncoder(&encoded).Encode(entries); err == nil {
			err = os.WriteFile(file, encoded.Bytes(), 0o600)
		}
	}
	for some := range slices.Chunk(entries, 256) {
		if err == nil {
			err = putAll(ctx, s.db, some)
		}
	}
	return len(entries), err
}

// makeWorkspaces returns the entries of some users, each with a message, its reply
// and some changes. Some of them are deleted afterwards.
func (s *scaled) makeWorkspaces(ctx context.Context, from, to int) ([]store.Entry, error) {
	db := store.NewMemory()
	m, err := workspace.Open(ctx, db, &workspace.Options{Run: replyShortly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	for i := from; i < to; i++ {
		user := scaledUser(i)
		_, err := m.Handle(ctx, user, workspace.Message{Content: state.UserText("Good evening! I have lost my key.")})
		for n := 1; n < recordsEach && err == nil; n++ {
			err = m.Update(ctx, user, func(w *workspace.Workspace) error {
				return w.State().KV().Set(fmt.Sprint("note ", n), strings.Repeat("And so on. ", 10))
			})
		}
		if err == nil && i%s.deletedEvery == 0 {
			err = m.Delete(ctx, user)
		}
		if err != nil {
			return nil, err
		}
	}
	var entries []store.Entry
	for e, err := range db.List(ctx, "", "", true) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(e.Key, "agent:holder:") {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func replyShortly(_ context.Context, r *workspace.Run) error {
	r.SetReply("Good evening.")
	return state.Messages.Set(r.State(), append(state.Messages.GetOr(r.State(), nil), state.AssistantText("Good evening.")))
}

// putAll puts entries in a batch.
func putAll(ctx context.Context, db store.Store, entries []store.Entry) error {
	var writes []store.Write
	for _, e := range entries {
		writes = append(writes, store.Write{Key: e.Key, Value: e.Value})
	}
	_, err := db.Batch(ctx, writes)
	return err
}

// measure looks at all workspaces in each way, and at one.
func (s *scaled) measure(t *testing.T) []measurement {
	ctx := t.Context()
	all := float64(s.users)*1.02 + 1
	deleted := (s.users + s.deletedEvery - 1) / s.deletedEvery
	return []measurement{
		s.time(t, "List", all, func(m *workspace.Manager) {
			n := 0
			for _, err := range m.List(ctx) {
				require.NoError(t, err)
				n++
			}
			require.Equal(t, s.users-deleted, n)
		}),
		s.time(t, "Busy", 4, func(m *workspace.Manager) { require.NoError(t, workspacetest.Settle(ctx, m)) }),
		s.time(t, "Expire of none", all, func(m *workspace.Manager) {
			n, err := m.Expire(ctx, 24*time.Hour)
			require.NoError(t, err)
			require.Zero(t, n)
		}),
		s.time(t, "Verify of one", 40, func(m *workspace.Manager) {
			r, err := m.Verify(ctx, scaledUser(s.users-1))
			require.NoError(t, err)
			require.Equal(t, recordsEach, int(r.Version))
		}),
		s.time(t, "Expire", all+8*float64(deleted-s.expired), func(m *workspace.Manager) {
			n, err := m.Expire(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, deleted-s.expired, n)
			s.expired = deleted
		}),
	}
}

// time measures what a Manager that has seen no workspace does.
func (s *scaled) time(t *testing.T, name string, calls float64, do func(m *workspace.Manager)) measurement {
	c := &sampler{Store: s.db, every: int64(s.users/16 + 1)}
	m, err := workspace.Open(t.Context(), c, &workspace.Options{Run: replyShortly})
	require.NoError(t, err)
	c.base = int64(cost.Live())
	began := time.Now()
	do(m)
	took := time.Since(began) - c.pause
	c.sample()
	require.NoError(t, m.Close())
	t.Logf("%d users: %s: %d calls, %d keys listed, %d KB held, %s", s.users, name, c.calls.Load(), c.listed.Load(), c.most>>10,
		took.Round(time.Millisecond))
	require.LessOrEqual(t, float64(c.calls.Load()), calls, name+": calls")
	return measurement{name, c.most}
}

// sampler counts the calls of a store, and now and then measures the heap.
type sampler struct {
	store.Store
	calls, listed atomic.Int64
	every         int64 // calls between two looks at the heap

	mu    sync.RWMutex // held by calls until they begin
	base  int64
	most  int64         // bytes more than base
	pause time.Duration // spent on measuring
}

// sample looks at the heap. No call begins meanwhile: its time would be lost.
func (s *sampler) sample() {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	s.most = max(s.most, int64(cost.Live())-s.base)
	s.pause += time.Since(began)
}

func (s *sampler) called() {
	if s.calls.Add(1)%s.every == 0 {
		s.sample()
	}
	s.mu.RLock() // waits for a sample
	defer s.mu.RUnlock()
}

func (s *sampler) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	s.called()
	return s.Store.Get(ctx, keys...)
}

func (s *sampler) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	s.called()
	return s.Store.Batch(ctx, writes)
}

func (s *sampler) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	s.called()
	return func(yield func(store.Entry, error) bool) {
		for e, err := range s.Store.List(ctx, prefix, after, values) {
			s.listed.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}
