package workspace

import (
	"context"
	"maps"
	"slices"

	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Report is the result of Verify.
type Report struct {
	Version uint64   `json:"version"`        // of the content
	Oldest  uint64   `json:"oldest"`         // the oldest version that ViewAt can show
	Records int      `json:"records"`        // after that version
	Blobs   int      `json:"blobs"`          // to which the head refers
	Bytes   int      `json:"bytes"`          // of the head and these blobs, before they were sealed
	Data    int      `json:"data"`           // values of [Manager.Store]
	Keys    []string `json:"keys,omitempty"` // the ids of the keys with which the values are sealed, sorted
}

// Verify reads all data of a workspace, and the values of [Manager.Store], and
// checks that they are authentic: each record by the chain of hashes that leads
// from the oldest snapshot to the head, and each blob by the hash in the ref to it. It
// returns ErrCorrupt, with the key, for a record or blob that was edited,
// removed, moved, inserted, truncated or swapped. Without keys, nothing
// authenticates the values of Store.
//
// The head authenticates everything else. Without keys it has a checksum, which
// finds damage but not an edit that also updates the checksum. With keys it
// cannot be forged without a key. Verify finds that a whole workspace was
// replaced by an older one, with its blobs, only if this Manager has seen a
// newer one.
func (m *Manager) Verify(ctx context.Context, userID string) (Report, error) {
	ctx, op := m.begin(ctx, Operation{Kind: OpVerify, UserID: userID})
	report, err := m.verify(ctx, userID)
	op.Version = report.Version
	op.end(err)
	return report, wrapError("verify", userID, err)
}

func (m *Manager) verify(ctx context.Context, userID string) (Report, error) {
	l, err := m.ledger(userID)
	if err != nil {
		return Report{}, err
	}
	r, err := l.Verify(ctx, func(h *ledger.Head, doc *document.Document) error {
		if _, err := m.content(userID, doc, h.Position(), nil); err != nil {
			return err
		}
		return new(View).addMessages(ctx, l, h)
	})
	report := Report{
		Version: r.Version, Oldest: r.Oldest, Records: r.Records, Blobs: r.Blobs, Bytes: r.Bytes, Keys: r.Keys,
	}
	if err != nil {
		return report, err
	}
	n, keys, err := m.data(userID).Verify(ctx)
	for _, id := range r.Keys {
		keys[id] = true
	}
	report.Data, report.Keys = n, slices.Sorted(maps.Keys(keys))
	return report, err
}
