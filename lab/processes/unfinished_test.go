package processes

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A run whose end could not be stored is taken over even if its process lives.
func TestRunNotFinished(t *testing.T) {
	for name, end := range map[string]error{"finish": nil, "fail": errors.New("as it was told")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &refusing{Batcher: store.NewMemory()}
				calls := 0
				m, err := workspace.Open(t.Context(), db, &workspace.Options{Run: func(context.Context, *workspace.Run) error {
					if calls++; calls > 1 {
						return nil
					}
					db.refuses.Store(true)
					return end
				}})
				require.NoError(t, err)
				defer func() { require.NoError(t, m.Close()) }()
				_, err = m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("Hello!")})
				require.ErrorIs(t, err, errRefused)
				db.refuses.Store(false)
				time.Sleep(5 * time.Minute) // in the fake time of the bubble
				v, err := m.View(t.Context(), "ann")
				require.NoError(t, err)
				require.Nil(t, v.Run, "the run is kept alive by nobody who works on it")
				require.Equal(t, 2, calls)
			})
		})
	}
}

// refusing is a store that can refuse all writes.
type refusing struct {
	store.Batcher
	refuses atomic.Bool
}

var errRefused = errors.New("the disk is full")

func (r *refusing) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if r.refuses.Load() {
		return nil, &store.Error{Op: "batch", Err: errRefused}
	}
	return r.Batcher.Batch(ctx, writes)
}
