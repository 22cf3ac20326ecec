package provider

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// ErrIncomplete is returned for a stream that ended before the provider said
// that it was done.
var ErrIncomplete = errors.New("provider: incomplete stream")

// Stream puts the events of a streamed response together to what the whole
// response would have been. The body of the response is written to it, as by
// io.Copy or through an io.TeeReader, or, where something else has split it
// already, each event is given to Event. A Stream is for one response and one
// goroutine.
type Stream struct {
	format    *Format
	raw       bytes.Buffer
	line      []byte  // that has not ended yet
	data      []byte  // of the event that has not ended yet
	inEvent   bool    // data has been set
	begun     bool    // a byte has been written that is no space
	whole     bool    // the body is no server-sent events but JSON
	cr        bool    // the last byte was a CR
	count     int     // events so far
	done      bool    // the event "[DONE]" has come
	errs      []error // of events that could not be used
	failed    error   // a ResponseError among the events
	assembler assembler
}

// assembler puts events together.
type assembler interface {
	// event takes the next event, whose text is checked.
	event(data []byte) error

	// result returns the response as if it had not been streamed, and whether
	// its end has been seen.
	result() (body jsontext.Object, complete bool)
}

// Stream returns a Stream for a response in the format.
func (f *Format) Stream() *Stream {
	return &Stream{format: f, assembler: f.codec.assemble()}
}

// Write takes the next bytes of the body: server-sent events, as the HTML
// standard defines text/event-stream, or the JSON array that Gemini sends unless
// asked for events. It never fails: see [Stream.Result].
func (s *Stream) Write(p []byte) (int, error) {
	s.raw.Write(p)
	rest := p
	for !s.begun && len(rest) > 0 {
		if strings.IndexByte(" \t\r\n\ufeff", rest[0]) >= 0 { // or a byte of the mark
			rest = rest[1:]
			continue
		}
		s.begun, s.whole = true, rest[0] == '[' || rest[0] == '{'
	}
	if s.whole {
		return len(p), nil
	}
	for len(rest) > 0 {
		if s.cr && rest[0] == '\n' {
			s.cr, rest = false, rest[1:]
			continue
		}
		s.cr = false
		n := bytes.IndexAny(rest, "\r\n")
		if n < 0 {
			s.line = append(s.line, rest...)
			break
		}
		s.cr = rest[n] == '\r'
		s.endLine(append(s.line, rest[:n]...))
		s.line = s.line[:0]
		rest = rest[n+1:]
	}
	return len(p), nil
}

// endLine takes a line of text/event-stream. Only its data counts: all formats
// repeat the type of the event there.
func (s *Stream) endLine(line []byte) {
	if len(line) == 0 {
		if s.inEvent {
			s.take(s.data)
		}
		s.data, s.inEvent = s.data[:0], false
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return
	}
	if s.inEvent {
		s.data = append(s.data, '\n')
	}
	s.data = append(s.data, bytes.TrimPrefix(value, []byte(" "))...)
	s.inEvent = true
}

// Event takes the data of the next event, a JSON object or "[DONE]". An event
// that is no such thing is an [Error] that is also part of what Result returns;
// the stream goes on. Raw has one line for each event.
func (s *Stream) Event(data []byte) error {
	s.raw.Write(data)
	s.raw.WriteByte('\n')
	return s.take(data)
}

func (s *Stream) take(data []byte) error {
	at := s.count
	s.count++
	trimmed := bytes.TrimSpace(data)
	if string(trimmed) == "[DONE]" {
		s.done = true
		return nil
	}
	if len(trimmed) == 0 {
		return nil
	}
	err := s.use(bytes.Clone(trimmed))
	if err != nil {
		var failed *ResponseError
		if errors.As(err, &failed) {
			s.failed = failed
		}
		err = fmt.Errorf("event %d: %w", at, s.format.located(err))
		s.errs = append(s.errs, err)
	}
	return err
}

func (s *Stream) use(data []byte) error {
	members, err := s.format.object(data)
	if err != nil {
		return err
	}
	if err := s.format.failure(members); err != nil {
		return err
	}
	return s.assembler.event(data)
}

// Result returns what has come so far. The result is as [Format.DecodeResponse]
// would return it for the whole response, but that Raw is what was written, byte
// for byte. The error is [ErrIncomplete] if the end is missing, and joins what
// was wrong with single events; the result then has what the others say.
func (s *Stream) Result() (state.InferenceResult, error) {
	result := state.InferenceResult{Raw: s.raw.String()}
	errs := s.errs
	body, complete := s.assembler.result()
	complete = complete || s.done
	switch {
	case s.whole:
		return s.wholeResult(result)
	case body == nil:
		complete = false
	default:
		// What was put together is checked, as a body that came whole is.
		checked, err := s.format.object(body.JSON())
		if err == nil {
			err = s.format.respond(&result, checked)
		}
		errs = append(errs, err)
	}
	if !complete && s.failed == nil {
		errs = append(errs, ErrIncomplete)
	}
	return result, errors.Join(errs...)
}

// wholeResult reads a body that came as one JSON text.
func (s *Stream) wholeResult(result state.InferenceResult) (state.InferenceResult, error) {
	body := bytes.TrimPrefix(s.raw.Bytes(), []byte("\ufeff"))
	broken := s.format.located(jsontext.Check(body, jsontext.Limits{Depth: wireDepth + 1}))
	var whole state.InferenceResult
	var err error
	switch {
	case jsontext.Kind(body) == "array":
		events, _ := jsontext.Elements(body) // those that are there
		parts := s.format.Stream()
		for _, event := range events {
			_ = parts.take(event) // reported by its Result
		}
		whole, err = parts.Result()
	case broken == nil:
		whole, err = s.format.DecodeResponse(body)
	}
	if broken != nil {
		err = errors.Join(broken, err)
		if !errors.Is(err, ErrIncomplete) {
			err = errors.Join(err, ErrIncomplete)
		}
	}
	whole.Raw = result.Raw
	return whole, err
}
