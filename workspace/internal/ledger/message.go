package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/agentstate/state/internal/fault"
)

// Message is a message that waits, is being handled, or was given up.
type Message struct {
	ID string    `json:"id"`
	At time.Time `json:"at,omitzero"` // when it was accepted
	// Trace is what the sender's tracer wants the run to know.
	Trace string `json:"trace,omitempty"`
	// Stands says that a run which has given the message up has stored it in the
	// conversation.
	Stands bool `json:"stands,omitempty"`
	// Ticket marks a place in the queue instead of a message. Only the Manager
	// that queued it takes its run.
	Ticket bool `json:"ticket,omitempty"`
	// Join says that the message joins a run that is under way, if it can.
	Join bool            `json:"join,omitempty"`
	Body json.RawMessage `json:"body,omitempty"`
	// Blob names the blob of the whole message, if it has one. Body is then
	// empty, and has BodyBytes bytes.
	Blob      string `json:"blob,omitempty"`
	BodyBytes int    `json:"body_bytes,omitempty"`
}

// maxInlineBody is the maximum length of the body of a message in the head.
var maxInlineBody = 256

// storeMessage returns the message as a head refers to it, if it is in a blob.
func (t *transition) storeMessage(m Message) Message {
	m.Blob, m.BodyBytes = "", 0
	m.Blob, m.BodyBytes, m.Body = t.addBlob(m.appendJSON(nil)), len(m.Body), nil
	return m
}

// shortMessage returns the message as a run or a dead letter has it: a long one is
// in a blob.
func (t *transition) shortMessage(m Message) Message {
	if len(m.Body) <= maxInlineBody {
		return m
	}
	return t.storeMessage(m)
}

// readMessage returns the message in a blob, with its body.
func (s *blobStore) readMessage(ctx context.Context, name string) (Message, error) {
	return fetchBlobJSON[Message](ctx, s, name)
}

// ReadBody returns the body of a message, and the key of the store under which
// it is, for errors.
func (s *blobStore) ReadBody(ctx context.Context, m Message) (body []byte, key string, err error) {
	if m.Blob == "" {
		return m.Body, s.key, nil
	}
	whole, err := s.readMessage(ctx, m.Blob)
	return whole.Body, s.blobKey(m.Blob), err
}

func quoteID(id string) string { return fault.Quote(id) }

// idHashLen is the length of idHash.
const idHashLen = 11

// idHash returns the beginning of the hash of a message's id. Two ids may have
// the same, so what is found by it is compared with the id.
func idHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// queueEntry is an entry of the queue: the name of a message's blob, the hash of its
// id, and whether it wants to join the run.
func queueEntry(m Message) string {
	entry := m.Blob + ":" + idHash(m.ID)
	if m.Join {
		entry += joinMark
	}
	return entry
}

const joinMark = ":join"

func wantsToJoin(entry string) bool { return strings.HasSuffix(entry, joinMark) }

func cutQueueEntry(entry string) (name, hash string) {
	name, hash, _ = strings.Cut(strings.TrimSuffix(entry, joinMark), ":")
	return name, hash
}

// messages returns the messages in the head itself.
func (h *Head) messages() []Message {
	if h.Run == nil {
		return nil
	}
	list := []Message{h.Run.Message}
	for _, j := range h.Run.Joined {
		list = append(list, j.Message)
	}
	return list
}

// allMessages yields the messages of the run, the queue and the dead letters. The
// bodies of those in blobs are left out.
func (c *contentReader) allMessages(ctx context.Context, h *Head) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for _, m := range h.messages() {
			if !yield(m, nil) {
				return
			}
		}
		for entry, err := range c.queueEntries(ctx, h) {
			var m Message
			if err == nil {
				m, err = c.queued(ctx, entry)
			}
			if !yield(m, err) {
				return
			}
		}
		dead, err := c.DeadLetters(ctx, h)
		if err != nil {
			yield(Message{}, err)
		}
		for _, d := range dead {
			if !yield(d.Message, nil) {
				return
			}
		}
	}
}
