package codec

import (
	"errors"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// The types of messages.
const (
	TypeText   = "text"
	TypeCall   = "tool_call"
	TypeResult = "tool_result"

	TypeOneCall = "tool"         // an element of a message with calls
	TypeOffered = "offered tool" // of a request
)

// textBytes is the capacity for the text of the first message of a Decoder.
const textBytes = 256

// Decoder makes the messages of a body. The faults that it returns have the
// path $: the caller knows where the JSON of the message is.
type Decoder struct {
	Messages []state.Message

	mark  string            // the member of a message that holds what is kept
	added jsontext.Object   // more members of the next message
	calls []string          // the ids and names of the calls, in turns
	names map[string]string // the name of the latest call of each id, for the first named of calls
	named int
	text  []byte // of the message that is being made; all share its memory
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
	d.begin(TypeText, role)
	d.addMember("content", content)
	switch kind := jsontext.Kind(content); {
	case kind != "string" && kind != "nothing": // parts are in the notation of the format, even if nothing is kept
		d.addObject(d.mark, kept)
	default:
		d.addKept(kept)
	}
	return d.end()
}

// AddCalls adds a message with calls.
func (d *Decoder) AddCalls(role string, calls []Call, kept jsontext.Object) error {
	d.begin(TypeCall, role)
	d.text = append(jsontext.AppendName(d.text, "tools"), '[')
	for i, c := range calls {
		if i > 0 {
			d.text = append(d.text, ',')
		}
		d.beginTool(c.ID, c.Name)
		d.addMember("input", c.Input)
		d.addKept(c.Kept)
		d.text = append(d.text, '}')
		d.calls = append(d.calls, c.ID, c.Name)
	}
	d.text = append(d.text, ']')
	d.addObject(d.mark, kept)
	return d.end()
}

// SentText returns the JSON of a member that is a string, that of the empty text
// for any other value. A plain object with it needs no text to be quoted again.
func SentText(sent jsontext.Object, name string) []byte {
	if value := sent.Get(name); jsontext.Kind(value) == "string" {
		return value
	}
	return []byte(`""`)
}

// CallName returns the name of the latest call that has the id.
func (d *Decoder) CallName(id string) string {
	if d.names == nil && len(d.calls) > 0 {
		d.names = map[string]string{}
	}
	for ; d.named < len(d.calls); d.named += 2 {
		d.names[d.calls[d.named]] = d.calls[d.named+1]
	}
	return d.names[id]
}

// AddResult adds the result of a call.
func (d *Decoder) AddResult(r Result) error {
	if r.Name == "" {
		r.Name = d.CallName(r.ID)
	}
	d.begin(TypeResult, TypeResult)
	d.text = jsontext.AppendName(d.text, "tool")
	d.beginTool(r.ID, r.Name)
	d.text = append(d.text, '}')
	d.addMember("content", r.Content)
	d.addMember("is_error", r.IsError)
	d.addObject(d.mark, r.Kept)
	return d.end()
}

// AddItem adds an entry of a type that no other message has, as it was sent.
func (d *Decoder) AddItem(role, typ string, entry []byte) error {
	d.begin(d.mark+"."+typ, role)
	d.addMember(origin.Item, entry)
	return d.end()
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

// SetStopReason sets on the last message why the model stopped.
func (d *Decoder) SetStopReason(reason []byte) {
	if jsontext.IsNull(reason) || len(d.Messages) == 0 {
		return
	}
	if name := StopReason(reason); name != state.JSON(reason).Text() {
		reason = jsontext.AppendQuote(nil, name)
	}
	d.setOnLast("stop_reason", reason)
}

// setOnLast sets a member of the last message.
func (d *Decoder) setOnLast(name string, value []byte) {
	last := len(d.Messages) - 1
	members, _ := jsontext.Members([]byte(d.Messages[last].Raw())) // made here
	if m, err := messages_.DecodeChecked(members.With(name, value).JSON()); err == nil {
		d.Messages[last] = m
	}
}

// Keep adds members to what the last message keeps for the format.
func (d *Decoder) Keep(members jsontext.Object) {
	if len(members) == 0 || len(d.Messages) == 0 {
		return
	}
	kept, _ := origin.Of(d.Messages[len(d.Messages)-1], d.mark)
	for _, m := range members {
		kept = kept.With(m.Name, m.Value)
	}
	d.setOnLast(d.mark, kept.JSON())
}

// StopReason returns the name of a reason. Reasons that all providers have get
// one name.
func StopReason(reason []byte) string {
	if jsontext.IsNull(reason) {
		return ""
	}
	return StopName(state.JSON(reason).Text())
}

// StopName is [StopReason] for a reason that is a text.
func StopName(reason string) string {
	switch reason {
	case "end_turn", "STOP", "completed":
		return "stop"
	case "tool_calls", "function_call", "tool_use":
		return "tool"
	}
	return reason
}

// begin begins the text of a message.
func (d *Decoder) begin(typ, role string) {
	if d.text == nil {
		d.text = make([]byte, 0, textBytes)
	}
	d.text = append(d.text[:0], '{')
	d.addText("type", typ)
	d.addText("role", role)
}

// beginTool begins a call in the text of a message.
func (d *Decoder) beginTool(id, name string) {
	d.text = append(d.text, `{"type":"tool"`...)
	d.addText("id", id)
	d.addText("name", name)
}

// addMember adds a member, unless it has no value. The value is a part of the
// checked body, or was made of such parts.
func (d *Decoder) addMember(name string, value []byte) {
	d.text = jsontext.AppendMember(d.text, name, value)
}

func (d *Decoder) addText(name, content string) {
	d.text = jsontext.AppendQuote(jsontext.AppendName(d.text, name), content)
}

func (d *Decoder) addObject(name string, value jsontext.Object) {
	d.text = value.AppendJSON(jsontext.AppendName(d.text, name))
}

// addKept adds what is kept, unless that is nothing.
func (d *Decoder) addKept(kept jsontext.Object) {
	if len(kept) > 0 {
		d.addObject(d.mark, kept)
	}
}

// SetMember sets a member of the next message, unless the text is empty.
func (d *Decoder) SetMember(name, text string) {
	if text != "" {
		d.added = append(d.added, jsontext.Member{Name: name, Value: jsontext.AppendQuote(nil, text)})
	}
}

// end adds the message.
func (d *Decoder) end() error {
	for _, m := range d.added {
		d.addMember(m.Name, m.Value)
	}
	d.added = d.added[:0]
	msg, err := messages_.DecodeChecked(append(d.text, '}'))
	if err != nil {
		return messageFault(err)
	}
	d.Messages = append(d.Messages, msg)
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
