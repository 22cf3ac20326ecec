package processes

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

var (
	sharedSpent  = &state.Field[int]{Name: "spent", Handler: state.Sum[int](), Shared: true}
	sharedTopics = &state.Field[[]string]{Name: "topics", Handler: state.Union[[]string](), Shared: true}
	sharedVisits = &state.Field[int]{Name: "visits", Shared: true}
	sharedSchema = state.MustSchema(sharedSpent, sharedTopics, sharedVisits)
)

// Eight threads of a user make a hundred increments each, by Sum, Union and
// Update, while the Managers that handle them are cut off from the store again and
// again, with the last write made or not. None is lost, and none is made twice.
func TestThreadsShareFields(t *testing.T) {
	const threads, messages, increments = 8, 25, 4
	onStores(t, func(t *testing.T, fresh func(t testing.TB) store.Store) {
		db, ctx := fresh(t), t.Context()
		work := func(ctx context.Context, run *workspace.Run) error {
			for i := range increments {
				topic := fmt.Sprint(run.UserID(), " ", run.Message().ID, " ", i)
				if slices.Contains(sharedTopics.Or(run.State(), nil), topic) { // committed by a Manager that was cut off
					continue
				}
				err := errors.Join(
					sharedSpent.Set(run.State(), 1), sharedTopics.Set(run.State(), []string{topic}),
					sharedVisits.Update(run.State(), func(n int) (int, error) { return n + 1, nil }),
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
		var lives atomic.Int64
		begin := func() *workspace.Manager {
			left := &atomic.Int64{}
			left.Store(20 + 13*lives.Add(1)%60)
			m, err := workspace.Open(ctx, &mortal{db, left}, &workspace.Options{
				Schema: sharedSchema, Run: work, TTL: killTTL, StoreTimeout: 2 * killTTL, Attempts: 10_000,
			})
			require.NoError(t, err)
			return m
		}
		var wg sync.WaitGroup
		for i := range threads {
			wg.Go(func() {
				thread := workspace.Thread("ann", fmt.Sprint(i))
				m := begin()
				defer func() { _ = m.Close() }()
				for n := range messages {
					msg := workspace.Message{ID: fmt.Sprint(n), Content: state.UserText("Count.")}
					for handled := false; !handled; {
						short, cancel := context.WithTimeout(ctx, 10*killTTL)
						_, err := m.Handle(short, thread, msg)
						if err == nil { // it may be one that is under way
							_, err = m.Await(short, thread, msg.ID)
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
		m, err := workspace.Open(ctx, db, &workspace.Options{Schema: sharedSchema})
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		for i := range threads {
			v, err := m.View(ctx, workspace.Thread("ann", fmt.Sprint(i)))
			require.NoError(t, err)
			require.Nil(t, v.Run)
			require.Empty(t, v.DeadLetters)
		}
		v, err := m.View(ctx, workspace.Shared("ann"))
		require.NoError(t, err)
		require.Equal(t, threads*messages*increments, sharedSpent.Or(v.State(), 0))
		require.Len(t, sharedTopics.Or(v.State(), nil), threads*messages*increments)
		require.Equal(t, threads*messages*increments, sharedVisits.Or(v.State(), 0))
		_, err = m.Verify(ctx, workspace.Shared("ann"))
		require.NoError(t, err)
		t.Logf("%d lives", lives.Load())
		require.Greater(t, lives.Load(), int64(2*threads))
	})
}

// mortal is a store of which a process is cut off after some batches. Of the last
// one it does not hear.
type mortal struct {
	store.Store
	left *atomic.Int64
}

var errCutOff = errors.New("cut off from the store")

func (m *mortal) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	switch left := m.left.Add(-1); {
	case left < 0:
		return nil, errCutOff
	case left == 0:
		if time.Now().UnixNano()%2 == 0 { // it may have been made
			_, _ = m.Store.Batch(context.WithoutCancel(ctx), writes)
		}
		return nil, fmt.Errorf("%w: %w", errCutOff, store.ErrUnknownOutcome)
	}
	return m.Store.Batch(ctx, writes)
}

func (m *mortal) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	if m.left.Load() <= 0 {
		return nil, errCutOff
	}
	return m.Store.Get(ctx, keys...)
}
