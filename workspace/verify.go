package workspace

import (
	"context"
	"iter"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Verify reads all data of a workspace, and the values of [Manager.Store] and all files of
// the user, and checks that they are authentic: each record by the chain of hashes that leads
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
func (m *Manager) Verify(ctx context.Context, userID string) (work.Report, error) {
	var report work.Report
	err := m.observe(ctx, "verify", work.Operation{
		Kind: work.OpVerify, UserID: userID,
	}, func(ctx context.Context, l *ledger.Ledger, op *operation) (err error) {
		report, err = l.Verify(ctx, func(h *ledger.Head, doc *document.Document) error {
			if _, err := m.content(userID, doc, h.Position(), nil); err != nil {
				return err
			}
			return new(View).addMessages(ctx, l, h, doc)
		})
		op.Version = report.Version
		return err
	})
	return report, err
}

// Check yields the ids of the workspaces that do not fit a schema, each with an
// error that matches ErrSchema and names what does not fit. Call it with the
// schema of a new version of the program before the version is deployed. The
// error of a workspace that cannot be read is yielded too. Check reads the
// content of all workspaces and writes nothing.
//
// To rename a field or to change its type, give it Was or Convert in the new
// version, and see that Check yields nothing for it. Then replace all processes
// within a short time. Meanwhile those with the new version read both forms,
// and the first write to the field stores the new form. Those with the old
// version refuse a workspace in which a type has changed, with ErrSchema: they
// take neither its messages nor its runs. A message that was refused can be sent
// again to any process. For them a field that was renamed is unset, and its value
// is in View.Unknown. The way back to the old version is closed for workspaces
// with the new form. Remove Was or Convert in a later version, when Check yields nothing
// without it.
func (m *Manager) Check(ctx context.Context, schema *state.Schema) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for s, err := range m.Summaries(ctx, "") {
			if err == nil {
				err = m.checkWorkspace(ctx, s.UserID, schema)
			}
			if err != nil && !yield(s.UserID, wrapError("check", s.UserID, err)) || ctx.Err() != nil {
				return
			}
		}
	}
}

func (m *Manager) checkWorkspace(ctx context.Context, user string, schema *state.Schema) error {
	l, err := m.ledger(user)
	if err != nil {
		return err
	}
	_, doc, err := l.ReadPresent(ctx)
	if err != nil {
		return err
	}
	var shares *sharing
	if isThread(user) {
		shares = sharingOf(schema, m.opts.ThreadMemory)
	}
	return checkContent(schema, doc, shares)
}
