package ledger

import "context"

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
