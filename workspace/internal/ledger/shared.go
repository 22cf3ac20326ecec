package ledger

import (
	"context"

	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// SharedChange is what an operation on a thread does to the user part, which is
// another workspace.
type SharedChange struct {
	Part *Ledger
	// Make returns the change of a content. It is called again if another writer
	// was faster, while other operations of this process on the user part wait. It may
	// keep and change doc. Without effects, the user part stays as it is.
	Make func(doc *document.Document) (Change, error)
	// RunID and Message are those of the record.
	RunID, Message string
}

// apply adds the record of the change.
func (s *SharedChange) apply(t *transition) error {
	doc, err := t.reader.Content(t.ctx, t.Head, t.Position())
	if err != nil {
		return err
	}
	c, err := s.Make(doc)
	switch {
	case err != nil:
		return &ProgramError{err} // of the code that merges, and final
	case len(c.Effects) == 0:
		return errNoChange
	}
	if err := t.addRecord(work.Record{
		Kind: KindUpdate, Time: c.Time, Effects: c.Effects, RunID: s.RunID, Message: s.Message,
	}); err != nil {
		return err
	}
	t.markPurge(c.Purge)
	return nil
}

// commitShared is commitHead, or with retry commitRun, for an operation that may
// change the user part as well. Both heads are written in one batch. The
// operation has one id in both, so either of them tells that it took effect: an
// attempt can do so only as long as both heads are the ones that it replaces.
func (l *Ledger) commitShared(
	ctx context.Context, shared *SharedChange, retry func(error) bool, apply transitionFunc,
) (*Head, error) {
	c := l.newCommit()
	c.retry.again = retry
	if shared != nil {
		c.pairWith(shared.Part, shared.apply)
		c.enter = func(ctx context.Context) (leave func(), err error) { // a thread first, then the user part
			leaveThread, err := l.enterInTurn(ctx)
			if err != nil {
				return nil, err
			}
			leavePart, err := shared.Part.enterInTurn(ctx)
			if err != nil {
				leaveThread()
				return nil, err
			}
			return func() {
				leavePart()
				leaveThread()
			}, nil
		}
	}
	return c.perform(ctx, apply)
}
