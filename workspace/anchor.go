package workspace

import (
	"context"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// Mark identifies one write of a workspace.
type Mark struct {
	Seq   uint64 // the number of writes so far
	Nonce string
}

// Anchor remembers the newest state of each workspace in a place that is not
// restored together with the store.
type Anchor interface {
	// Load returns the mark of a user's workspace, or the zero Mark.
	Load(ctx context.Context, user string) (Mark, error)
	// Advance sets the mark, unless the present one has a higher Seq.
	Advance(ctx context.Context, user string, to Mark) error
}

// ledgerAnchor is an Anchor as the ledger uses it. A panic in the Anchor is an
// error.
type ledgerAnchor struct{ anchor Anchor }

func (a ledgerAnchor) Load(ctx context.Context, user string) (ledger.Mark, error) {
	var m Mark
	err := a.call("Load", func() (err error) {
		m, err = a.anchor.Load(ctx, user)
		return err
	})
	return ledger.Mark(m), err
}

func (a ledgerAnchor) Advance(ctx context.Context, user string, to ledger.Mark) error {
	return a.call("Advance", func() error { return a.anchor.Advance(ctx, user, Mark(to)) })
}

func (a ledgerAnchor) call(method string, code func() error) error {
	var err error
	visible := func(text string) string { return text } // an Anchor gets no secrets
	if ended := protect("Anchor."+method, visible, func() { err = usable(code()) }); ended != nil {
		return ended
	}
	return err
}
