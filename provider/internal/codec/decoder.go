package codec

import (
	"errors"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// The types of messages.
const (
	TypeText   = "text"
	TypeCall   = "tool_call"
	TypeResult = "tool_result"
)

// Decoder makes the messages of a body. The faults that it returns have the
// path $: the caller knows where the JSON of the message is.
type Decoder struct {
	Messages []state.Message

	mark  string            // the member of a message that holds what is kept
	names map[string]string // the name of the latest call of each id
}

// NewDecoder returns a decoder for the format of the mark.
func NewDecoder(mark string) *Decoder { return &Decoder{mark: mark} }

// Call is a call in the notation of a format.
type Call struct {
	ID, Name string
	Input    []byte          // nil if missing
	Kept     jsontext.Object // for the format
}

// Result is the result of a call in the notation of a format.
type Result struct {
	ID      string
	Name    string          // empty for the name of the call
	Content []byte          // nil if missing
	IsError []byte          // a JSON bool, nil if missing
	Kept    jsontext.Object // for the format
}

// AddText adds a text message.
func (d *Decoder) AddText(role string, content []byte, kept jsontext.Object) error {
	held := d.kept(kept)
	if kind := jsontext.Kind(content); kind != "string" && kind != "nothing" {
		held.Value = kept.JSON() // parts are in the notation of the format, even if nothing is kept
	}
	return d.add(TypeText, role, newMember("content", content), held)
}

// AddCalls adds a message with calls.
func (d *Decoder) AddCalls(role string, calls []Call, kept jsontext.Object) error {
	if d.names == nil {
		d.names = map[string]string{}
	}
	tools := make([][]byte, len(calls))
	for i, c := range calls {
		tools[i] = toolJSON(c.ID, c.Name, newMember("input", c.Input), d.kept(c.Kept))
		d.names[c.ID] = c.Name
	}
	return d.add(TypeCall, role, newMember("tools", jsontext.Array(tools)), newMember(d.mark, kept.JSON()))
}

// CallName returns the name of the latest call that has the id.
func (d *Decoder) CallName(id string) string { return d.names[id] }

// AddResult adds the result of a call.
func (d *Decoder) AddResult(r Result) error {
	if r.Name == "" {
		r.Name = d.CallName(r.ID)
	}
	return d.add(TypeResult, TypeResult, newMember("tool", toolJSON(r.ID, r.Name)),
		newMember("content", r.Content), newMember("is_error", r.IsError), newMember(d.mark, r.Kept.JSON()))
}

// AddItem adds an entry of a type that no other message has, as it was sent.
func (d *Decoder) AddItem(role, typ string, entry []byte) error {
	return d.add(d.mark+"."+typ, role, newMember(origin.Item, entry))
}

// WouldJoin reports whether an encoder would write a message of this type and
// role into the entry of the message before it, unless it is told otherwise.
func (d *Decoder) WouldJoin(typ, role string) bool {
	if len(d.Messages) == 0 {
		return false
	}
	before := d.Messages[len(d.Messages)-1]
	switch typ {
	case TypeCall:
		return before.Role() == role && (before.Type() == TypeText || before.Type() == TypeCall)
	case TypeResult:
		return before.Type() == TypeResult
	}
	return false
}

// SetStopReason sets on the last message why the model stopped. Reasons that
// all providers have get one name.
func (d *Decoder) SetStopReason(reason []byte) {
	if jsontext.IsNull(reason) || len(d.Messages) == 0 {
		return
	}
	switch state.JSON(reason).Text() {
	case "end_turn", "STOP", "completed":
		reason = []byte(`"stop"`)
	case "tool_calls", "function_call", "tool_use":
		reason = []byte(`"tool"`)
	}
	last := len(d.Messages) - 1
	if m, err := origin.WithMember(d.Messages[last], "stop_reason", reason); err == nil {
		d.Messages[last] = m
	}
}

// add adds a message of members that are parts of the checked body, or were
// made of such parts.
func (d *Decoder) add(typ, role string, members ...jsontext.Member) error {
	object := make(jsontext.Object, 0, 2+len(members))
	object = append(object, textMember("type", typ), textMember("role", role))
	msg, err := internal.DecodeChecked(append(object, members...).JSON())
	if err != nil {
		return messageFault(err)
	}
	d.Messages = append(d.Messages, msg.(state.Message))
	return nil
}

// messageFault returns the fault of a body of which no message can be made.
func messageFault(err error) error {
	var wrong *state.TypeError
	var limit *state.LimitError
	switch {
	case errors.As(err, &wrong):
		inside := fault.Error{Path: wrong.Path, Want: wrong.Want, Got: wrong.Got}
		return &fault.Error{Path: "$", Got: "in the message made of it, " + inside.Error()}
	case errors.As(err, &limit):
		return &fault.LimitError{Path: "$", Name: limit.Name, Limit: limit.Limit, Got: limit.Got}
	}
	return err
}

// kept returns the member for what is kept, one without a value if that is
// nothing.
func (d *Decoder) kept(kept jsontext.Object) jsontext.Member {
	if len(kept) == 0 {
		return newMember(d.mark, nil)
	}
	return newMember(d.mark, kept.JSON())
}

func toolJSON(id, name string, members ...jsontext.Member) []byte {
	tool := make(jsontext.Object, 0, 3+len(members))
	tool = append(tool, textMember("type", "tool"), textMember("id", id), textMember("name", name))
	return append(tool, members...).JSON()
}

// newMember returns a member. One without a value is left out of the JSON.
func newMember(name string, value []byte) jsontext.Member {
	return jsontext.Member{Name: name, Value: value}
}

func textMember(name, content string) jsontext.Member {
	return newMember(name, jsontext.AppendQuote(nil, content))
}
