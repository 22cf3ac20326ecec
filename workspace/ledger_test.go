package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
)

// lateStore delays one batch: the sender gets an unknown outcome, and the batch
// takes effect when a blob is read the next time.
type lateStore struct {
	*store.Memory
	armed bool
	late  []store.Write
}

func (s *lateStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if s.armed {
		s.armed, s.late = false, writes
		return nil, store.ErrUnknownOutcome
	}
	return s.Memory.Batch(ctx, writes)
}

func (s *lateStore) Get(ctx context.Context, key string) (store.Entry, error) {
	if s.late != nil && strings.Contains(key, blobInfix) {
		late := s.late
		s.late = nil
		if _, err := s.Memory.Batch(ctx, late); err != nil {
			return store.Entry{}, err
		}
	}
	return s.Memory.Get(ctx, key)
}

func testLedger(db store.Store) *ledger {
	l := newLedger(db, "ann", headPrefix+"ann", nil)
	l.ttl, l.minHistory = time.Second, 0
	l.pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return l
}

func offerOf(id string, l *ledger) submission {
	msg := Message{ID: id, Content: state.UserText("text of " + id)}
	data, err := msg.encode()
	if err != nil {
		panic(err)
	}
	return submission{message: pendingMessage{ID: id, At: began}, body: data, maxQueue: 100, lease: l.newLease()}
}

// A reset that takes effect while it is tried again returns the dropped
// messages.
func TestLateReset(t *testing.T) {
	db := &lateStore{Memory: store.NewMemory()}
	l := testLedger(db)
	for i := range 10 {
		h, _, err := l.readPresent(t.Context())
		require.NoError(t, err)
		text := state.JSONText(strings.Repeat("x", 2*maxTailBytes))
		_, err = l.update(t.Context(), h.position(), change{effects: []state.Effect{{Part: document.PartKey, Field: fmt.Sprint(i), Kind: state.EffectSet, Value: text}}})
		require.NoError(t, err)
	}
	_, status, err := l.submit(t.Context(), offerOf("1", l))
	require.NoError(t, err)
	require.Equal(t, StatusStarted, status)
	db.armed = true
	_, ids, err := l.reset(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, ids)
	require.Nil(t, db.late)
}

// The lists of a head drop their oldest elements, together with the blobs of
// messages that are dropped.
func TestRings(t *testing.T) {
	db := store.NewMemory()
	l := testLedger(db)
	id := func(i int) string { return fmt.Sprintf("%03d", i) }
	for i := range 100 {
		o := offerOf(id(i), l)
		h, status, err := l.submit(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, StatusStarted, status)
		switch {
		case i%2 == 0:
			h, _, err = l.finish(t.Context(), holder{h.Run.LeaseID, id(i), h.position()}, change{}, l.newLease())
		default:
			h, err = l.takeOver(t.Context(), leaseStateOf(h), TakeoverResume, 1, l.newLease())
		}
		require.NoError(t, err)
		require.Nil(t, h.Run)
	}
	h, _, err := l.readHead(t.Context())
	require.NoError(t, err)
	require.Len(t, h.Finished, maxFinished)
	require.Len(t, h.DeadLetters, maxDeadLetters)
	require.Len(t, h.Ops, maxOps)
	require.Equal(t, id(99), h.DeadLetters[maxDeadLetters-1].Message.ID)
	for i, want := range map[int]string{99: "dead", 98: finishedHandled, 67: finishedFailed, 0: ""} {
		require.Equal(t, want, h.messageState(id(i)), id(i))
	}
	n := 0
	for _, err := range db.Scan(t.Context(), headPrefix, "") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1+maxDeadLetters, n, "the head, and the bodies of the dead letters")
}

// A holder whose commits were lost, for example by a failover, does not
// continue, although it still has the lease.
func TestLostCommits(t *testing.T) {
	l := testLedger(store.NewMemory())
	h, _, err := l.submit(t.Context(), offerOf("1", l))
	require.NoError(t, err)
	by := holder{h.Run.LeaseID, "1", position{h.Version + 1, "chain of a commit that is gone"}}
	for name, call := range map[string]func() error{
		"commit": func() error { _, err := l.commit(t.Context(), by, change{}); return err },
		"finish": func() error {
			_, _, err := l.finish(t.Context(), by, change{}, l.newLease())
			return err
		},
		"fail": func() error { _, err := l.fail(t.Context(), by, l.newLease()); return err },
	} {
		require.ErrorIs(t, call(), ErrRolledBack, name)
	}
	now, _, err := l.readHead(t.Context())
	require.NoError(t, err)
	require.Equal(t, h, now)
}

// As long as it is unknown whether a write took effect, its caller gets
// store.ErrUnknownOutcome.
func TestUnknownOutcome(t *testing.T) {
	db := &deafStore{Memory: store.NewMemory()}
	l := testLedger(db)
	_, _, err := l.submit(t.Context(), offerOf("1", l))
	require.NoError(t, err)
	db.deaf = true
	_, err = l.commitHead(t.Context(), func(d *transition) error { d.Epoch++; return nil })
	require.ErrorIs(t, err, store.ErrUnknownOutcome)

	ctx, cancel := context.WithCancel(t.Context())
	l.pause = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	_, err = l.commitHead(ctx, func(d *transition) error { d.Epoch++; return nil })
	require.ErrorIs(t, err, store.ErrUnknownOutcome, "an attempt may still be made")
	require.ErrorIs(t, err, context.Canceled)
	db.deaf = false
	_, err = l.commitHead(ctx, func(d *transition) error { d.Epoch++; return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.Is(err, store.ErrUnknownOutcome), "no attempt was begun")
}

// deafStore neither makes writes nor answers them.
type deafStore struct {
	*store.Memory
	deaf bool
}

func (s *deafStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if s.deaf {
		return nil, store.ErrUnknownOutcome
	}
	return s.Memory.Batch(ctx, writes)
}
