package ledger

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
)

// Report is the result of Verify.
type Report struct {
	Version uint64   // of the content
	Oldest  uint64   // the oldest version whose content is held
	Records int      // after that version
	Blobs   int      // to which the head refers
	Bytes   int      // of the head and these blobs, before they were sealed
	Keys    []string // the ids of the keys with which the values are sealed, sorted
}

// Verify reads all data of the workspace and checks that it is authentic. It
// calls check with each head that it reads and with the content at that head.
func (l *Ledger) Verify(ctx context.Context, check func(*Head, *document.Document) error) (Report, error) {
	var report Report
	_, err := l.ReadStable(ctx, func(h *Head) error {
		v := verification{Ledger: l, head: h, live: map[string]bool{}}
		v.report.Version, v.report.Oldest = h.Version, h.Oldest()
		err := v.checkBlobs(ctx)
		if err == nil {
			err = v.checkContent(ctx, check)
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
	*Ledger
	head   *Head
	live   map[string]bool // the names of the blobs to which the head refers
	report Report
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
	var snapshots []*snapshot
	for i := range segments {
		snapshots = append(snapshots, &segments[i].Snapshot)
	}
	if v.head.Snapshot != nil {
		snapshots = append(snapshots, v.head.Snapshot)
	}
	doc, at := document.New(), Position{}
	// begin goes on with the next snapshot, if it is at this position.
	begin := func() error {
		if len(snapshots) == 0 || snapshots[0].Version > at.Version {
			return nil
		}
		if snapshots[0].Position != at {
			return v.errBrokenChain()
		}
		doc, err = v.readSnapshot(ctx, snapshots[0])
		snapshots = snapshots[1:]
		return err
	}
	if len(snapshots) > 0 {
		at = snapshots[0].Position
	}
	if err := begin(); err != nil {
		return err
	}
	for r, err := range v.RecordsBetween(ctx, v.head, at.Version, v.head.Version) {
		if err == nil {
			err = doc.ApplyRecord(r.Effects, r.origin())
		}
		if err != nil {
			return err
		}
		v.report.Records++
		at = Position{r.Version, r.Chain}
		if err := begin(); err != nil {
			return err
		}
	}
	return check(v.head, doc)
}

// survey collects the keys with which values are sealed.
func (v *verification) survey(ctx context.Context) error {
	keys := map[string]bool{}
	note := func(e store.Entry) {
		if _, _, h := cutSealHeader(e.Value); h.Sealed {
			keys[h.Key] = true
		}
	}
	e, err := store.Get(ctx, v.db, v.key)
	if err == nil {
		note(e)
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	for e, err := range v.db.List(ctx, v.blobKey(""), "", true) {
		switch {
		case err != nil:
			return err
		default:
			note(e)
		}
	}
	v.report.Keys = slices.Sorted(maps.Keys(keys))
	return nil
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
		for _, name := range []string{h.Endings, h.Outcomes, h.DeadLetters.Blob} {
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
