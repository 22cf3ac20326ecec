package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// Copy is a workspace as it is carried from one store to another.
type Copy struct {
	Content     *document.Document `json:"-"`
	Title       string             `json:"-"`
	Name        string             `json:"name,omitempty"`
	Notes       []work.Note        `json:"notes,omitempty"`
	Messages    []Message          `json:"messages,omitempty"` // those that wait, with their bodies, the next first
	DeadLetters []DeadLetter       `json:"dead_letters,omitempty"`
	Outcomes    []Outcome          `json:"ended,omitempty"`
}

// All returns the messages that wait, and those of the dead letters.
func (c *Copy) All() (all []*Message) {
	for i := range c.Messages {
		all = append(all, &c.Messages[i])
	}
	for i := range c.DeadLetters {
		all = append(all, &c.DeadLetters[i].Message)
	}
	return all
}

// Copy returns a copy of the workspace as if the run that is under way had not
// begun: its message is the first that waits. Tickets are left out.
func (l *Ledger) Copy(ctx context.Context) (c Copy, err error) {
	_, err = l.ReadStable(ctx, func(h *Head) error {
		if !h.Exists() {
			return fmt.Errorf("%w: the workspace does not exist", work.ErrNotFound)
		}
		if c, err = l.copyMessages(ctx, h); err != nil {
			return err
		}
		c.Messages = slices.DeleteFunc(c.Messages, func(m Message) bool { return m.Ticket })
		if c.Content, err = l.Content(ctx, h, h.settled()); err != nil {
			return err
		}
		next := c.Content.NextNumber() // the others are given to other messages
		c.Name = h.Name
		c.Notes, err = l.Notes(ctx, h)
		c.Notes = slices.DeleteFunc(slices.Clone(c.Notes), func(n work.Note) bool { return n.Message >= next })
		return err
	})
	return c, err
}

// copyMessages returns a copy without the content. The message of the run is the
// first that waits.
func (r *contentReader) copyMessages(ctx context.Context, h *Head) (c Copy, err error) {
	waiting, err := r.Queued(ctx, h)
	if err != nil {
		return c, err
	}
	c.Messages = append(h.messages(), waiting...)
	if c.DeadLetters, err = r.DeadLetters(ctx, h); err != nil {
		return c, err
	}
	for _, m := range c.All() {
		if m.Body, _, err = r.ReadBody(ctx, *m); err != nil {
			return c, err
		}
		m.Blob, m.BodyBytes = "", 0
	}
	c.Outcomes, err = r.Outcomes(ctx, h)
	return c, err
}

// restoreMessages gives a head without messages those of a copy.
func (t *transition) restoreMessages(c Copy) error {
	for _, m := range c.Messages {
		t.enqueue(t.storeMessage(m))
	}
	dead := slices.Clone(c.DeadLetters) // the transition may be made again
	for i := range dead {
		dead[i].Message = t.shortMessage(dead[i].Message)
	}
	if err := t.setDeadLetters(dead); err != nil || len(c.Outcomes) == 0 {
		return err
	}
	return t.setOutcomes(c.Outcomes)
}

// Import makes the workspace from a copy. It returns ErrExists if there is one.
// The run of the first message that waits begins with a vacant lease.
func (l *Ledger) Import(ctx context.Context, c Copy, lease Lease) (*Head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		if t.Exists() {
			return work.ErrExists
		}
		err := t.addRecord(work.Record{Kind: KindImport, Time: lease.began, Effects: c.Content.Effects()})
		if err == nil {
			err = t.restoreMessages(c)
		}
		if err == nil {
			err = t.setNotes(c.Notes)
		}
		if err != nil {
			return err
		}
		t.Title, t.Name = c.Title, c.Name
		return t.beginNextRun(lease.Vacant())
	})
}
