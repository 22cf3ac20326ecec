// Package form is the JSON form of a whole state, as package state exports and
// imports it.
package form

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Format is the version of the form.
const Format = 1

// State is a whole state. Messages are written once; whatever refers to them
// holds runs.
type State struct {
	Format       int               `json:"format"`
	Version      uint64            `json:"version"`
	Counts       []Count           `json:"counts,omitempty"`
	Fields       []Field           `json:"fields,omitempty"`       // those that are declared, but the conversation
	Keys         []Field           `json:"keys,omitempty"`         // those that are not
	Conversation *[]Run            `json:"conversation,omitempty"` // the field messages
	Results      []Result          `json:"results,omitempty"`
	Messages     []json.RawMessage `json:"messages,omitempty"` // each is there once
}

// Field is the value of a field or an undeclared key.
type Field struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Count is how many versions changed fields of certain classes and no others. A
// class is given by its readers.
type Count struct {
	Classes  [][]string `json:"classes"`
	Versions uint64     `json:"versions"`
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
	CreatedAt time.Time `json:"created_at"`
}

// SetRaw sets Raw or RawBytes.
func (r *Result) SetRaw(raw string) {
	r.Raw, r.RawBytes = raw, ""
	if !utf8.ValidString(raw) {
		r.Raw, r.RawBytes = "", base64.StdEncoding.EncodeToString([]byte(raw))
	}
}

// Run is a part of the messages: from the first place to the one after the last.
type Run struct{ From, To int }

// MarshalJSON writes the run as a pair.
func (r Run) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d,%d]", r.From, r.To), nil }

// UnmarshalJSON reads a pair.
func (r *Run) UnmarshalJSON(data []byte) error {
	var pair []int
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("a run is a pair of places")
	}
	r.From, r.To = pair[0], pair[1]
	return nil
}
