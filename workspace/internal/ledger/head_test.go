package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/workspace/work"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// someHead returns a head in which all members are set.
func someHead() *Head {
	ops := strings.Repeat("0123456A", 3)
	return &Head{
		Format: 3, User: "ann", Epoch: 1, Seq: 12, Token: 3, Version: 7, Chain: "chain", Updated: began, Deleted: began,
		Run: &Run{
			LeaseID: "r", Holder: "i", RunID: "w", Token: 3, TTL: 30_000, Renewals: 4, Attempt: 1, Began: began, Trace: "t",
			Message: Message{
				ID: "m", At: began, Trace: "u", Body: []byte(`{"id":"m","content":{}}`), Blob: "b", BodyBytes: 4,
				Stands: true, Ticket: true, Join: true,
			},
			Base: Position{6, "chain"}, Answers: 2, Ended: true, Joined: []Joined{{Message{ID: "n", At: began}, 1}},
		},
		Queue: blobList{First: 5, Next: 7, Levels: []string{"a:h,b:h"}}, QueueBytes: 9,
		Ended: "hhhhhhhhhhh5,iiiiiiiiiii6", Endings: "e", Outcomes: "o", Suspended: 1, Expires: 2,
		DeadLetters: deadLetters{Count: 1, Blob: "d"},
		Ops:         ops,
		Snapshot:    &snapshot{Position: Position{5, "chain"}, Parts: blobList{Next: 1, Levels: []string{"p"}}, Bytes: 3},
		Records:     blobList{First: 5, Next: 7, Levels: []string{"r:5,s:6"}},
		RecordBytes: 11,
		Past:        past{Oldest: 2, Bytes: 13, Blob: "q"},
		Purge:       5,
		Kept:        2,
		Title:       "t",
		Name:        "n",
		Notes:       "m",
		Closed:      true,
		Sweeping:    true,
	}
}

// requireAllSet fails for members that are not set: whoever adds one adds it to the
// encoder, and to someHead.
func requireAllSet(t *testing.T, v any) {
	t.Helper()
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		if f := s.Type().Field(i); f.IsExported() {
			require.False(t, s.Field(i).IsZero(), "%T.%s", v, f.Name)
		}
	}
}

func TestHeadRoundTrip(t *testing.T) {
	h := someHead()
	requireAllSet(t, *h)
	requireAllSet(t, *h.Run)
	requireAllSet(t, h.Run.Message)
	data := h.encode()
	again, err := decodeHead("k", "ann", data)
	require.NoError(t, err)
	require.Equal(t, h, again)
	_, err = decodeHead("k", "bob", data)
	require.ErrorIs(t, err, work.ErrCorrupt)
	require.ErrorContains(t, err, "another user")
}

func TestHeadDamage(t *testing.T) {
	data := someHead().encode()
	for i := range data {
		for bit := range 8 {
			damaged := append([]byte(nil), data...)
			damaged[i] ^= 1 << bit
			_, err := decodeHead("k", "ann", damaged)
			require.Error(t, err, "bit %d of byte %d", bit, i)
		}
		_, err := decodeHead("k", "ann", data[:i])
		require.ErrorIs(t, err, work.ErrCorrupt, "cut at %d", i)
	}
	_, err := decodeHead("k", "ann", append(data, '0'))
	require.ErrorIs(t, err, work.ErrCorrupt)
}

func TestHeadFormat(t *testing.T) {
	for text, want := range map[string]error{
		`{"format":4,"whatever":[]}`: work.ErrNewerFormat,
		`{"format":0}`:               work.ErrCorrupt,
		`{}`:                         work.ErrCorrupt,
		`[]`:                         work.ErrCorrupt,
		``:                           work.ErrCorrupt,
		`{"format":3}`:               work.ErrCorrupt, // without a checksum
	} {
		_, err := decodeHead("k", "ann", []byte(text))
		require.ErrorIs(t, err, want, text)
		require.ErrorContains(t, err, "k", text)
	}
	for _, text := range []string{
		`{"format":4}`, `{"format":1}`, `{"format":3,"user":"ann","seq":-1}`, `{"format":3,"user":"ann","format":3}`,
		`{"format":3,"user":"ann","run":7}`, `{"format":3,"user":"ann","version":1}`, `{"format":3,"user":"ann","ops":"1"}`, `{"format":3}`,
		`{"format":3,"user":"ann","past":{"oldest":1,"bytes":1,"blob":"p"}}`,
	} {
		_, err := decodeHead("k", "ann", appendHash([]byte(text), "sum", hash([]byte(text))))
		require.Error(t, err, text)
		require.Equal(t, text != `{"format":4}`, errors.Is(err, work.ErrCorrupt), text)
	}
}

