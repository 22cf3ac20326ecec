package ledger

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// Verify reads all data of the workspace, that of its DataStore and the files of the
// user, and checks that it is authentic. It calls check with each head that it reads and with the
// content at that head.
func (l *Ledger) Verify(ctx context.Context, check func(*Head, *document.Document) error) (work.Report, error) {
	var v verification
	_, err := l.ReadStable(ctx, func(h *Head) error {
		v = verification{Ledger: l, head: h, live: map[string]bool{}, keys: map[string]bool{}}
		v.report.Version, v.report.Oldest = h.Version, h.Oldest()
		err := v.checkBlobs(ctx)
		if err == nil {
			err = v.checkContent(ctx, check)
		}
		if err == nil {
			err = v.survey(ctx)
		}
		return err
	})
	if err == nil {
		v.report.Data, err = NewDataStore(l.db, l.sealer, l.user).verify(ctx, v.keys)
	}
	if user, _ := SplitID(l.user); err == nil {
		v.report.Files, err = NewFileStore(l.db, l.sealer, user).verify(ctx, v.keys)
	}
	v.report.Keys = slices.Sorted(maps.Keys(v.keys))
	return v.report, err
}

// verification is one attempt to verify a workspace.
type verification struct {
	*Ledger
	head   *Head
	live   map[string]bool // the names of the blobs to which the head refers
	keys   map[string]bool // the ids of those with which values are sealed
	report work.Report
}

// checkBlobs checks the hashes of all blobs.
func (v *verification) checkBlobs(ctx context.Context) error {
	v.report.Bytes = len(v.head.encode())
	for name, err := range v.liveBlobs(ctx, v.head) {
		if err == nil {
			err = v.checkBlob(ctx, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) checkBlob(ctx context.Context, name string) error {
	data, err := v.fetchBlob(ctx, name)
	if err != nil {
		return err
	}
	if v.live[name] {
		return corrupt(v.blobKey(name), "two refs to one blob")
	}
	v.live[name] = true
	v.report.Blobs++
	v.report.Bytes += len(data)
	return nil
}

// checkContent checks that the records lead from the oldest snapshot through the
// others to the head, and from each of them to a content, of which the present
// one passes check.
func (v *verification) checkContent(ctx context.Context, check func(*Head, *document.Document) error) error {
	segments, err := v.segments(ctx, v.head)
	if err != nil {
		return err
	}
	snapshots := map[uint64]*snapshot{}
	for i := range segments {
		snapshots[segments[i].Snapshot.Version] = &segments[i].Snapshot
	}
	if v.head.Snapshot != nil {
		snapshots[v.head.Snapshot.Version] = v.head.Snapshot
	}
	at, err := v.oldest(ctx, v.head)
	if err != nil {
		return err
	}
	doc, err := v.readSnapshot(ctx, snapshots[at.Version])
	if err != nil {
		return err
	}
	for r, err := range v.records(ctx, v.head, at, v.head.Version) {
		if err == nil {
			err = doc.ApplyRecord(r.Effects, originOf(r))
		}
		if err != nil {
			return err
		}
		v.report.Records++
		if s := snapshots[r.Version]; s != nil {
			if s.Chain != r.Chain {
				return v.errBrokenChain()
			}
			if doc, err = v.readSnapshot(ctx, s); err != nil {
				return err
			}
		}
	}
	return check(v.head, doc)
}

// survey notes the keys with which the head and the blobs are sealed.
func (v *verification) survey(ctx context.Context) error {
	entries, err := v.db.Get(ctx, v.key)
	if err != nil {
		return err
	}
	noteSealKey(v.keys, entries[0].Value)
	for e, err := range v.db.List(ctx, v.blobKey(""), "", true) {
		if err != nil {
			return err
		}
		noteSealKey(v.keys, e.Value)
	}
	return nil
}

// noteSealKey notes the id of the key with which a value is sealed.
func noteSealKey(keys map[string]bool, value []byte) {
	if _, _, h := cutSealHeader(value); h.Sealed {
		keys[h.Key] = true
	}
}

// liveBlobs yields the names of the blobs to which a head refers, and of those
// to which they refer.
func (c *contentReader) liveBlobs(ctx context.Context, h *Head) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, m := range h.messages() {
			if m.Blob != "" && !yield(m.Blob, nil) {
				return
			}
		}
		for _, name := range []string{h.Endings, h.Outcomes, h.DeadLetters.Blob, h.Notes} {
			if name != "" && !yield(name, nil) {
				return
			}
		}
		dead, err := c.DeadLetters(ctx, h)
		if err != nil {
			yield("", err)
			return
		}
		for _, d := range dead {
			if d.Message.Blob != "" && !yield(d.Message.Blob, nil) {
				return
			}
		}
		for name, err := range c.pastBlobs(ctx, h) {
			if !yield(name, err) || err != nil {
				return
			}
		}
		parts := blobList{}
		if h.Snapshot != nil {
			parts = h.Snapshot.Parts
		}
		for i, list := range []blobList{h.Queue, h.Records, parts} {
			for n, err := range list.all(ctx, c.readLists) {
				names := []string{n.text}
				switch {
				case err != nil || n.level > 0:
				case i == 0:
					names[0], _ = cutQueueEntry(n.text)
				case i == 1:
					names, err = c.recordBlobs(ctx, n.text)
				}
				for _, name := range names {
					if !yield(name, err) || err != nil {
						return
					}
				}
			}
		}
	}
}
