// Package codec holds what the formats of package provider share.
//
// A [Format] turns the JSON of one API into messages and back. It decodes into
// a [Decoder], which makes messages, and encodes with an [Encoder], which knows
// what a message keeps of the JSON it came from. A [Table] does both for an API
// of which it has the words. [Difference] and [Restore] make the round trip
// exact. A [Part] is a part of a message in no format's words.
//
// Data flows one way: a format uses this package, and no other format.
package codec

import (
	"strconv"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Depths of JSON. The messages made of a body add levels to it, and a message
// has at most 64.
const (
	BodyDepth  = 56
	InputDepth = 56 // of arguments that are written as a string
)

// Format reads and writes the JSON of one API. Its errors are faults, whose
// paths begin at the body or the event, or a [Failure].
type Format interface {
	// DecodeRequest adds the messages of a request to d. It returns the tools and
	// the other members.
	DecodeRequest(d *Decoder, body jsontext.Object) (Request, error)

	// OwnMembers returns the names of the members of a message of this type, as
	// programs make it, that an entry of the format has too. The type of a
	// single call is TypeOneCall, and that of a tool of a request TypeOffered.
	OwnMembers(typ string) []string

	// EncodeRequest returns the body of a request with the messages.
	EncodeRequest(e *Encoder, r Request, msgs []state.Message) (jsontext.Object, error)

	// DecodeResponse adds the messages of a response to d.
	DecodeResponse(d *Decoder, body jsontext.Object) (Response, error)

	// Failure returns a *Failure if a response, or an event of one, reports
	// nothing but that. The decoder and the assembler report others.
	Failure(body jsontext.Object) error

	// HasForm reports whether a body has the form of a response, or of an event
	// of one.
	HasForm(body jsontext.Object) bool

	// IsPiece reports whether an event of this name, with data that is no JSON
	// object, may have been a piece of a response.
	IsPiece(name string, data []byte) bool

	// Summarize sets what a response, or an event of one, says of itself.
	Summarize(s *Summary, body jsontext.Object)

	// NewAssembler returns an assembler for one streamed response. It calls emit
	// with each piece of it.
	NewAssembler(emit func(Delta)) Assembler
}

// Request is what a request says besides its messages.
type Request struct {
	Tools    []Tool          // nil if nothing was offered
	Settings jsontext.Object // the other members
}

// Response is what a response says besides its messages.
type Response struct {
	ID      string
	Stop    []byte // why the model stopped, as JSON
	Stops   Stops  // what the words mean of which Stop is one
	Refused bool   // the model declines to answer, whatever Stop says
	Created time.Time
	Keep    jsontext.Object // of the response, with its last message
}

// Assembler puts the events of a streamed response together.
type Assembler interface {
	// Add takes the next event, which is checked JSON.
	Add(event jsontext.Object) error

	// Result returns the response as if it had not been streamed, nil if
	// nothing has come, and reports whether its end has been seen.
	Result() (body jsontext.Object, complete bool)

	// Ended reports whether nothing of the response can follow.
	Ended() bool
}

// Delta is a piece of a streamed response.
type Delta struct {
	Kind     DeltaKind
	Text     string // what is new, of an input as JSON
	Call     int    // the number of calls that began before that of an input
	ID, Name string // of the call
}

// DeltaKind says what a delta is a piece of.
type DeltaKind uint8

// The kinds of deltas.
const (
	DeltaText DeltaKind = iota + 1
	DeltaThinking
	DeltaInput
)

// Failure is an error that the provider reports in a body or an event.
type Failure struct {
	Code    string // the provider's type or code of the error
	Message string
}

func (f *Failure) Error() string {
	return "the provider reports an error of type " + fault.Quote(f.Code)
}

// Reporting is the part of a [Format] whose failures are a member error.
type Reporting struct{}

// Failure returns a *Failure if a body has an error and no output.
func (Reporting) Failure(body jsontext.Object) error {
	for _, name := range []string{"choices", "output", "content", "candidates"} {
		if !jsontext.IsNull(body.Get(name)) {
			return nil
		}
	}
	return ReportedFailure(body)
}

// ReportedFailure returns a *Failure if a body, or an event, has an error.
func ReportedFailure(body jsontext.Object) error {
	reported := body.Get("error")
	if jsontext.IsNull(reported) {
		return nil
	}
	if jsontext.Kind(reported) != "object" {
		return &Failure{Message: state.JSON(reported).Text()}
	}
	details := body.Object("error")
	failure := &Failure{Message: state.JSON(details.Get("message")).Text()}
	for _, name := range []string{"type", "status", "code"} {
		if code := details.Get(name); failure.Code == "" && !jsontext.IsNull(code) {
			failure.Code = state.JSON(code).Text()
		}
	}
	return failure
}

// UnixTime returns the time of a JSON number of seconds, which some providers
// send with a fraction. It returns the zero time for any other value.
func UnixTime(value []byte) time.Time {
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return time.Time{}
	}
	return UnixSeconds(seconds)
}

// UnixSeconds returns a time in UTC, the zero time if JSON cannot express it.
func UnixSeconds(seconds float64) time.Time {
	const year9999 = 253402300799
	if seconds < 1 || seconds > year9999 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
}

// Summary is what a response says of itself and its cost.
type Summary struct {
	Model, ID, StopReason string
	state.Usage
}

// Identify sets the model, the id and the reason of the end to values that are
// not empty.
func (u *Summary) Identify(model, id string, stop []byte) {
	set := func(to *string, value string) {
		if value != "" {
			*to = value
		}
	}
	set(&u.Model, model)
	set(&u.ID, id)
	set(&u.StopReason, StopReason(stop))
}

// Report sets the counts that are reported. A zero does not undo what was reported
// before: some servers end a stream with zeros.
func (u *Summary) Report(counts state.Usage) {
	set := func(count *int, n int) {
		if n > 0 {
			*count = n
		}
	}
	set(&u.Input, counts.Input)
	set(&u.Output, counts.Output)
	set(&u.CacheRead, counts.CacheRead)
	set(&u.CacheWrite, counts.CacheWrite)
	set(&u.Reasoning, counts.Reasoning)
}

// SetCount sets a count to the first member that is a count.
func SetCount(count *int, members jsontext.Object, names ...string) {
	for _, name := range names {
		if n, err := strconv.Atoi(string(members.Get(name))); err == nil && n >= 0 {
			*count = n
			return
		}
	}
}
