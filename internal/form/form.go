// Package form is the JSON form of a whole state, as package state exports and
// imports it.
package form

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
)

// Format is the version of the form.
const Format = 1

// State is a whole state. Each message is written once, and the conversation
// and the results refer to runs of messages.
type State struct {
	Format       int       `json:"format"`
	Version      uint64    `json:"version"`
	Fields       []Field   `json:"fields,omitempty"`       // the declared fields, except the conversation
	Keys         []Field   `json:"keys,omitempty"`         // the undeclared keys
	Conversation *[]Run    `json:"conversation,omitempty"` // the field messages
	Results      []Result  `json:"results,omitempty"`
	Messages     []Message `json:"messages,omitempty"` // each occurs once
}

// Message is the text of a message. It is a string because a state.Message holds
// it as one: both share it.
type Message string

// MarshalJSON returns the text.
func (m Message) MarshalJSON() ([]byte, error) { return []byte(m), nil }

// UnmarshalJSON keeps the text.
func (m *Message) UnmarshalJSON(data []byte) error {
	*m = Message(data)
	return nil
}

// Field is the value of a field or an undeclared key.
type Field struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Moved is a field that was stored under a former name or in another form.
type Moved struct {
	Field string          // its present name
	From  string          // the name under which it was stored
	Value json.RawMessage // in its present form
}

// Result is an inference result.
type Result struct {
	ID        string    `json:"id,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	Input     string    `json:"input,omitempty"`
	Prompt    []Run     `json:"prompt,omitempty"`
	History   []Run     `json:"history,omitempty"`
	Output    []Run     `json:"output,omitempty"`
	ToolCalls []Run     `json:"tool_calls,omitempty"`
	Raw       string    `json:"raw,omitempty"`
	RawBytes  string    `json:"raw_base64,omitempty"` // in place of a Raw that is not UTF-8
	Stop      string    `json:"stop,omitempty"`
	StopWord  string    `json:"stop_word,omitempty"`
	Usage     Usage     `json:"usage,omitzero"`
	StartedAt time.Time `json:"started_at,omitzero"`
	CreatedAt time.Time `json:"created_at"`
}

// Usage is the cost of a result. A count is 0 if it was not reported.
type Usage struct {
	Input      int `json:"input,omitempty"`
	Output     int `json:"output,omitempty"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	Reasoning  int `json:"reasoning,omitempty"`
}

// SetRaw sets Raw or RawBytes.
func (r *Result) SetRaw(raw string) {
	r.Raw, r.RawBytes = raw, ""
	if !utf8.ValidString(raw) {
		r.Raw, r.RawBytes = "", base64.StdEncoding.EncodeToString([]byte(raw))
	}
}

// GetRaw returns what SetRaw was given. It reports false if the form has both
// members or RawBytes is not base64.
func (r *Result) GetRaw() (string, bool) {
	if r.RawBytes == "" {
		return r.Raw, true
	}
	raw, err := base64.StdEncoding.DecodeString(r.RawBytes)
	return string(raw), err == nil && r.Raw == ""
}

// Run is a part of the messages: from the first place to the one after the
// last.
type Run struct{ From, To int }

// MarshalJSON writes the run as a pair.
func (r Run) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt([]byte{'['}, int64(r.From), 10)
	b = strconv.AppendInt(append(b, ','), int64(r.To), 10)
	return append(b, ']'), nil
}

var errRun = &fault.Error{Path: "$", Want: "a pair of places", Got: "other JSON"}

// UnmarshalJSON reads a pair. There are many in a form.
func (r *Run) UnmarshalJSON(data []byte) error {
	data, begins := bytes.CutPrefix(data, []byte{'['})
	data, ends := bytes.CutSuffix(data, []byte{']'})
	from, to, pair := bytes.Cut(data, []byte{','})
	if !begins || !ends || !pair {
		return errRun
	}
	a, err := strconv.Atoi(string(bytes.TrimSpace(from)))
	b, err2 := strconv.Atoi(string(bytes.TrimSpace(to)))
	if err != nil || err2 != nil {
		return errRun
	}
	r.From, r.To = a, b
	return nil
}
