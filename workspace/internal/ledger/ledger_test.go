package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

func testLedger(db store.Store) *Ledger {
	l := New(db, "ann", headPrefix+"ann", Options{TTL: time.Second})
	l.minHistory = 0
	l.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return l
}

func submissionOf(id string, l *Ledger) Submission {
	body := []byte(`"` + strings.Repeat("text of "+id+" ", 50) + `"`)
	return Submission{Message: Message{ID: id, At: began, Body: body}, Busy: work.BusyEnqueue, MaxQueue: 100_000, Lease: l.NewLease()}
}

// measured is a store with what was read and written.
type measured struct {
	*fakestore.Store
	gets, bytes, headBytes int
}

func measure() *measured {
	m := &measured{}
	m.Store = fakestore.New(store.NewMemory(), func(_ context.Context, c fakestore.Call, do func() error) error {
		if c.Writes == nil {
			m.gets++
		}
		for _, w := range c.Writes {
			m.bytes += len(w.Value)
			if !strings.HasPrefix(w.Key, blobPrefix) {
				m.headBytes = max(m.headBytes, len(w.Value))
			}
		}
		return do()
	})
	return m
}

// A reset that takes effect while it is tried again returns the dropped
// messages.
func TestLateReset(t *testing.T) {
	// Once armed, the store delays one batch: the sender gets an unknown outcome,
	// and the batch takes effect when a blob is read the next time.
	memory := store.NewMemory()
	var armed bool
	var late []store.Write
	var l *Ledger
	db := fakestore.New(memory, func(ctx context.Context, c fakestore.Call, do func() error) error {
		switch {
		case armed && c.Writes != nil:
			armed, late = false, c.Writes
			l.DropCaches()
			return store.ErrUnknownOutcome
		case late != nil && c.Writes == nil && strings.HasPrefix(c.Keys[0], blobPrefix):
			writes := late
			late = nil
			if _, err := memory.Batch(ctx, writes); err != nil {
				return err
			}
		}
		return do()
	})
	l = testLedger(db)
	for i := range 10 {
		h, _, err := l.ReadPresent(t.Context())
		require.NoError(t, err)
		text := state.JSONText(strings.Repeat("x", 8<<10))
		_, err = l.Update(t.Context(), KindUpdate, h.Position(), Change{Effects: []state.Effect{{Part: document.PartKey, Field: fmt.Sprint(i), Kind: state.EffectSet, Value: text}}}, nil)
		require.NoError(t, err)
	}
	_, status, _, err := l.Submit(t.Context(), submissionOf("1", l))
	require.NoError(t, err)
	require.Equal(t, work.StatusStarted, status)
	armed = true
	_, ids, err := l.Reset(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, ids)
	require.Nil(t, late)
}

// A workspace forgets the oldest outcomes and dead letters, and nothing is left
// of them.
func TestOutcomes(t *testing.T) {
	db := store.NewMemory()
	l := testLedger(db)
	id := func(i int) string { return fmt.Sprintf("%03d", i) }
	for i := range 300 {
		h, status, _, err := l.Submit(t.Context(), submissionOf(id(i), l))
		require.NoError(t, err)
		require.Equal(t, work.StatusStarted, status)
		by := Holder{LeaseID: h.Run.LeaseID, MessageID: id(i), At: h.Position()}
		if i%2 == 0 {
			h, _, err = l.Finish(t.Context(), by, Change{}, "reply to "+id(i), l.NewLease(), nil)
		} else {
			h, _, err = l.Fail(t.Context(), by, "broken "+id(i), l.NewLease())
		}
		require.NoError(t, err)
		require.Nil(t, h.Run)
	}
	require.NoError(t, l.Compact(t.Context(), true))
	h, err := l.ReadHead(t.Context())
	require.NoError(t, err)
	fresh := testLedger(db)
	for i := range 300 {
		f, err := fresh.Fate(t.Context(), h, id(i))
		require.NoError(t, err)
		switch {
		case i%2 == 1 && i >= 300-2*maxDeadLetters:
			require.Equal(t, PlaceDead, f.Place, i)
			require.Equal(t, "broken "+id(i), f.Reason)
		case i%2 == 0 && i > 300-maxOutcomes: // half of the outcomes are of dead letters that were dropped
			require.Equal(t, PlaceEnded, f.Place, i)
			require.Equal(t, work.EndingFinished, f.Ending)
			require.Equal(t, "reply to "+id(i), f.Reply)
			require.NotEmpty(t, f.RunID)
		case i < 100:
			require.Equal(t, PlaceNone, f.Place, i)
		}
	}
	n := 0
	for _, err := range db.List(t.Context(), "", "", false) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1+1+1+maxDeadLetters+1+1, n, "the head, its place among those that wait, outcomes, dead letters with their list, and a snapshot")
}

