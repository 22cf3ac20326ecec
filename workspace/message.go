package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// Message is what a user has sent.
type Message struct {
	// ID tells a message from one that is sent again: of two with the same id only
	// the first is handled, as long as a workspace remembers it, which is for at
	// least the last 64 messages. Without an id a message gets one of its own.
	ID string
	// ChatID and Platform say where it came from. If they are not empty, the
	// workspace's settings take them over when the message is handled.
	ChatID, Platform string
	// Content is appended to the conversation when the message is handled.
	Content state.Message
	// Busy determines what happens to the message if it arrives during a run.
	// It is not stored.
	Busy Busy
}

// maxID is how many bytes an id, a chat's id or a platform has at most.
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
			return nil, fmt.Errorf("%w: ids of a message are text of at most %d bytes", ErrInvalid, maxID)
		}
	}
	if m.Content == nil || m.Content.Raw() == "" {
		return nil, fmt.Errorf("%w: message without content", ErrInvalid)
	}
	return jsontext.Marshal(storedMessage{m.ID, m.ChatID, m.Platform, json.RawMessage(m.Content.Raw())})
}

func decodeMessage(key string, data []byte) (Message, error) {
	fail := func(err error) (Message, error) {
		return Message{}, fmt.Errorf("%w: %s: message: %w", ErrCorrupt, key, err)
	}
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return fail(err)
	}
	var s storedMessage
	if err := json.Unmarshal(data, &s); err != nil {
		return fail(err)
	}
	content, err := state.DecodeMessage(s.Content)
	if err != nil {
		return fail(err)
	}
	return Message{ID: s.ID, ChatID: s.ChatID, Platform: s.Platform, Content: content}, nil
}

// message returns the message of an item.
func (l *ledger) readMessage(ctx context.Context, i pendingMessage) (Message, error) {
	if i.BodyBlob == nil {
		return decodeMessage(l.key, i.Body)
	}
	data, err := l.fetchBlob(ctx, *i.BodyBlob)
	if err != nil {
		return Message{}, err
	}
	return decodeMessage(l.blobKey(i.BodyBlob.Name), data)
}
