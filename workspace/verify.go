package workspace

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/agentstate/state/store"
)

// Report is the result of Verify.
type Report struct {
	Version uint64   // of the content
	Oldest  uint64   // of the snapshot, after which the records are held
	Records int      // after the snapshot
	Blobs   int      // to which the head refers
	Bytes   int      // of the head and these blobs, before they were sealed
	Garbage int      // blobs to which the head does not refer; they do no harm
	Keys    []string // the ids of the keys with which the values are sealed, sorted
}

// Verify reads all data of a workspace and checks that it is authentic: each
// record by the chain of hashes that leads from the snapshot to the head, and
// each blob by the hash in the ref to it. It returns ErrCorrupt, with the key,
// for a record or blob that was edited, removed, moved, inserted, truncated or
// swapped.
//
// The head authenticates everything else. Without keys it has a checksum, which
// finds damage but not an edit that also updates the checksum. With keys it
// cannot be forged without a key. Verify finds that a whole workspace was
// replaced by an older one, with its blobs, only if this Manager has seen a
// newer one, or by Options.Anchor.
func (m *Manager) Verify(ctx context.Context, userID string) (Report, error) {
	report, err := m.verify(ctx, userID)
	return report, wrapError("verify", userID, err)
}

func (m *Manager) verify(ctx context.Context, userID string) (Report, error) {
	var report Report
	l, err := m.ledger(userID)
	if err != nil {
		return report, err
	}
	_, err = l.readStable(ctx, func(h *head) error {
		v := verification{ledger: l, head: h, live: map[string]bool{}}
		v.report.Version, v.report.Oldest = h.Version, h.oldest().Version
		err := v.checkBlobs(ctx)
		if err == nil {
			err = m.checkContent(ctx, &v)
		}
		if err == nil {
			err = v.survey(ctx)
		}
		report = v.report
		return err
	})
	return report, err
}

// verification is one attempt to verify a workspace.
type verification struct {
	*ledger
	head   *head
	live   map[string]bool // the names of the blobs to which the head refers
	report Report
}

// checkBlobs checks the hashes of all blobs.
func (v *verification) checkBlobs(ctx context.Context) error {
	data, err := v.head.encode()
	if err != nil {
		return err
	}
	v.report.Bytes = len(data)
	for _, r := range v.head.blobRefs() {
		if r.isSegment() {
			continue // walkSegments yields it
		}
		if err := v.checkBlob(ctx, r); err != nil {
			return err
		}
	}
	for r, err := range v.walkSegments(ctx, v.head.Segments, 0) {
		if err == nil {
			err = v.checkBlob(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) checkBlob(ctx context.Context, r blobRef) error {
	data, err := v.fetchBlob(ctx, r)
	if err != nil {
		return err
	}
	if v.live[r.Name] {
		return corrupt(v.blobKey(r.Name), "two refs to one blob")
	}
	v.live[r.Name] = true
	v.report.Blobs++
	v.report.Bytes += len(data)
	return nil
}

// checkContent checks that the records lead from the snapshot to a content that
// can be used.
func (m *Manager) checkContent(ctx context.Context, v *verification) error {
	doc, err := v.readSnapshot(ctx, v.head)
	if err != nil {
		return err
	}
	for r, err := range v.records(ctx, v.head, v.head.oldest()) {
		if err == nil {
			err = doc.Apply(r.Effects)
		}
		if err != nil {
			return err
		}
		v.report.Records++
	}
	if _, err := newLiveContent(v.user, m.opts.Schema, doc, v.head.position()); err != nil {
		return err
	}
	for _, p := range v.head.pending() {
		if _, err := v.readMessage(ctx, *p); err != nil {
			return err
		}
	}
	return nil
}

// survey counts garbage, and collects the keys with which values are sealed.
func (v *verification) survey(ctx context.Context) error {
	keys := map[string]bool{}
	note := func(e store.Entry) {
		if _, _, h := cutSealHeader(e.Value); h.Sealed {
			keys[h.Key] = true
		}
	}
	e, err := v.db.Get(ctx, v.key)
	if err == nil {
		note(e)
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	for e, err := range v.db.Scan(ctx, v.blobKey(""), "") {
		switch {
		case err != nil:
			return err
		case v.live[e.Key[len(v.blobKey("")):]]:
			note(e)
		default:
			v.report.Garbage++
		}
	}
	v.report.Keys = slices.Sorted(maps.Keys(keys))
	return nil
}
