package workspacetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// What the threads of a user share.
var (
	spent        = &state.Field[int]{Name: "spent", Handler: state.Sum[int](), Shared: true}
	topics       = &state.Field[[]string]{Name: "topics", Handler: state.Union[[]string](), Shared: true}
	total        = &state.Field[int]{Name: "total", Shared: true}
	sharedSchema = state.MustSchema(spent, topics, total)
)

// Eight threads of a user increment what they share, by Sum, Union and Update,
// while the Managers that handle them are cut off from the store again and again,
// with the last write made or not. None is lost, and none is made twice.
func (s *suite) Threads(t *testing.T) {
	const threads, messages, increments = 8, 25, 4
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		var lives atomic.Int64
		begin := func() *workspace.Manager {
			return Open(t, mortal(db, lives.Add(1)), workspace.Options{
				Schema: sharedSchema, TTL: ttl, StoreTimeout: 2 * ttl, Attempts: 10_000,
				Run: func(ctx context.Context, run *workspace.Run) error { return shareIncrements(ctx, run, increments) },
			})
		}
		var wg sync.WaitGroup
		for i := range threads {
			wg.Go(func() {
				thread := workspace.Thread("ann", fmt.Sprint(i))
				m := begin()
				for n := range messages {
					msg := Text(fmt.Sprint(n))
					for handled := false; !handled; {
						ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
						_, err := m.Handle(ctx, thread, msg)
						if err == nil { // it may be one that is under way
							_, err = m.Await(ctx, thread, msg.ID)
						}
						cancel()
						if handled = err == nil; !handled {
							_ = m.Close()
							m = begin()
						}
					}
				}
			})
		}
		wg.Wait()
		m := Open(t, db, workspace.Options{Schema: sharedSchema})
		for i := range threads {
			v := View(t, m, workspace.Thread("ann", fmt.Sprint(i)))
			require.Nil(t, v.Run)
			require.Empty(t, v.DeadLetters)
		}
		shared := View(t, m, workspace.Shared("ann")).State()
		require.Equal(t, threads*messages*increments, spent.GetOr(shared, 0))
		require.Len(t, topics.GetOr(shared, nil), threads*messages*increments)
		require.Equal(t, threads*messages*increments, total.GetOr(shared, 0))
		t.Logf("%d lives", lives.Load())
		require.Greater(t, lives.Load(), int64(2*threads))
	})
}

// shareIncrements makes the increments of a message that no process before has
// committed.
func shareIncrements(ctx context.Context, run *workspace.Run, increments int) error {
	for i := range increments {
		topic := fmt.Sprint(run.UserID(), " ", run.Message().ID, " ", i)
		if slices.Contains(topics.GetOr(run.State(), nil), topic) {
			continue
		}
		err := errors.Join(
			spent.Set(run.State(), 1), topics.Set(run.State(), []string{topic}),
			total.Update(run.State(), func(n int) (int, error) { return n + 1, nil }),
		)
		if err == nil && i == increments/2 {
			err = run.Commit(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mortal returns a store from which a process is cut off after some batches.
// Whether the last one was made it does not hear.
func mortal(db store.Store, life int64) store.Store {
	var left atomic.Int64
	left.Store(20 + 13*life%60)
	return WithFaults(db, func(writes []store.Write) (bool, error) {
		n := left.Load()
		if writes != nil {
			n = left.Add(-1)
		}
		switch {
		case n > 0:
			return false, nil
		case n == 0 && writes != nil:
			return life%2 == 0, store.ErrUnknownOutcome
		}
		return false, errors.New("cut off from the store")
	})
}
