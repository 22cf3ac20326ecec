package ledger

import (
	"context"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/work"
)

// Limits of the dead letters of a workspace. The oldest go first. The number is
// the default of Options.DeadLetters.
var (
	maxDeadLetters     = 64
	maxDeadLetterBytes = 64 << 10
)

// deadLetters is what the head knows of the dead letters.
type deadLetters struct {
	Count int    `json:"count"`
	Blob  string `json:"blob"` // a list of DeadLetter, the oldest first
}

// DeadLetter is a message that was given up.
type DeadLetter struct {
	Message  Message   `json:"message"`
	RunID    string    `json:"run_id"`
	Attempts int       `json:"attempts"` // the number of times that its run was begun
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"` // when it was given up
}

func (d *DeadLetter) size() int {
	return 100 + len(d.Message.ID) + len(d.Message.Trace) + len(d.Message.Body) + d.Message.BodyBytes + len(d.Reason)
}

// DeadLetters returns the dead letters, the oldest first.
func (c *contentReader) DeadLetters(ctx context.Context, h *Head) ([]DeadLetter, error) {
	if h.DeadLetters.Count == 0 {
		return nil, nil
	}
	return fetchBlobJSON[[]DeadLetter](ctx, &c.blobStore, h.DeadLetters.Blob)
}

// addDeadLetter gives the message of the run up.
func (t *transition) addDeadLetter(attempts int, reason string, now time.Time) error {
	list, err := t.reader.DeadLetters(t.ctx, t.Head)
	if err != nil {
		return err
	}
	list = append(list[:len(list):len(list)], DeadLetter{
		Message: t.Run.Message, RunID: t.Run.RunID, Attempts: attempts, Reason: fault.ClipTo(reason, MaxReason), At: now,
	})
	size := 0
	for i := range list {
		size += list[i].size()
	}
	// The newest stays even if it alone is too large: its sender has just been
	// told of it.
	for len(list) > 1 && (len(list) > t.ledger.opts.DeadLetters || size > maxDeadLetterBytes) {
		d, dropped := list[0], list[0].Message
		size -= d.size()
		list = list[1:]
		if d.Message.Blob != "" { // the hook gets its body
			if d.Message, err = t.reader.readMessage(t.ctx, d.Message.Blob); err != nil {
				return err
			}
		}
		t.droppedLetters = append(t.droppedLetters, d)
		if err := t.endOther(dropped, work.EndingDropped, d.Reason); err != nil {
			return err
		}
	}
	return t.setDeadLetters(list)
}

// takeDeadLetter removes the dead letter of a message, which it returns, or nil.
// The blob of the message stays.
func (t *transition) takeDeadLetter(id string) (*DeadLetter, error) {
	list, err := t.reader.DeadLetters(t.ctx, t.Head)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if d := list[i]; d.Message.ID == id {
			rest := append(list[:i:i], list[i+1:]...)
			return &d, t.setDeadLetters(rest)
		}
	}
	return nil, nil
}

func (t *transition) setDeadLetters(list []DeadLetter) error {
	if t.DeadLetters.Blob != "" {
		t.dropBlob(t.DeadLetters.Blob)
	}
	t.DeadLetters = deadLetters{}
	if len(list) == 0 {
		return nil
	}
	data, err := jsontext.Marshal(list)
	if err != nil {
		return err
	}
	t.DeadLetters = deadLetters{len(list), t.addBlob(data)}
	return nil
}
