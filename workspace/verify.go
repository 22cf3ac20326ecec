package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
)

// Report is what Verify has found in order.
type Report struct {
	Version uint64   // of the content
	Oldest  uint64   // of the snapshot, from which on the records are held
	Records int      // after the snapshot
	Blobs   int      // to which the head refers
	Bytes   int      // of the head and these blobs, as they were before they were sealed
	Garbage int      // blobs to which the head does not refer; they are harmless
	Keys    []string // the ids of the keys with which it is sealed, sorted
}

// Verify reads everything that a workspace consists of and checks that it is what
// was written: each record by the chain of hashes that leads from the snapshot to
// the head, and each blob by the hash that refers to it. A record or blob that was
// edited, removed, moved, inserted, cut or swapped is ErrCorrupt, and the error names
// the key.
//
// The head itself vouches for all else. Without keys a checksum guards it, which
// finds damage but not an edit by somebody who makes the checksum anew; with keys
// it cannot be made without them. That the whole workspace is an older one, put back
// with its blobs, shows only if this Manager has seen a newer one, or by
// Options.Anchor.
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
		data, err := h.encode()
		if err != nil {
			return err
		}
		report = Report{Version: h.Version, Oldest: h.snapshotPosition().Version, Bytes: len(data)}
		seen := map[string]bool{}
		check := func(r blobRef) error {
			data, err := l.fetchBlob(ctx, r)
			if err == nil && seen[r.Name] {
				err = corrupt(l.blobKey(r.Name), "is there twice")
			}
			seen[r.Name] = true
			report.Blobs++
			report.Bytes += len(data)
			return err
		}
		for _, r := range h.blobRefs() {
			if r.To == 0 { // records come below
				if err := check(r); err != nil {
					return err
				}
			}
		}
		for r, err := range l.walkSegments(ctx, h.Segments, 0) {
			if err == nil {
				err = check(r)
			}
			if err != nil {
				return err
			}
		}
		doc, err := l.readSnapshot(ctx, h)
		if err != nil {
			return err
		}
		for r, err := range l.records(ctx, h, h.snapshotPosition()) {
			if err == nil {
				err = doc.Apply(r.Effects)
			}
			if err != nil {
				return err
			}
			report.Records++
		}
		if _, err := newLiveContent(userID, m.opts.Schema, doc, h.position()); err != nil {
			return err
		}
		if err := (&View{}).addMessages(ctx, l, h); err != nil {
			return err
		}
		return l.surveyBlobs(ctx, seen, &report)
	})
	return report, err
}

// survey looks at the values as they are stored.
func (l *ledger) surveyBlobs(ctx context.Context, live map[string]bool, report *Report) error {
	keys := map[string]bool{}
	note := func(e store.Entry) {
		if _, _, h := cutSealHeader(e.Value); h.Sealed {
			keys[h.Key] = true
		}
	}
	e, err := l.db.Get(ctx, l.key)
	if err == nil {
		note(e)
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	for e, err := range l.db.Scan(ctx, l.blobKey(""), "") {
		switch {
		case err != nil:
			return err
		case live[e.Key[len(l.blobKey("")):]]:
			note(e)
		default:
			report.Garbage++
		}
	}
	report.Keys = slices.Sorted(maps.Keys(keys))
	return nil
}

// masked returns a record in which the values of secrets are masked, and those of
// fields that the schema does not have, since they may be.
func (m *Manager) maskRecord(r Record) (Record, error) {
	open, secret := map[string]bool{}, map[string]bool{}
	for _, f := range state.New(m.opts.Schema).Fields() {
		open[f.Name], secret[f.Name] = !f.Secret, f.Secret
	}
	for i := range r.Effects {
		e := &r.Effects[i]
		switch {
		case e.Value == "":
		case e.Part == document.PartField && !open[e.Field], e.Part == document.PartKey && secret[e.Field]:
			e.Value = state.JSONText(masked)
		case e.Part == document.PartMemory:
			entry, _, err := decodeEntry([]byte(e.Value))
			if err != nil {
				return r, fmt.Errorf("%w: record %d: memory: %w", ErrCorrupt, r.Version, err)
			}
			if e.Value, err = state.JSONOf(entry); err != nil { // a MemoryEntry masks itself
				return r, err
			}
		}
	}
	return r, nil
}
