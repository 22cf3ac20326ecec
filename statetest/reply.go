package statetest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// Reply is one reply of the script of a [Model]: what the model says, on which
// conditions and how often. It is a value. Its methods return a changed copy.
type Reply struct {
	name, text string // how failures show it: Say, and the quoted text

	says []state.Message
	say  func(Request) ([]state.Message, error)
	fail error // a *StatusError, or what breaks the connection

	agent *string
	reads []string
	when  []func(Request) bool

	times int    // 0 stands for 1, negative for any number
	stop  string // the word with which the answer ends, or ""
	cut   int    // the number of pieces that come, if isCut
	isCut bool
}

// pieceSize is the size of the pieces in which a stream has texts and inputs, in
// bytes. A piece ends at the end of a character.
const pieceSize = 8

// Say returns the reply of a model that says a text.
func Say(text string) Reply {
	return Reply{name: "Say", text: strconv.Quote(text), says: []state.Message{state.AssistantText(text)}}
}

// Call returns the reply of a model that calls a tool. The id of the call is
// made by the Model: call_1, call_2 and so on.
func Call(name string, input state.JSON) Reply {
	r := Calls(state.ToolCall{Name: name, Input: input})
	r.name, r.text = "Call", strconv.Quote(name)+", "+string(input)
	return r
}

// Calls returns the reply of a model that calls several tools in one message. A
// call without an id gets one, as that of [Call].
func Calls(calls ...state.ToolCall) Reply {
	var texts []string
	for _, c := range calls {
		texts = append(texts, c.Name+" "+string(c.Input))
	}
	return Reply{name: "Calls", text: strings.Join(texts, ", "), says: []state.Message{state.ToolCalls(calls...)}}
}

// Answer returns the reply that fn makes of the request. Calls without an id get
// one. An error of fn is what [Model.Next] returns, or what breaks the
// connection. fn may be called by several goroutines.
func Answer(fn func(Request) ([]state.Message, error)) Reply {
	return Reply{name: "Answer", text: "…", say: fn}
}

// Status returns the reply of a server that answers with an HTTP status and a
// body. [Model.Next] returns a [*StatusError].
func Status(code int, body string) Reply {
	return Reply{name: "Status", text: strconv.Itoa(code) + ", …", fail: &StatusError{code, body}}
}

// Fail returns the reply of a connection that breaks with err, which
// [Model.Next] and [Model.RoundTrip] return.
func Fail(err error) Reply { return Reply{name: "Fail", text: err.Error(), fail: err} }

// To restricts the reply to the requests of an agent.
func (r Reply) To(agent string) Reply {
	r.agent = &agent
	return r
}

// Reads restricts the reply to requests with a text in a message: in the prompt,
// in the input of a call or in a result as well.
func (r Reply) Reads(text string) Reply {
	r.reads = append(slices.Clip(r.reads), text)
	return r
}

// When restricts the reply to requests for which fn returns true. fn must be
// pure. It may be called by several goroutines.
func (r Reply) When(fn func(Request) bool) Reply {
	r.when = append(slices.Clip(r.when), fn)
	return r
}

// Times sets how often the reply is given (default 1). -1 stands for any number,
// also none.
func (r Reply) Times(n int) Reply {
	r.times = n
	return r
}

// Stops lets the answer end with a word of the provider, such as "max_tokens" of
// Anthropic (default: that of an answer that has ended well).
func (r Reply) Stops(word string) Reply {
	r.stop = word
	return r
}

// Cut lets the connection break off after a number of pieces: those of a stream
// have 8 bytes of a text or an input, up to the end of a character. A body that is
// not streamed does not come. [Model.Next] returns what has come of a stream and
// [provider.ErrIncomplete].
func (r Reply) Cut(pieces int) Reply {
	r.cut, r.isCut = pieces, true
	return r
}

// shown returns how failures show the reply. Texts are masked before they are
// shortened: half a secret would not be recognised.
func (r Reply) shown(mask func(string) string) string {
	return r.name + "(" + fault.Clip(mask(r.text)) + ")"
}

// lacks returns which conditions do not hold for a request, "" if all hold.
func (r Reply) lacks(request Request, mask func(string) string) string {
	var missing []string
	if r.agent != nil && *r.agent != request.Agent {
		missing = append(missing, "it is for "+cmp.Or(*r.agent, "the agent without a name"))
	}
	for _, text := range r.reads {
		if !request.reads(text) {
			missing = append(missing, "no message says "+strconv.Quote(fault.Clip(mask(text))))
		}
	}
	for _, fn := range r.when {
		if !fn(request) {
			missing = append(missing, "When returns false")
		}
	}
	return strings.Join(missing, ", ")
}

// StatusError is the error of [Model.Next] for a [Status], and for a request
// that the script does not allow.
type StatusError struct {
	Code int
	Body string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("statetest: the model answers with status %d: %s", e.Code, e.Body)
}

// unmasked is for texts that are not printed.
func unmasked(text string) string { return text }
