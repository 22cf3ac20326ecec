package workspace

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Records yields the changes of the content of a workspace after a version, the
// oldest first, as RecordsBetween does.
func (m *Manager) Records(ctx context.Context, userID string, after uint64) iter.Seq2[work.Record, error] {
	return m.RecordsBetween(ctx, userID, after, math.MaxUint64)
}

// RecordsBetween yields the changes of the content of a workspace after a
// version and up to another, the oldest first. It reads them as the loop goes on,
// at most 1 024 of them or 1 MiB at once. It yields state.ErrCompacted if there
// are records that are no longer held; that may happen while the loop runs.
//
// The values of secret fields, and of fields that the schema does not have, are
// masked. In all other texts, messages among them, the present secrets of the
// workspace are masked: a former one that a text repeats is not known any more.
func (m *Manager) RecordsBetween(ctx context.Context, userID string, after, to uint64) iter.Seq2[work.Record, error] {
	return func(yield func(work.Record, error) bool) {
		ctx, op := m.begin(ctx, work.Operation{Kind: work.OpRecords, UserID: userID})
		var err error = errNotReturned
		defer func() { op.end(err) }() // also if the loop panics
		if err = m.readRecords(ctx, userID, after, to, func(r work.Record) bool { return yield(r, nil) }); err != nil {
			yield(work.Record{}, wrapError("records", userID, err))
		}
	}
}

// readRecords calls yield until it returns false.
func (m *Manager) readRecords(
	ctx context.Context, userID string, after, to uint64, yield func(work.Record) bool,
) error {
	l, err := m.ledger(userID)
	if err != nil {
		return err
	}
	_, err = l.ReadStable(ctx, func(h *ledger.Head) error { // again, for the rest, if that was compacted
		var redact func(string) string
		for stored, err := range l.RecordsBetween(ctx, h, after, to) {
			if err == nil && redact == nil {
				redact, err = m.presentSecrets(ctx, l, h)
			}
			if err != nil {
				return err
			}
			r := *stored
			r.Effects = withoutMarks(r.Effects)
			if err := m.maskRecord(&r, redact); err != nil {
				return err
			}
			if after = r.Version; !yield(r) {
				return nil
			}
		}
		return nil
	})
	return err
}

// Diff returns the effects that turn the content at one version of a workspace
// into that at another, which may be the earlier one. They edit the stored
// content, as those of a [Record] do, and the secrets of both versions and of
// the present one are masked in them. It returns state.ErrCompacted if one of
// the versions is no longer held.
func (m *Manager) Diff(ctx context.Context, userID string, from, to uint64) ([]state.Effect, error) {
	var effects []state.Effect
	err := m.observe(ctx, "diff", work.Operation{
		Kind: work.OpRecords, UserID: userID,
	}, func(ctx context.Context, l *ledger.Ledger, _ *operation) error {
		_, err := l.ReadStable(ctx, func(h *ledger.Head) (err error) {
			effects, err = m.diff(ctx, l, h, from, to)
			return err
		})
		return err
	})
	return effects, err
}

func (m *Manager) diff(ctx context.Context, l *ledger.Ledger, h *ledger.Head, from, to uint64) ([]state.Effect, error) {
	redact, err := m.presentSecrets(ctx, l, h)
	if err != nil {
		return nil, err
	}
	var docs []*document.Document
	for _, version := range []uint64{from, to} {
		at, doc, err := l.ContentAt(ctx, h, version)
		if err != nil {
			return nil, err
		}
		mask, others := m.secretsOf(l.User(), doc.Clone(), at, nil), redact
		redact = func(text string) string { return mask(others(text)) }
		docs = append(docs, doc)
	}
	effects := withoutMarks(slices.DeleteFunc(docs[0].Revert(docs[1]), document.IsVersion))
	if err := m.maskStored(effects, to, redact); err != nil {
		return nil, err
	}
	return effects, nil
}

// withoutMarks returns effects without those that say which values are secret.
func withoutMarks(effects []state.Effect) []state.Effect {
	isMark := func(e state.Effect) bool { return e.Part == document.PartSecret }
	if !slices.ContainsFunc(effects, isMark) {
		return effects
	}
	return slices.DeleteFunc(slices.Clone(effects), isMark)
}

// presentSecrets returns a function that masks the secrets of the present
// content in texts. If they are not known, it masks everything.
func (m *Manager) presentSecrets(
	ctx context.Context, l *ledger.Ledger, h *ledger.Head,
) (func(string) string, error) {
	doc, err := l.Content(ctx, h, h.Position())
	if err != nil {
		return nil, err
	}
	_, part, err := m.readPart(ctx, l.User())
	if err != nil {
		return nil, err
	}
	return m.secretsOf(l.User(), doc, h.Position(), part), nil
}

// secretsOf is presentSecrets for a content, which it may change, and that of the
// user part.
func (m *Manager) secretsOf(
	id string, doc *document.Document, at ledger.Position, part *document.Document,
) func(string) string {
	c, err := m.content(id, doc, at, part)
	if err != nil {
		return func(string) string { return masked }
	}
	return c.redactor()
}

func (m *Manager) maskRecord(r *work.Record, redact func(string) string) error {
	r.Reason, r.Reply = redact(r.Reason), redact(r.Reply)
	return m.maskStored(r.Effects, r.Version, redact)
}

// maskStored masks the values of secrets, and of fields that the schema does
// not have because they may be secret, in the effects that lead to a version. In
// the other values it masks what redact finds.
func (m *Manager) maskStored(effects []state.Effect, version uint64, redact func(string) string) error {
	open, secret := map[string]bool{}, map[string]bool{}
	for _, f := range state.New(m.schema).Fields() {
		open[f.Name], secret[f.Name] = !f.Secret, f.Secret
	}
	for i := range effects {
		e := &effects[i]
		switch {
		case e.Value == "":
			continue
		case (e.Part == document.PartField || e.Part == document.PartShared) &&
			!open[e.Field], e.Part == document.PartKey && secret[e.Field]:
			e.Value = state.JSONText(masked)
		case e.Part == document.PartSharedMemory && e.Value == "null":
		case e.Part == document.PartMemory, e.Part == document.PartSharedMemory:
			entry, err := decodeMemoryEntry([]byte(e.Value))
			if err != nil {
				return fmt.Errorf("%w: version %d: memory: %w", ErrCorrupt, version, err)
			}
			if e.Value, err = state.JSONOf(entry); err != nil { // a MemoryEntry masks itself
				return err
			}
		}
		if e.Part == document.PartConversation {
			e.Value = document.RedactConversation(*e, redact)
		} else if e.Value = state.JSON(redact(string(e.Value))); !e.Value.Valid() {
			e.Value = state.JSONText(masked) // a secret that is a piece of JSON
		}
	}
	return nil
}
