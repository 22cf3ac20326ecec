package statetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
)

// streamEvent is an event of a stream with all its bytes, the empty line at its
// end as well. A file has it as {"event": …, "data": …} if its bytes follow from
// these, and otherwise as a string.
type streamEvent string

// eventEnd is the empty line after an event.
var eventEnd = regexp.MustCompile("\n\n|\r\n\r\n|\r\r")

// splitEvents returns the events of a stream, which are its bytes in their
// order.
func splitEvents(body string) []streamEvent {
	var events []streamEvent
	for body != "" {
		end := len(body)
		if place := eventEnd.FindStringIndex(body); place != nil {
			end = place[1]
		}
		events = append(events, streamEvent(body[:end]))
		body = body[end:]
	}
	return events
}

// eventFields are the fields of an event that streams of models have.
type eventFields struct {
	Event string          `json:"event,omitempty"`
	Data  json.RawMessage `json:"data"` // JSON, or a string of any other text
}

// fields returns the fields of an event, and whether its bytes follow from them.
func (e streamEvent) fields() (eventFields, bool) {
	text, ok := strings.CutSuffix(string(e), "\n\n")
	if !ok {
		return eventFields{}, false
	}
	var f eventFields
	if rest, ok := strings.CutPrefix(text, "event: "); ok {
		f.Event, text, _ = strings.Cut(rest, "\n")
	}
	text, _ = strings.CutPrefix(text, "data: ")
	f.Data = jsontext.AppendQuote(nil, text)
	if data := []byte(text); isJSON(data) && bytes.Equal(jsontext.AppendCompact(nil, data), data) {
		f.Data = data
	}
	again, err := f.text()
	return f, err == nil && again == e
}

// text returns the event of the fields.
func (f eventFields) text() (streamEvent, error) {
	var data string
	switch {
	case len(f.Data) == 0:
		return "", errors.New("an event without data")
	case f.Data[0] == '"':
		if err := json.Unmarshal(f.Data, &data); err != nil {
			return "", err
		}
	default:
		data = string(jsontext.AppendCompact(nil, f.Data))
	}
	if f.Event != "" {
		return streamEvent("event: " + f.Event + "\ndata: " + data + "\n\n"), nil
	}
	return streamEvent("data: " + data + "\n\n"), nil
}

// MarshalJSON returns the form of the event in a file.
func (e streamEvent) MarshalJSON() ([]byte, error) {
	if f, ok := e.fields(); ok {
		return jsontext.Marshal(f)
	}
	return jsontext.AppendQuote(nil, string(e)), nil
}

// UnmarshalJSON reads what MarshalJSON returns, after it was indented.
func (e *streamEvent) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte{'"'}) {
		return json.Unmarshal(data, (*string)(e))
	}
	var f eventFields
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	text, err := f.text()
	*e = text
	return err
}
