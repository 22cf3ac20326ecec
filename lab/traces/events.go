package traces

import (
	"bytes"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state/internal/jsontext"
)

// isEventStream reports whether a text consists of server-sent events: each of
// its lines is empty, a comment or a field.
func isEventStream(text []byte) bool {
	found := false
	for line := range eventLines(text) {
		if len(line) == 0 {
			continue
		}
		name, _, ok := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "data":
			found = true
		case "event", "id", "retry", "":
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return found
}

// splitEvents returns the data of the events in a text: server-sent events, or
// the JSON array in which Gemini sends them. The last event may lack its blank
// line, which many recorders strip.
func splitEvents(text []byte) [][]byte {
	if jsontext.Kind(text) == "array" {
		return loose.Elements(text)
	}
	var events [][]byte
	var data []byte
	open := false
	end := func() {
		if open {
			events = append(events, data)
		}
		data, open = nil, false
	}
	for line := range eventLines(text) {
		if len(line) == 0 {
			end()
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		if open {
			data = append(data, '\n')
		}
		data, open = append(data, bytes.TrimPrefix(value, []byte(" "))...), true
	}
	end()
	return events
}

// eventLines yields the lines of a text without their ends, which are CR, LF or
// both.
func eventLines(text []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			i := bytes.IndexAny(text, "\r\n")
			if i < 0 {
				yield(text)
				return
			}
			line := text[:i]
			if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
				i++
			}
			text = text[i+1:]
			if !yield(line) {
				return
			}
		}
	}
}