// maxHead is the maximum length of a head with 10 000 messages in the queue and
// hundreds of records.
const maxHead = 15 << 7

// The head stays small and writes stay cheap, whatever waits.
func TestLongQueue(t *testing.T) {
	db := measure()
	l := testLedger(db)
	const n = 10_000
	for i := range n {
		_, _, _, err := l.Submit(t.Context(), submissionOf(fmt.Sprint(i), l))
		require.NoError(t, err)
	}
	require.Less(t, db.headBytes, maxHead)
	require.Less(t, db.bytes/n, 5<<9, "bytes written for a message")
	_, status, _, err := l.Submit(t.Context(), submissionOf("5000", l))
	require.NoError(t, err)
	require.Equal(t, work.StatusDuplicate, status)
	h, err := l.ReadHead(t.Context())
	require.NoError(t, err)
	require.Equal(t, n-1, h.Waiting())
	l = testLedger(db) // with empty caches
	for i := range n {
		require.Equal(t, fmt.Sprint(i), h.Run.Message.ID)
		h, _, err = l.Finish(t.Context(), Holder{LeaseID: h.Run.LeaseID, MessageID: h.Run.Message.ID, At: h.Position()}, Change{}, "", l.NewLease(), nil)
		require.NoError(t, err)
		if i%500 == 0 {
			require.NoError(t, l.Compact(t.Context(), false))
		}
	}
	require.Nil(t, h.Run)
	require.Less(t, db.headBytes, maxHead)
	require.Less(t, db.gets/n, 7, "reads for a message")
}

// A holder whose commits were lost, for example by a failover, does not
// continue, although it still has the lease.
func TestLostCommits(t *testing.T) {
	l := testLedger(store.NewMemory())
	h, _, _, err := l.Submit(t.Context(), submissionOf("1", l))
	require.NoError(t, err)
	by := Holder{LeaseID: h.Run.LeaseID, MessageID: "1", At: Position{h.Version + 1, "chain of a commit that is gone"}}
	for name, call := range map[string]func() error{
		"commit": func() error { _, err := l.Commit(t.Context(), by, Change{}, nil); return err },
		"finish": func() error {
			_, _, err := l.Finish(t.Context(), by, Change{}, "", l.NewLease(), nil)
			return err
		},
		"fail": func() error { _, _, err := l.Fail(t.Context(), by, "broken", l.NewLease()); return err },
	} {
		require.ErrorIs(t, call(), work.ErrRolledBack, name)
	}
	now, _, err := l.readHead(t.Context())
	require.NoError(t, err)
	require.Equal(t, h, now)
}

// As long as it is unknown whether a write took effect, its caller gets
// store.ErrUnknownOutcome.
func TestUnknownOutcome(t *testing.T) {
	deaf := false // it neither makes writes nor answers them
	db := fakestore.New(store.NewMemory(), func(_ context.Context, c fakestore.Call, do func() error) error {
		if deaf && c.Writes != nil {
			return store.ErrUnknownOutcome
		}
		return do()
	})
	l := testLedger(db)
	_, _, _, err := l.Submit(t.Context(), submissionOf("1", l))
	require.NoError(t, err)
	deaf = true
	_, err = l.commitHead(t.Context(), func(d *transition) error { d.Token++; return nil })
	require.ErrorIs(t, err, store.ErrUnknownOutcome)

	ctx, cancel := context.WithCancel(t.Context())
	l.pause = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	_, err = l.commitHead(ctx, func(d *transition) error { d.Token++; return nil })
	require.ErrorIs(t, err, store.ErrUnknownOutcome, "an attempt may still be made")
	require.ErrorIs(t, err, context.Canceled)
	deaf = false
	_, err = l.commitHead(ctx, func(d *transition) error { d.Token++; return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.Is(err, store.ErrUnknownOutcome), "no attempt was begun")
}
