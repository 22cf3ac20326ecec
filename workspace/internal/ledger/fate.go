package ledger

import (
	"context"

	"github.com/agentstate/state/workspace/work"
)

// The places of a message.
const (
	PlaceNone    = ""
	PlaceRunning = "running"
	PlaceQueued  = "queued"
	PlaceDead    = "dead"
	PlaceEnded   = "ended"
)

// Fate is what a head knows of a message.
type Fate struct {
	Place   string
	Outcome // if Place is PlaceEnded; for PlaceDead, why it was given up; for PlaceRunning, only RunID

	// Differs says of a duplicate that the first message has another body. It is
	// false if the first has ended: its body is gone.
	Differs bool
	first   Message // if Place is PlaceRunning or PlaceQueued
}

// Fate returns what a head knows of the message with an id.
func (l *Ledger) Fate(ctx context.Context, h *Head, id string) (Fate, error) {
	if h.Run != nil && h.Run.Message.ID == id {
		return Fate{Place: PlaceRunning, Outcome: Outcome{ID: id, RunID: h.Run.RunID}, first: h.Run.Message}, nil
	}
	if h.Run != nil {
		for _, j := range h.Run.Joined {
			if j.Message.ID == id {
				return Fate{Place: PlaceRunning, Outcome: Outcome{ID: id, RunID: h.Run.RunID}, first: j.Message}, nil
			}
		}
	}
	dead, err := l.DeadLetters(ctx, h)
	if err != nil {
		return Fate{}, err
	}
	for _, d := range dead {
		if d.Message.ID == id {
			return Fate{
				Place: PlaceDead, Outcome: Outcome{ID: id, Ending: work.EndingFailed, RunID: d.RunID, Reason: d.Reason},
			}, nil
		}
	}
	if m, queued, err := l.findQueued(ctx, h, id); queued || err != nil {
		return Fate{Place: PlaceQueued, Outcome: Outcome{ID: id}, first: m}, err
	}
	o, err := l.findOutcome(ctx, h, id)
	if err != nil || o.ID == "" {
		return Fate{}, err
	}
	return Fate{Place: PlaceEnded, Outcome: o}, nil
}

// Queued returns the messages that wait, the next first.
func (c *contentReader) Queued(ctx context.Context, h *Head) ([]Message, error) {
	var list []Message
	for entry, err := range c.queueEntries(ctx, h) {
		if err != nil {
			return nil, err
		}
		m, err := c.queued(ctx, entry)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// findQueued returns a message that waits, with its body, and whether it does.
func (l *Ledger) findQueued(ctx context.Context, h *Head, id string) (Message, bool, error) {
	if h.Queue.len() == 0 {
		return Message{}, false, nil
	}
	maybe, err := l.index.mayHave(ctx, h, idHash(id), l.fetchBlob)
	if !maybe || err != nil {
		return Message{}, false, err
	}
	for entry, err := range l.queueEntries(ctx, h) {
		if err != nil {
			return Message{}, false, err
		}
		name, hash := cutQueueEntry(entry)
		if hash != idHash(id) {
			continue
		}
		if m, err := l.readMessage(ctx, name); err != nil || m.ID == id {
			return m, err == nil, err
		}
	}
	return Message{}, false, nil
}
