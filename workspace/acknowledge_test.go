package workspace_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// standby is a store that acknowledges nothing while its standbys are away, and shows
// what was written all the same.
type standby struct {
	store.Store
	mu    sync.RWMutex // guards Store
	away  atomic.Bool
	puts  atomic.Int64
	heads atomic.Int64 // writes of heads
}

func (s *standby) Durability() store.Durability { return store.DurabilityFailover }

func (s *standby) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	s.puts.Add(1)
	for _, w := range writes {
		if strings.HasPrefix(w.Key, "agent:workspace:") {
			s.heads.Add(1)
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	revs, err := s.Store.Batch(ctx, writes)
	if err == nil && s.away.Load() {
		return nil, store.ErrUnknownOutcome
	}
	return revs, err
}

func (s *standby) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.Store.Get(ctx, keys...)
}

// swap promotes another server.
func (s *standby) swap(by store.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Store = by
}

// Nothing is called accepted, done or a duplicate because it can be read.
func TestWhatIsShownIsNotTold(t *testing.T) {
	const gap = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		db := &standby{Store: store.NewMemory()}
		m := open(t, db, workspace.Options{Run: func(context.Context, *workspace.Run) error { return nil }, TTL: time.Minute})
		other := open(t, db, workspace.Options{Run: func(context.Context, *workspace.Run) error { return nil }, TTL: time.Minute})
		msg := workspace.Message{ID: "1", Content: state.UserText("pay")}
		outage := func() {
			db.away.Store(true)
			time.AfterFunc(gap, func() { db.away.Store(false) })
		}
		for name, call := range map[string]func() (workspace.Outcome, error){
			"Submit": func() (workspace.Outcome, error) { return m.Submit(t.Context(), "ann", msg) },
			"Handle": func() (workspace.Outcome, error) { return m.Handle(t.Context(), "bob", msg) },
		} {
			outage()
			began := time.Now()
			out, err := call()
			require.NoError(t, err, name)
			require.Contains(t, []workspace.Status{workspace.StatusStarted, workspace.StatusDone}, out.Status)
			require.GreaterOrEqual(t, time.Since(began), gap, name)
			require.NoError(t, m.Wait(t.Context()))
		}
		for name, call := range map[string]func() (workspace.Outcome, error){
			"Await":       func() (workspace.Outcome, error) { return other.Await(t.Context(), "ann", "1") },
			"a duplicate": func() (workspace.Outcome, error) { return other.Submit(t.Context(), "bob", msg) },
		} {
			outage()
			began := time.Now()
			_, err := call()
			require.NoError(t, err, name)
			require.GreaterOrEqual(t, time.Since(began), gap, name)
			before := db.puts.Load()
			_, err = call() // the process remembers it
			require.NoError(t, err, name)
			require.Equal(t, before, db.puts.Load(), name)
		}
		db.away.Store(true)
		_, err := m.Submit(t.Context(), "eve", msg)
		require.ErrorIs(t, err, store.ErrUnknownOutcome)
	})
}

// A head notes what the store has acknowledged, so that messages that are sent again
// and again to other processes cost one write for each of them, and those to the
// process that has handled them none.
func TestRedeliveriesToAnIdleWorkspaceWriteNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := workspace.Options{Run: func(_ context.Context, r *workspace.Run) error {
			return notes.Set(r.State(), []string{r.Message().ID})
		}, TTL: time.Minute}
		plain, db := &standby{Store: store.NewMemory()}, &standby{Store: store.NewMemory()}
		m, others := open(t, db, opts), []*workspace.Manager{open(t, db, opts), open(t, db, opts)}
		once := open(t, unconfirmed{plain}, opts)
		const messages = 20
		msg := func(n int) workspace.Message {
			return workspace.Message{ID: strconv.Itoa(n), Content: state.UserText("pay")}
		}
		before := db.heads.Load()
		for n := range messages {
			for _, m := range []*workspace.Manager{m, once} {
				out, err := m.Handle(t.Context(), "ann", msg(n))
				require.NoError(t, err)
				require.Equal(t, workspace.StatusDone, out.Status)
			}
		}
		require.Equal(t, plain.heads.Load(), db.heads.Load()-before, "nothing more is written")
		before = db.heads.Load()
		for range 600 {
			time.Sleep(time.Second)
			for _, m := range append(others, m) {
				for n := range messages {
					out, err := m.Submit(t.Context(), "ann", msg(n))
					require.NoError(t, err)
					require.Equal(t, workspace.StatusDuplicate, out.Status)
					out, err = m.Await(t.Context(), "ann", msg(n).ID)
					require.NoError(t, err)
					require.Equal(t, workspace.StatusDone, out.Status)
				}
			}
		}
		require.Equal(t, before+int64(len(others)), db.heads.Load(), "one for each process that has not written the head")
	})
}

// unconfirmed is a store whose writes may be lost by a failover.
type unconfirmed struct{ *standby }

func (unconfirmed) Durability() store.Durability { return store.DurabilityPower }

// What a process was only shown, and the store has taken back, does not count as seen:
// it needs no operator.
func TestWhatIsTakenBackWasNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &standby{Store: store.NewMemory()}
		finish := make(chan bool)
		opts := workspace.Options{Run: func(_ context.Context, r *workspace.Run) error {
			<-finish
			r.SetReply("paid")
			return nil
		}, TTL: time.Minute}
		m, other := open(t, db, opts), open(t, db, opts)
		_, err := m.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("pay")})
		require.NoError(t, err)
		told := make(chan workspace.Outcome, 1)
		go func() {
			out, err := other.Await(t.Context(), "ann", "1")
			require.NoError(t, err)
			told <- out
		}()
		time.Sleep(time.Second)

		standby := entries(t, db)
		db.away.Store(true)
		finish <- true
		time.Sleep(3 * time.Second)
		require.Empty(t, told, "the end is shown, and is not told")
		v, err := other.View(t.Context(), "ann")
		require.NoError(t, err)
		require.Nil(t, v.Run, "View shows it")

		promoted := store.NewMemory()
		write(t, promoted, standby)
		db.swap(promoted)
		db.away.Store(false)
		v, err = other.View(t.Context(), "ann")
		require.NoError(t, err)
		require.True(t, v.Run != nil || len(v.Ended) == 1, "the run goes on, or its end was made again")
		close(finish) // for the run, if it is made again
		require.Equal(t, "paid", (<-told).Reply)
		for _, m := range []*workspace.Manager{m, other} {
			for user, err := range m.RolledBack(t.Context()) {
				require.NoError(t, err, user)
			}
		}
	})
}
