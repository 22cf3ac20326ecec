package ledger

import "context"

// Notice says what has happened in a workspace.
type Notice struct {
	// Head is newer than those that were seen before, unless it is TakenBack; nil if
	// none was seen. It must not be changed.
	Head *Head
	// Ended are the outcomes of the messages whose handling the write of Head has
	// ended, if this Ledger has written it.
	Ended []Outcome
	// TakenBack says that the store shows Head instead of one that it has taken back.
	TakenBack bool
	// Cost is that of an operation that may write and has ended, or nil.
	Cost *Effort
	// Err is an error after which an operation is tried again, or nil.
	Err error
}

// Effort is what an operation has cost.
type Effort struct {
	Bytes     int  // written to the store, head and blobs
	Tries     int  // attempts to replace the head
	Conflicts int  // attempts that failed because another writer was faster
	Unknown   bool // it is not known whether the operation took effect
}

func (l *Ledger) notify(ctx context.Context, n Notice) {
	if l.opts.Notify != nil {
		l.opts.Notify(ctx, l, n)
	}
}

// notifyFailed is told of an error by a Retry.
func (l *Ledger) notifyFailed(ctx context.Context, err error) { l.notify(ctx, Notice{Err: err}) }

// notifyWritten tells what the operation has written. It is called in turn, so that
// the notices have the order of the writes.
func (c *commit) notifyWritten(ctx context.Context) {
	n := Notice{Cost: &c.cost}
	if t := c.written; t != nil {
		n.Head, n.Ended = t.Head, t.outcomes
	}
	c.notify(ctx, n)
	if c.other != nil && c.other.written != nil {
		c.other.notify(ctx, Notice{Head: c.other.written.Head, Ended: c.other.written.outcomes})
	}
}
