package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// The head knows how many bytes wait, so that a message is accepted or refused
// without a read of those that wait.
func TestHeadKnowsTheBytesThatWait(t *testing.T) {
	db := measure()
	l := testLedger(db)
	body := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	submit := func(id string, bytes, limit int) (*Head, error) {
		s := submissionOf(id, l)
		s.Message.Body, s.MaxQueueBytes = body(bytes), limit
		h, _, _, err := l.Submit(t.Context(), s)
		return h, err
	}
	check := func(what string, want int) *Head {
		h, err := l.ReadHead(t.Context())
		require.NoError(t, err)
		list, err := l.Queued(t.Context(), h)
		require.NoError(t, err)
		sum := 0
		for _, m := range list {
			sum += m.BodyBytes
		}
		require.Equal(t, sum, h.QueueBytes, what)
		require.Equal(t, want, h.QueueBytes, what)
		return h
	}
	holder := func(h *Head) Holder {
		return Holder{LeaseID: h.Run.LeaseID, MessageID: h.Run.Message.ID, At: h.Position()}
	}

	_, err := submit("0", 5000, 1000)
	require.NoError(t, err, "a message that begins at once does not wait")
	check("a run", 0)
	for i, n := range []int{300, 400, 300} {
		_, err := submit(fmt.Sprint(i+1), n, 1000)
		require.NoError(t, err)
	}
	check("as many as there may be", 1000)
	_, err = submit("4", 3, 1000)
	require.ErrorIs(t, err, work.ErrQueueFull)
	require.ErrorContains(t, err, "1000 bytes wait, and with 3 more there would be more than 1000")
	_, err = submit("4", 1001, 1000)
	require.ErrorIs(t, err, work.ErrQueueFull)
	_, _, _, err = l.Submit(t.Context(), Submission{
		Message: Message{ID: "ticket", Ticket: true}, Busy: work.BusyEnqueue, MaxQueue: 9, MaxQueueBytes: 1000, Lease: l.NewLease(),
	})
	require.NoError(t, err, "a ticket has no bytes")
	_, err = l.Discard(t.Context(), "2")
	require.NoError(t, err)
	require.NoError(t, l.Compact(t.Context(), true))
	h := check("one discarded", 600)
	h, _, err = l.Fail(t.Context(), holder(h), "broken", l.NewLease())
	require.NoError(t, err)
	require.Equal(t, "1", h.Run.Message.ID)
	check("the next one begun", 300)
	_, err = l.Retry(t.Context(), "0", l.NewLease())
	require.NoError(t, err)
	h = check("a dead letter tried again", 5300)
	_, err = submit("4", 3, 1000)
	require.ErrorIs(t, err, work.ErrQueueFull, "the operator's message counts too")
	h, _, err = l.Finish(t.Context(), holder(h), Change{}, "", l.NewLease(), nil)
	require.NoError(t, err)
	require.Equal(t, "3", h.Run.Message.ID)
	check("the next one begun", 5000)
	_, _, err = l.Reset(t.Context())
	require.NoError(t, err)
	check("reset", 0)
	_, err = submit("5", 10, 1000)
	require.NoError(t, err)
	_, err = submit("6", 10, 1000)
	require.NoError(t, err)
	require.Less(t, db.headBytes, 9<<7)
}

// Messages are refused without a read, however many wait.
func TestFullQueueIsNotRead(t *testing.T) {
	db := measure()
	l := testLedger(db)
	const n = 500
	var last Submission
	for i := range n {
		last = submissionOf(fmt.Sprint(i), l)
		_, _, _, err := l.Submit(t.Context(), last)
		require.NoError(t, err)
	}
	h, err := l.ReadHead(t.Context())
	require.NoError(t, err)
	last.Message.ID, last.MaxQueueBytes = "another", h.QueueBytes
	before := db.gets
	_, _, _, err = l.Submit(t.Context(), last)
	require.ErrorIs(t, err, work.ErrQueueFull)
	require.LessOrEqual(t, db.gets-before, 1, "the head")
}

// A goroutine that still reads an older head finds the messages that waited
// then, although another one has looked at a newer head.
func TestOlderHeadsKnowTheirQueue(t *testing.T) {
	l := testLedger(store.NewMemory())
	for i := range 10 {
		_, _, _, err := l.Submit(t.Context(), submissionOf(fmt.Sprint(i), l))
		require.NoError(t, err)
	}
	older, err := l.ReadHead(t.Context())
	require.NoError(t, err)
	newer := older
	for newer.Run.Message.ID != "2" { // the second of the first list
		at := Holder{LeaseID: newer.Run.LeaseID, MessageID: newer.Run.Message.ID, At: newer.Position()}
		newer, _, err = l.Finish(t.Context(), at, Change{}, "", l.NewLease(), nil)
		require.NoError(t, err)
	}
	l.DropCaches()
	for _, want := range []struct {
		head  *Head
		id    string
		place string
	}{
		{newer, "3", PlaceQueued},
		{newer, "1", PlaceEnded},
		{older, "2", PlaceQueued},
		{newer, "3", PlaceQueued},
		{older, "10", PlaceNone},
	} {
		f, err := l.Fate(t.Context(), want.head, want.id)
		require.NoError(t, err)
		require.Equal(t, want.place, f.Place, want.id)
	}
}
