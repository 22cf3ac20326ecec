package ledger

import (
	"context"
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/work"
)

// Joined is a message that a run has taken out of the queue besides its own. It is
// in the content. When the run ends, it ends too, or goes back to the front of the
// queue.
type Joined struct {
	Message Message `json:"message"`
	// Answers is how many answers models had given before. With one more, a model has
	// read the message.
	Answers int `json:"answers,omitempty"`
}

func (j *Joined) appendJSON(b []byte) []byte {
	b = j.Message.appendJSON(appendName(append(b, '{'), "message"))
	return append(appendCount(b, "answers", j.Answers), '}')
}

// maxJoined is how many messages join one run. Others wait.
const maxJoined = 16

// ErrJoin is returned by [Ledger.Commit] if other messages want to join than the
// holder says. Nothing was written, and [Ledger.Joining] knows them.
var ErrJoin = fault.Final("workspace: other messages want to join the run")

// Joining returns the messages that want to join the run: those in front of the queue
// of the head that was read or written last. It returns none if they cannot be read,
// as when that head is an old one.
func (l *Ledger) Joining(ctx context.Context) []Message {
	h := l.LastHead()
	if h == nil {
		return nil
	}
	names, err := l.joining(ctx, h)
	list := make([]Message, len(names))
	for i := 0; i < len(names) && err == nil; i++ {
		list[i], err = l.readMessage(ctx, names[i])
		list[i].Blob = names[i]
	}
	if err != nil {
		return nil
	}
	return list
}

// joining returns the names of the messages that want to join the run of a head.
func (c *contentReader) joining(ctx context.Context, h *Head) (names []string, err error) {
	if h.Run == nil || h.Run.Message.Ticket || h.Queue.len() == 0 {
		return nil, nil
	}
	for entry, err := range c.queueEntries(ctx, h) {
		if err != nil {
			return nil, err
		}
		if !wantsToJoin(entry) || len(h.Run.Joined)+len(names) >= maxJoined {
			break
		}
		name, _ := cutQueueEntry(entry)
		names = append(names, name)
	}
	return names, nil
}

// join moves the messages from the queue to the run that the holder has put into
// the content.
func (t *transition) join(by Holder) error {
	if !by.MayJoin {
		return nil
	}
	names, err := t.reader.joining(t.ctx, t.Head)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(names, by.Join, func(name string, m Message) bool { return name == m.Blob }) {
		return ErrJoin
	}
	for range names {
		m, err := t.dequeue()
		if err != nil {
			return err
		}
		t.Run.Joined = append(slices.Clip(t.Run.Joined), Joined{m, by.Answers})
	}
	return nil
}

// endJoined ends the messages that have joined the run as its last record says. Those
// that no model has read, and all of a run that is undone or has failed, are handled
// next, as messages of their own.
func (t *transition) endJoined(r *work.Record) error {
	var back []Joined
	stand := r.Kind != KindRollback
	for _, j := range t.Run.Joined {
		isBack := !stand || r.Ending == work.EndingFailed || r.Ending == work.EndingFinished && j.Answers >= t.Run.Answers
		if isBack {
			back = append(back, j)
			continue
		}
		o := outcomeOf(r)
		o.ID, o.Version = j.Message.ID, t.Version
		t.dropBlob(j.Message.Blob)
		t.outcomes = append(t.outcomes, o)
		if err := t.keepOutcome(o); err != nil {
			return err
		}
	}
	return t.putBack(back, stand)
}

// putBack puts messages that have joined the run back to the front of the queue. If
// they stand, the content keeps them, and they join no other run.
func (t *transition) putBack(joined []Joined, stand bool) error {
	t.Run.Joined = nil
	if len(joined) == 0 {
		return nil
	}
	var entries []string
	size := t.QueueBytes
	for _, j := range joined {
		m := j.Message
		if stand {
			body, _, err := t.reader.ReadBody(t.ctx, m)
			if err != nil {
				return err
			}
			t.dropBlob(m.Blob)
			m.Body, m.Stands, m.Join = body, true, false
			m = t.storeMessage(m)
		}
		size += m.BodyBytes
		entries = append(entries, queueEntry(m))
	}
	for entry, err := range t.reader.queueEntries(t.ctx, t.Head) {
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	if err := t.dropQueued(t.Queue.Next); err != nil {
		return err
	}
	for _, entry := range entries {
		t.Queue.push(entry, t.addBlob)
	}
	t.QueueBytes = size
	return nil
}
