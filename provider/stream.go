package provider

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Stream assembles the events of a streamed response into the response that
// would have been sent without streaming. Write the body of the response to it,
// with io.Copy or through an io.TeeReader. If something else splits the body,
// pass each event to Event. A Stream is for one response and one goroutine.
type Stream struct {
	format    *Format
	assembler codec.Assembler
	raw       bytes.Buffer

	// The body so far.
	line    []byte // that has not ended
	data    []byte // of the event that has not ended
	inEvent bool   // data has been set
	begun   bool   // a byte has been written that is not a space
	whole   bool   // the body is JSON, not server-sent events
	afterCR bool   // the last byte was a CR

	// The events so far.
	count  int
	done   bool    // one was "[DONE]"
	failed bool    // one was a ResponseError
	errs   []error // of events that could not be used
}

// Stream returns a Stream for a response in the format.
func (f *Format) Stream() *Stream {
	return &Stream{format: f, assembler: f.codec.NewAssembler()}
}

// Write takes the next bytes of the body: server-sent events, as the HTML
// standard defines text/event-stream, or the JSON array that Gemini sends
// unless it is asked for events. It never fails: [Stream.Result] reports
// problems.
func (s *Stream) Write(p []byte) (int, error) {
	s.raw.Write(p)
	rest := p
	for !s.begun && len(rest) > 0 {
		if strings.IndexByte(" \t\r\n\ufeff", rest[0]) >= 0 { // a space, or a byte of the mark
			rest = rest[1:]
			continue
		}
		s.begun, s.whole = true, rest[0] == '[' || rest[0] == '{'
	}
	if s.whole {
		return len(p), nil
	}
	for len(rest) > 0 {
		if s.afterCR && rest[0] == '\n' {
			s.afterCR, rest = false, rest[1:]
			continue
		}
		s.afterCR = false
		n := bytes.IndexAny(rest, "\r\n")
		if n < 0 {
			s.line = append(s.line, rest...)
			break
		}
		s.afterCR = rest[n] == '\r'
		s.endLine(append(s.line, rest[:n]...))
		s.line = s.line[:0]
		rest = rest[n+1:]
	}
	return len(p), nil
}

// endLine takes a line of text/event-stream. Only data counts, because all
// formats repeat the type of the event there.
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

// Event takes the data of the next event, a JSON object or "[DONE]". For
// anything else it returns an [Error], which is also part of what Result
// returns. The stream goes on. Raw has one line for each event.
func (s *Stream) Event(data []byte) error {
	s.raw.Write(data)
	s.raw.WriteByte('\n')
	return s.take(data)
}

func (s *Stream) take(data []byte) error {
	index := s.count
	s.count++
	trimmed := bytes.TrimSpace(data)
	if string(trimmed) == "[DONE]" {
		s.done = true
		return nil
	}
	if len(trimmed) == 0 {
		return nil
	}
	err := s.addEvent(bytes.Clone(trimmed))
	if err != nil {
		var failed *ResponseError
		s.failed = s.failed || errors.As(err, &failed)
		err = fmt.Errorf("event %d: %w", index, err)
		s.errs = append(s.errs, err)
	}
	return err
}

func (s *Stream) addEvent(data []byte) error {
	event, err := s.format.readObject(data)
	if err != nil {
		return err
	}
	err = reportedFailure(event)
	if err == nil {
		err = s.assembler.Add(event)
	}
	return s.format.wrapError(err)
}

// Result returns what has come so far, as [Format.DecodeResponse] returns it
// for the whole response. Raw is what was written, byte for byte. The error is
// [ErrIncomplete] if the end is missing, joined with the errors of single
// events. The result then contains the data of the other events.
func (s *Stream) Result() (state.InferenceResult, error) {
	result := state.InferenceResult{Raw: s.raw.String()}
	if s.whole {
		return s.wholeResult(result)
	}
	errs := s.errs
	body, complete := s.assembler.Result()
	if body != nil { // it is checked, as a body that comes whole is
		checked, err := s.format.readObject(body.JSON())
		if err == nil {
			err = s.format.setResponse(&result, checked)
		}
		errs = append(errs, err)
	}
	if !s.failed && (body == nil || !complete && !s.done) {
		errs = append(errs, ErrIncomplete)
	}
	return result, errors.Join(errs...)
}

// wholeResult reads a body that came as one JSON text.
func (s *Stream) wholeResult(result state.InferenceResult) (state.InferenceResult, error) {
	body := bytes.TrimPrefix(s.raw.Bytes(), []byte("\ufeff"))
	broken := s.format.wrapError(jsontext.Check(body, jsontext.Limits{Depth: codec.BodyDepth + 1}))
	var whole state.InferenceResult
	var err error
	switch {
	case jsontext.Kind(body) == "array":
		events, _ := jsontext.Elements(body) // those that have come
		parts := s.format.Stream()
		for _, event := range events {
			_ = parts.take(event) // reported by Result
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
