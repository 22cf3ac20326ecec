package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// A Manager without Live leaves the text of the holder before, which is not that
// of its run.
func TestLiveOfAnotherHolder(t *testing.T) {
	db := store.NewMemory()
	l, other := New(db, "ann", headPrefix+"ann", Options{TTL: time.Second, Live: true}), New(db, "ann", headPrefix+"ann", Options{TTL: time.Second})
	lease := l.NewLease().HeldBy("a")
	h, _, _, err := l.Submit(t.Context(), Submission{Message: Message{ID: "1", Body: []byte(`{}`)}, Lease: lease})
	require.NoError(t, err)
	require.NoError(t, l.NewLiveWriter(lease.ID, 0).Write(t.Context(), Live{Message: 2, Text: "Hello"}))
	for range 2 {
		h, _, err = other.TakeOver(t.Context(), Contender{Observed: h.LeaseState(), MaxAttempts: 9, Lease: l.NewLease().HeldBy("b")})
		require.NoError(t, err)
		_, ok, err := l.Live(t.Context(), h)
		require.NoError(t, err)
		require.False(t, ok)
	}
	_, err = other.ReadHead(t.Context())
	require.NoError(t, err)
}

// The text of a run goes with it. A holder that was paused cannot bring one back,
// whatever has happened, and whether it has written before or not.
func TestLiveGoesWithTheRun(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, l *Ledger, by Holder){
		"finish": func(t *testing.T, l *Ledger, by Holder) {
			_, _, err := l.Finish(t.Context(), by, Change{}, "", Lease{}, nil)
			require.NoError(t, err)
		},
		"finish, and the next run": func(t *testing.T, l *Ledger, by Holder) {
			_, _, _, err := l.Submit(t.Context(), Submission{Message: Message{ID: "2", Body: []byte(`{}`)}, Lease: l.NewLease(), Busy: work.BusyEnqueue, MaxQueue: 9, MaxQueueBytes: 99})
			require.NoError(t, err)
			_, _, err = l.Finish(t.Context(), by, Change{}, "", l.NewLease().HeldBy("b"), nil)
			require.NoError(t, err)
		},
		"release": func(t *testing.T, l *Ledger, by Holder) {
			_, err := l.Release(t.Context(), by)
			require.NoError(t, err)
		},
		"another attempt": func(t *testing.T, l *Ledger, by Holder) {
			_, err := l.Again(t.Context(), by, 3)
			require.NoError(t, err)
		},
		"takeover": func(t *testing.T, l *Ledger, by Holder) {
			h, err := l.ReadHead(t.Context())
			require.NoError(t, err)
			_, _, err = l.TakeOver(t.Context(), Contender{Observed: h.LeaseState(), MaxAttempts: 3, Lease: l.NewLease().HeldBy("b")})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			l := New(db, "ann", headPrefix+"ann", Options{TTL: time.Second, Live: true})
			lease := l.NewLease().HeldBy("a")
			h, _, _, err := l.Submit(t.Context(), Submission{Message: Message{ID: "1", Body: []byte(`{}`)}, Lease: lease})
			require.NoError(t, err)
			_, ok, err := l.Live(t.Context(), h)
			require.NoError(t, err)
			require.False(t, ok)
			first, paused := l.NewLiveWriter(lease.ID, 0), l.NewLiveWriter(lease.ID, 0)
			require.NoError(t, first.Write(t.Context(), Live{Message: 2, Text: "Hel"}))
			require.NoError(t, first.Write(t.Context(), Live{Message: 2, Text: "Hello"}))
			live, ok, err := l.Live(t.Context(), h)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, Live{LeaseID: lease.ID, Message: 2, Text: "Hello"}, live)
			require.ErrorIs(t, l.NewLiveWriter("other", 0).Write(t.Context(), live), work.ErrFenced)

			change(t, l, Holder{LeaseID: lease.ID, MessageID: "1", At: h.Position()})
			for _, w := range []*LiveWriter{first, paused, l.NewLiveWriter(lease.ID, 0)} {
				require.ErrorIs(t, w.Write(t.Context(), Live{Text: "late"}), work.ErrFenced)
			}
			if h, err = l.ReadHead(t.Context()); h.Run != nil {
				require.NoError(t, err)
				_, ok, err = l.Live(t.Context(), h)
				require.NoError(t, err)
				require.False(t, ok)
			}
			for e, err := range db.List(t.Context(), "", "", true) {
				require.NoError(t, err)
				require.NotContains(t, string(e.Value), "Hello", e.Key)
			}
		})
	}
}
