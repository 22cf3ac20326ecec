package provider

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// rawBytes is the default of Stream.MaxBytes: a message cannot be longer.
const rawBytes = 64 << 20

// Stream assembles the events of a streamed response into the response that
// would have been sent without streaming. Write the body of the response to it,
// with io.Copy or through an io.TeeReader. If something else splits the body,
// pass each event to Event. A Stream is for one response and one goroutine.
type Stream struct {
	// OnDelta is called with each piece of text, of thinking and of the input
	// of a call, within the call of Write, Event or Result that takes the event
	// with it. Set it before the first of these. The texts are not masked: see
	// state.State.Redactor. A body that is one JSON text has no deltas.
	OnDelta func(Delta)

	// MaxBytes limits Raw (default 64 MiB; negative: no limit). Set it before the
	// first byte.
	MaxBytes int

	format    *Format
	assembler codec.Assembler
	raw       bytes.Buffer
	events    eventReader
	begun     bool // a byte has been written that is not a space
	whole     bool // the body is JSON, not server-sent events

	// The events so far.
	said   codec.Summary
	count  int
	done   bool    // one was "[DONE]"
	failed bool    // one was a ResponseError
	halves bool    // one had halves of characters
	half   Delta   // the beginning of a character that the next piece may have
	errs   []error // of events that could not be used
	over   *Error  // what passed the limit, nil if nothing did
}

// Stream returns a Stream for a response in the format.
func (f *Format) Stream() *Stream {
	s := &Stream{format: f}
	s.assembler = f.codec.NewAssembler(s.emit)
	s.events.take = func(name string, data []byte) { _ = s.take(name, data) } // Result reports the error
	s.events.keep = s.keep
	return s
}

// Write takes the next bytes of the body: server-sent events, as the HTML
// standard defines text/event-stream, or the JSON array that Gemini sends
// unless it is asked for events. It fails only if Raw would be longer than
// MaxBytes, with an [Error] that Result returns, too: the stream takes nothing
// from then on. [Stream.Result] reports all other problems.
func (s *Stream) Write(p []byte) (int, error) {
	if s.over == nil {
		s.write(p)
	}
	if s.over != nil {
		return 0, s.over
	}
	return len(p), nil
}

func (s *Stream) write(p []byte) {
	rest := p
	for !s.begun && len(rest) > 0 {
		if strings.IndexByte(" \t\r\n\ufeff", rest[0]) >= 0 { // a space, or a byte of the mark
			rest = rest[1:]
			continue
		}
		s.begun, s.whole = true, rest[0] == '[' || rest[0] == '{'
	}
	if s.whole {
		s.keep(p)
	} else if s.keep(p[:len(p)-len(rest)]) {
		s.events.write(rest)
	}
}

// keep appends to Raw. It returns false if that is full.
func (s *Stream) keep(p []byte) bool {
	limit := s.MaxBytes
	if limit == 0 {
		limit = rawBytes
	}
	if s.over == nil && limit > 0 && s.raw.Len()+len(p) > limit {
		over := fault.LimitError{Path: "$", Name: "MaxBytes", Limit: limit, Got: s.raw.Len() + len(p)}
		s.over = s.format.wrapError(&over).(*Error)
	}
	if s.over == nil {
		s.raw.Write(p)
	}
	return s.over == nil
}

// Event takes the data of the next event, a JSON object or "[DONE]". For
// anything else it returns an [Error], which is also part of what Result
// returns. The stream goes on. Raw has one line for each event.
func (s *Stream) Event(data []byte) error {
	if !s.keep(data) || !s.keep([]byte("\n")) {
		return s.over
	}
	return s.take("", data)
}

// take takes the data of an event, which may have a name. One that the format does
// not know may have data of any kind.
func (s *Stream) take(name string, data []byte) error {
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
	event, err := s.readEvent(bytes.Clone(trimmed))
	switch isNamed := name != "" && name != "message" && name != "error"; {
	case err == nil:
		err = s.addEvent(event)
	case isNamed && !s.format.codec.IsPiece(name, trimmed):
		return nil
	}
	if err != nil {
		var failed *ResponseError
		s.failed = s.failed || errors.As(err, &failed)
		err = fmt.Errorf("event %d: %w", index, err)
		s.errs = append(s.errs, err)
	}
	return err
}

func (s *Stream) addEvent(event jsontext.Object) error {
	s.format.codec.Summarize(&s.said, event)
	err := s.format.codec.Failure(event)
	if err == nil {
		err = s.assembler.Add(event)
	}
	return s.format.wrapError(err)
}