func TestRecordChain(t *testing.T) {
	var chain string
	var list []storedRecord
	for v := range uint64(3) {
		r := work.Record{Version: v + 1, Kind: KindUpdate, Time: began}
		e, err := storedAfter(chain, &r)
		require.NoError(t, err)
		chain, list = e.chain, append(list, e)
	}
	at := Position{}
	for i := range list {
		r, err := list[i].decode("k", at)
		require.NoError(t, err)
		require.EqualValues(t, i+1, r.Version)
		at = list[i].position()
	}
	_, err := list[1].decode("k", Position{})
	require.ErrorIs(t, err, work.ErrCorrupt, "the first is missing")
	_, err = list[1].decode("k", Position{1, "another"})
	require.ErrorIs(t, err, work.ErrCorrupt, "after another")
}

// A head remembers the operations of the latest writes.
func TestHeadOps(t *testing.T) {
	h := &Head{}
	id := func(i int) string { return fmt.Sprintf("%0*d", opIDLen, i) }
	for i := 1; i <= 40; i++ {
		h.sign(id(i) + "A")
		require.EqualValues(t, i, h.Seq)
		require.Equal(t, id(i)+"A", h.nonce())
	}
	for seq := uint64(0); seq <= 45; seq++ {
		known := seq > 40-uint64(maxOps) && seq <= 40
		require.Equal(t, known, h.nonceAt(seq) != "", seq)
		require.Equal(t, known, h.hasOp(id(int(seq))), seq)
		require.Equal(t, known || seq > 40, h.hasOpsSince(seq), seq)
	}
}

// A read that began before this process had seen the newest head may show an older
// one. It may not show one that comes from another head.
func TestAHeadThatForksIsRolledBack(t *testing.T) {
	head := func(epoch, seq uint64, ops string) *Head { return &Head{Epoch: epoch, Seq: seq, Ops: ops} }
	const a, b, c = "aaaaaaaA", "bbbbbbbA", "cccccccA"
	first, second := head(5, 1, a), head(5, 2, a+b)
	for name, row := range map[string]struct {
		read *Head
		want bool
	}{
		"the first":                     {first, true},
		"the second":                    {second, true},
		"another first":                 {head(5, 1, c), false},
		"another first, of a new epoch": {head(6, 1, c), false},
		"an older number, of a new epoch, whose first is not known": {head(6, 1, ""), false},
		"an older epoch": {head(4, 9, c), false},
	} {
		t.Run(name, func(t *testing.T) {
			var s seenHead
			require.True(t, s.note(first, s.floor()))
			before := s.floor()
			require.True(t, s.note(second, before))
			require.Equal(t, row.want, s.note(row.read, before))
			require.Equal(t, second.mark(), s.mark())
		})
	}
}

// What the ledger has written counts as seen, also over what a failover has taken back
// meanwhile: what takes that back in turn is noticed.
func TestAWriteIsSeenAlthoughItForks(t *testing.T) {
	head := func(epoch, seq uint64, ops string) *Head { return &Head{Epoch: epoch, Seq: seq, Ops: ops} }
	var s seenHead
	require.True(t, s.note(head(5, 1, "aaaaaaaA"), s.floor()))
	own := head(7, 1, "bbbbbbbA")
	s.noteWritten(own)
	require.Equal(t, own.mark(), s.mark())
	require.False(t, s.note(head(6, 1<<20, "cccccccA"), s.floor()))
	s.noteWritten(head(7, 0, ""))
	require.Equal(t, own.mark(), s.mark(), "a later one was seen")
}
