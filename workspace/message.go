package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// Message is a message of a user.
type Message struct {
	// ID identifies the message if it is sent again: a workspace handles only
	// the first of several messages with one id, as long as it remembers the
	// id, which it does for at least the last 64 messages. A message without an
	// id gets a random one.
	ID string
	// ChatID and Platform say where the message comes from. If they are not
	// empty, they are copied to the settings when the message is handled.
	ChatID, Platform string
	// Content is appended to the conversation when the message is handled.
	Content state.Message
	// Busy determines what happens to the message if it arrives during a run.
	// It is not stored.
	Busy Busy
}

// Status says what happened to a message.
type Status string

// The statuses of messages.
const (
	StatusStarted   Status = "started"   // its run has begun
	StatusDone      Status = "done"      // it was handled
	StatusQueued    Status = "queued"    // it waits
	StatusDuplicate Status = "duplicate" // a message with its id was accepted before
	StatusRejected  Status = "rejected"  // it was not accepted because of a run
	StatusFailed    Status = "failed"    // its run has failed
)

// Outcome is the result of handing over a message.
type Outcome struct {
	Status Status
	RunID  string // of the run that handled the message
	Reply  string // set by Run.SetReply
}

// maxID is the maximum length, in bytes, of an id, a chat id and a platform.
const maxID = 256

type storedMessage struct {
	ID       string          `json:"id"`
	ChatID   string          `json:"chat_id,omitempty"`
	Platform string          `json:"platform,omitempty"`
	Content  json.RawMessage `json:"content"`
}

// encode checks a message and returns its JSON.
func (m Message) encode() ([]byte, error) {
	for _, text := range []string{m.ID, m.ChatID, m.Platform} {
		if len(text) > maxID || !utf8.ValidString(text) {
			return nil, fmt.Errorf("%w: the ids of a message must be UTF-8 of at most %d bytes", ErrInvalid, maxID)
		}
	}
	if m.Content == nil || m.Content.Raw() == "" {
		return nil, fmt.Errorf("%w: message without content", ErrInvalid)
	}
	return jsontext.Marshal(storedMessage{m.ID, m.ChatID, m.Platform, json.RawMessage(m.Content.Raw())})
}

// decodeMessage is the inverse of encode. key is for errors.
func decodeMessage(key string, data []byte) (Message, error) {
	var s storedMessage
	err := jsontext.Check(data, jsontext.Limits{})
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	var content state.Message
	if err == nil {
		content, err = state.DecodeMessage(s.Content)
	}
	if err != nil {
		return Message{}, fmt.Errorf("%w: %s: message: %w", ErrCorrupt, key, err)
	}
	return Message{ID: s.ID, ChatID: s.ChatID, Platform: s.Platform, Content: content}, nil
}

// readMessage returns a pending message.
func (s *blobStore) readMessage(ctx context.Context, m pendingMessage) (Message, error) {
	if m.BodyBlob == nil {
		return decodeMessage(s.key, m.Body)
	}
	data, err := s.fetchBlob(ctx, *m.BodyBlob)
	if err != nil {
		return Message{}, err
	}
	return decodeMessage(s.blobKey(m.BodyBlob.Name), data)
}
