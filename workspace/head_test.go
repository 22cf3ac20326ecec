package workspace

import (
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// someHead returns a head in which all members are set.
func someHead(t *testing.T) *head {
	r := Record{Version: 7, Kind: KindStep, Time: began, RunID: "w", Lease: "r", Message: "m", Effects: []state.Effect{
		{Part: "key", Field: "color", Kind: "set", Value: `"<red>"`},
	}}
	e, err := r.chainAfter("chain")
	require.NoError(t, err)
	return &head{
		Format: 1, Nonce: "n", Epoch: 1, Seq: 12, Token: 3, Version: 7, Chain: e.chain,
		Run: &activeRun{
			LeaseID: "r", RunID: "w", Token: 3, TTL: 30_000, Renewals: 4, Attempt: 1, Began: began,
			Message: pendingMessage{ID: "m", At: began, Body: []byte(`{"id":"m","content":{}}`)}, Base: position{6, "chain"},
		},
		Queue:       []pendingMessage{{ID: "q", At: began, BodyBlob: &blobRef{Name: "b", Hash: "h", Bytes: 9}}},
		Finished:    []finishedMessage{{ID: "d", Outcome: finishedHandled}},
		DeadLetters: []deadLetter{{Message: pendingMessage{ID: "x", At: began, Body: []byte(`{}`)}, Attempt: 3}},
		Ops:         []appliedOp{{"o", 12}},
		Snapshot:    &snapshot{position: position{6, "chain"}, Parts: []blobRef{{Name: "p", Hash: "h", Bytes: 3}}},
		Segments:    []blobRef{{Name: "s", Hash: "h", Bytes: 5, Level: 1, From: 1, To: 6}},
		Tail:        []storedRecord{e},
		Purge:       5,
	}
}

func TestHeadRoundTrip(t *testing.T) {
	h := someHead(t)
	data, err := h.encode()
	require.NoError(t, err)
	again, err := decodeHead("k", data)
	require.NoError(t, err)
	require.Equal(t, h, again)
}

// Members that a newer program of the same format has added stay.
func TestHeadKeepsUnknownMembers(t *testing.T) {
	text := `{"format":1,"nonce":"n","epoch":0,"seq":2,"token":1,"version":0,"chain":"",` +
		`"run":{"lease_id":"r","run_id":"w","token":1,"ttl_ms":1000,"renewals":0,"attempt":0,"message":{"id":"m","at":"2026-01-02T03:04:05Z","body":{"id":"m","new":[1.0]},"a":1},` +
		`"base":{"version":0,"chain":""},"began":"2026-01-02T03:04:05Z","b":{"c":null}},` +
		`"queue":[{"id":"q","at":"2026-01-02T03:04:05Z","body_blob":{"name":"b","sha256":"h","bytes":9,"d":1e400},"SEQ":7}],` +
		`"finished":[{"id":"d","as":"handled","e":"<&>"}],` +
		`"dead_letters":[{"message":{"id":"x","at":"2026-01-02T03:04:05Z","body":{}},"attempt":3,"f":true}],` +
		`"ops":[{"op":"o","seq":2}],` +
		`"snapshot":{"version":0,"chain":"","parts":[{"name":"p","sha256":"h","bytes":3,"g":[]}],"h":{}},` +
		`"Seq":9007199254740993,"i":0.10}`
	h, err := decodeHead("k", appendHash([]byte(text), "sum", hash([]byte(text))))
	require.NoError(t, err)
	require.EqualValues(t, 2, h.Seq, "members are known by their exact names")
	data, err := h.encode()
	require.NoError(t, err)
	body, _, ok := cutHash(data, "sum")
	require.True(t, ok)
	require.Equal(t, text, string(body))
}

func TestHeadDamage(t *testing.T) {
	data, err := someHead(t).encode()
	require.NoError(t, err)
	for i := range data {
		for bit := range 8 {
			damaged := append([]byte(nil), data...)
			damaged[i] ^= 1 << bit
			_, err := decodeHead("k", damaged)
			require.Error(t, err, "bit %d of byte %d", bit, i)
		}
		_, err := decodeHead("k", data[:i])
		require.ErrorIs(t, err, ErrCorrupt, "cut at %d", i)
	}
	_, err = decodeHead("k", append(data, '0'))
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestHeadFormat(t *testing.T) {
	for text, want := range map[string]error{
		`{"format":2,"whatever":[]}`: ErrNewerFormat,
		`{"format":0}`:               ErrCorrupt,
		`{}`:                         ErrCorrupt,
		`[]`:                         ErrCorrupt,
		``:                           ErrCorrupt,
		`{"format":1}`:               ErrCorrupt, // without a checksum
	} {
		_, err := decodeHead("k", []byte(text))
		require.ErrorIs(t, err, want, text)
		require.ErrorContains(t, err, "k", text)
	}
	for _, text := range []string{`{"format":2}`, `{"format":1,"seq":-1}`, `{"format":1,"format":1}`, `{"format":1,"run":7}`, `{"format":1,"tail":[{"version":1}]}`} {
		_, err := decodeHead("k", appendHash([]byte(text), "sum", hash([]byte(text))))
		require.Error(t, err, text)
	}
}

func TestRecordChain(t *testing.T) {
	var chain string
	var list []storedRecord
	for v := range uint64(3) {
		r := Record{Version: v + 1, Kind: KindUpdate, Time: began}
		e, err := r.chainAfter(chain)
		require.NoError(t, err)
		chain, list = e.chain, append(list, e)
	}
	at := position{}
	for i := range list {
		r, err := list[i].decode("k", at)
		require.NoError(t, err)
		require.EqualValues(t, i+1, r.Version)
		at = list[i].position()
	}
	_, err := list[1].decode("k", position{})
	require.ErrorIs(t, err, ErrCorrupt, "the first is missing")
	_, err = list[1].decode("k", position{1, "another"})
	require.ErrorIs(t, err, ErrCorrupt, "after another")
}