// readEvent is readObject for an event, whose texts may begin and end with a half
// of a surrogate pair: the next event has the other one.
func (s *Stream) readEvent(data []byte) (jsontext.Object, error) {
	event, err := s.format.readObject(data)
	if err == nil || jsontext.Check(data, jsontext.Limits{Depth: codec.BodyDepth, Halves: true}) != nil {
		return event, err
	}
	if _, foreign := s.format.codec.(*foreign); foreign { // its table reads JSON
		return s.format.readObject(jsontext.Mended(data))
	}
	members, broken := jsontext.Members(data)
	if broken != nil {
		return nil, err
	}
	s.halves = true
	return members, nil
}

// Done reports whether the provider's last event has come: nothing of the
// response can follow. For Chat Completions this is "[DONE]", since the usage of
// tokens follows the end of the text. Some servers end the body without it, and
// Gemini has no last event: there, Done is false. It is also false for a body
// that is one JSON text, and after an error of the provider.
func (s *Stream) Done() bool { return !s.failed && (s.done || s.assembler.Ended()) }

// Failed reports whether the provider has reported an error in an event: Result
// returns it.
func (s *Stream) Failed() bool { return s.failed }

// Result returns what has come so far, as [Format.DecodeResponse] returns it
// for the whole response. It may be called again, and between writes. An event
// at the end counts without the empty line after it. Raw is what was written,
// byte for byte, without the comments of server-sent events. The error is
// [ErrIncomplete] if the end is missing, joined with the errors of single events.
// The result then contains the data of the other events.
func (s *Stream) Result() (state.InferenceResult, error) {
	result := state.InferenceResult{Raw: s.raw.String()}
	if s.over != nil {
		return result, s.over
	}
	if s.whole {
		return s.wholeResult(result)
	}
	s.events.takeLast()
	errs := slices.Clip(s.errs)
	body, complete := s.assembler.Result()
	if body != nil { // it is checked, as a body that comes whole is
		checked, err := s.format.readResponse(body.JSON())
		if err == nil {
			err = s.format.setResponse(&result, checked)
		}
		result.Usage = s.said.Usage
		errs = append(errs, err)
	}
	if !s.failed && (body == nil || !complete && !s.done) {
		errs = append(errs, ErrIncomplete)
	} else {
		s.emitHalf()
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
			_ = parts.take("", event) // reported by Result
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

// Delta is a piece of a streamed response, as it comes.
type Delta struct {
	Kind DeltaKind

	// Text is what is new. The pieces of an input make its JSON. The first
	// piece of an input comes when the call begins, and may be empty.
	Text string

	// Call is the call of an input: how many calls began before it. CallID and
	// Name are known when the call begins. CallID is empty if the provider gives
	// calls no ids.
	Call   int
	CallID string
	Name   string
}

// DeltaKind is what a [Delta] is a piece of.
type DeltaKind uint8

// The kinds of deltas.
const (
	DeltaText     = DeltaKind(codec.DeltaText)     // a text, or a refusal
	DeltaThinking = DeltaKind(codec.DeltaThinking) // the model's thinking, or a summary of it
	DeltaInput    = DeltaKind(codec.DeltaInput)    // the input of a call that the client is to run
)

func (k DeltaKind) String() string {
	switch k {
	case DeltaText:
		return "text"
	case DeltaThinking:
		return "thinking"
	case DeltaInput:
		return "input"
	}
	return "none"
}

// emit passes a piece to OnDelta. What it has of a character whose rest may come is
// part of the next piece.
func (s *Stream) emit(d codec.Delta) {
	if s.OnDelta == nil {
		return
	}
	piece := Delta{Kind: DeltaKind(d.Kind), Text: d.Text, Call: d.Call, CallID: d.ID, Name: d.Name}
	if s.halves {
		if half := s.half; half.Text != "" && half.Kind == piece.Kind && half.Call == piece.Call {
			piece.Text, s.half.Text = half.Text+piece.Text, ""
		}
		s.emitHalf()
		s.half = piece
		piece.Text, s.half.Text = jsontext.CutHalf(piece.Text)
		if piece.Text = jsontext.Whole(piece.Text); piece.Text == "" && s.half.Text != "" {
			return
		}
	}
	s.OnDelta(piece)
}

// emitHalf passes on what has come of a character whose rest does not come.
func (s *Stream) emitHalf() {
	if half := s.half; half.Text != "" && s.OnDelta != nil {
		half.Text, s.half.Text = jsontext.Whole(half.Text), ""
		s.OnDelta(half)
	}
}
