package ledger

import (
	"context"
	"fmt"

	"github.com/agentstate/state/workspace/internal/document"
)

// Copy is a workspace as it is carried from one store to another.
type Copy struct {
	Content     *document.Document
	Messages    []Message // those that wait, with their bodies, the next first
	DeadLetters []DeadLetter
	Outcomes    []Outcome
	Title       string
}

// Copy returns a copy of the workspace as if the run that is under way had not
// begun: its message is the first that waits. Tickets are left out.
func (l *Ledger) Copy(ctx context.Context) (Copy, error) {
	var c Copy
	_, err := l.ReadStable(ctx, func(h *Head) (err error) {
		if !h.Exists() {
			return fmt.Errorf("%w: the workspace does not exist", ErrNotFound)
		}
		c = Copy{}
		if c.Content, err = l.Content(ctx, h, h.settled()); err != nil {
			return err
		}
		if c.Messages, err = l.copyWaiting(ctx, h); err != nil {
			return err
		}
		dead, err := l.deadLetters(ctx, h)
		if err != nil {
			return err
		}
		for _, d := range dead {
			if d.Message, err = l.wholeMessage(ctx, d.Message); err != nil {
				return err
			}
			c.DeadLetters = append(c.DeadLetters, d)
		}
		c.Outcomes, err = l.Outcomes(ctx, h)
		return err
	})
	return c, err
}

func (l *Ledger) copyWaiting(ctx context.Context, h *Head) ([]Message, error) {
	waiting, err := l.Queued(ctx, h)
	if err != nil {
		return nil, err
	}
	var list []Message
	for _, m := range append(h.messages(), waiting...) {
		if m.Ticket {
			continue
		}
		if m, err = l.wholeMessage(ctx, m); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// wholeMessage returns a message with its body.
func (c *contentReader) wholeMessage(ctx context.Context, m Message) (Message, error) {
	if m.Blob == "" {
		return m, nil
	}
	return c.readMessage(ctx, m.Blob)
}

// Import makes the workspace from a copy. It returns ErrExists if there is one.
// The run of the first message that waits begins with a vacant lease.
func (l *Ledger) Import(ctx context.Context, c Copy, lease Lease) (*Head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		if t.Exists() {
			return ErrExists
		}
		if err := t.addRecord(Record{Kind: KindImport, Time: lease.began, Effects: c.Content.Effects()}); err != nil {
			return err
		}
		for _, m := range c.Messages {
			stored, err := t.storeMessage(m)
			if err != nil {
				return err
			}
			t.enqueue(stored)
		}
		dead := make([]DeadLetter, len(c.DeadLetters))
		for i, d := range c.DeadLetters {
			if len(d.Message.Body) > maxInlineBody {
				var err error
				if d.Message, err = t.storeMessage(d.Message); err != nil {
					return err
				}
			}
			dead[i] = d
		}
		if err := t.setDeadLetters(dead); err != nil {
			return err
		}
		t.Title = c.Title
		if len(c.Outcomes) > 0 {
			if err := t.setOutcomes(c.Outcomes); err != nil {
				return err
			}
		}
		return t.beginNextRun(lease.Vacant())
	})
}
