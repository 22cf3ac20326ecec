package workspace_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// counting counts the reads of a store, and its scans and lists.
type counting struct {
	*store.Memory
	gets, scans atomic.Int64
}

func (c *counting) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	c.scans.Add(1)
	return c.Memory.Scan(ctx, prefix, after)
}

func (c *counting) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	c.scans.Add(1)
	return c.Memory.List(ctx, prefix, after)
}

func (c *counting) Get(ctx context.Context, key string) (store.Entry, error) {
	c.gets.Add(1)
	return c.Memory.Get(ctx, key)
}

func (c *counting) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	c.gets.Add(int64(len(keys)))
	return c.Memory.GetMulti(ctx, keys...)
}

// The check reads nothing that the Manager knows.
func TestCheckOfKnownContentReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &counting{Memory: store.NewMemory()}
		m := open(t, db, workspace.Options{TTL: time.Hour, Run: nothing})
		_, err := m.Handle(t.Context(), "ann", text("0"))
		require.NoError(t, err)
		db.gets.Store(0)
		for i := range 10 {
			_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint("m", i)))
			require.NoError(t, err)
		}
		require.LessOrEqual(t, db.gets.Load(), int64(20), "two heads for each message, and nothing else")
	})
}
