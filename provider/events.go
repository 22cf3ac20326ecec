package provider

import (
	"bytes"
	"slices"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// eventReader reads server-sent events, as the HTML standard defines
// text/event-stream. Data counts, because all formats repeat the type of the event
// there; the name is for data that cannot be read.
type eventReader struct {
	take func(name string, data []byte) // gets each event, whose data it must not keep
	keep func(p []byte) bool            // gets what is not a comment, as it came; false ends write

	comment bool   // the line that has not ended is a comment
	line    []byte // that has not ended
	name    string // of the event that has not ended
	data    []byte // of it
	inEvent bool   // data has been set
	early   []byte // of the event that has not ended, if takeLast has taken it
	afterCR bool   // the last byte was a CR
}

// write takes the next bytes.
func (r *eventReader) write(p []byte) {
	for len(p) > 0 {
		if r.afterCR && p[0] == '\n' {
			if !r.comment && !r.keep(p[:1]) {
				return
			}
			r.afterCR, r.comment, p = false, false, p[1:]
			continue
		}
		if r.afterCR {
			r.afterCR, r.comment = false, false
		}
		r.comment = r.comment || len(r.line) == 0 && p[0] == ':'
		n := bytes.IndexAny(p, "\r\n")
		end := n + 1
		if n < 0 {
			end = len(p)
		}
		if !r.comment && !r.keep(p[:end]) {
			return
		}
		switch {
		case n >= 0:
			if r.afterCR = p[n] == '\r'; !r.comment {
				r.endLine(append(r.line, p[:n]...))
				r.line = r.line[:0]
			}
			r.comment = r.comment && r.afterCR // up to the LF behind it
		case !r.comment:
			r.line = append(r.line, p...)
		}
		p = p[end:]
	}
}

// endLine takes a line.
func (r *eventReader) endLine(line []byte) {
	if len(line) > 0 {
		if name, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			r.name = string(bytes.TrimSpace(name))
		}
		r.data, r.inEvent = appendLine(r.data, r.inEvent, line)
		return
	}
	if r.inEvent && !r.hasTaken(r.data) {
		r.take(r.name, r.data)
	}
	r.name, r.data, r.inEvent, r.early = "", r.data[:0], false, nil
}

// appendLine appends the data of a line to that of its event.
func appendLine(data []byte, inEvent bool, line []byte) ([]byte, bool) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return data, inEvent
	}
	if inEvent {
		data = append(data, '\n')
	}
	return append(data, bytes.TrimPrefix(value, []byte(" "))...), true
}

// takeLast takes the event at the end, if it is whole but for the empty line
// after it, which recorders and some proxies strip.
func (r *eventReader) takeLast() {
	data, inEvent := r.data, r.inEvent
	if len(r.line) > 0 {
		data, inEvent = appendLine(slices.Clip(data), inEvent, r.line)
	}
	if data = bytes.TrimSpace(data); !inEvent || r.hasTaken(data) || !isWholeEvent(data) {
		return
	}
	r.take(r.name, data)
	r.early = bytes.Clone(data)
}

// hasTaken reports whether takeLast has taken the event with the data.
func (r *eventReader) hasTaken(data []byte) bool {
	return r.early != nil && bytes.Equal(bytes.TrimSpace(data), r.early)
}

// isWholeEvent reports whether nothing but space can follow in the data of an
// event.
func isWholeEvent(data []byte) bool {
	return string(data) == "[DONE]" ||
		jsontext.Kind(data) == "object" && jsontext.Check(data, jsontext.Limits{Depth: codec.BodyDepth}) == nil
}
