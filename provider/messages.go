package provider

import (
	"errors"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// decoder collects the messages of a body.
type decoder struct {
	format *Format
	msgs   []state.Message
	names  map[string]string // of the calls so far by their id, the latest of each
}

// call is a call as a format has it.
type call struct {
	id, name string
	input    []byte          // nil if absent
	kept     jsontext.Object // for the format
}

// text adds what somebody says. path is where its content is in the body.
func (d *decoder) text(path, role string, content []byte, kept jsontext.Object) error {
	m := jsontext.Object{}.WithString("type", "text").WithString("role", role).With("content", content)
	if jsontext.Kind(content) == "string" || content == nil {
		return d.add(path, d.marked(m, kept))
	}
	return d.add(path, append(m, jsontext.Member{Name: d.format.mark, Value: kept.JSON()}))
}

// calls adds what an assistant calls.
func (d *decoder) calls(path, role string, calls []call, kept jsontext.Object) error {
	tools := make([][]byte, len(calls))
	for i, c := range calls {
		tools[i] = d.marked(d.tool(c.id, c.name).With("input", c.input), c.kept).JSON()
		d.names[c.id] = c.name
	}
	m := jsontext.Object{}.WithString("type", "tool_call").WithString("role", role).With("tools", jsontext.Array(tools))
	return d.add(path, append(m, jsontext.Member{Name: d.format.mark, Value: kept.JSON()}))
}

// result adds what a tool returned. A name that is empty is that of the call.
// isError is nil, or a JSON bool.
func (d *decoder) result(path, id, name string, content, isError []byte, kept jsontext.Object) error {
	if name == "" {
		name = d.names[id]
	}
	m := jsontext.Object{}.WithString("type", "tool_result").WithString("role", "tool_result").
		With("tool", d.tool(id, name).JSON()).With("content", content).With("is_error", isError)
	return d.add(path, append(m, jsontext.Member{Name: d.format.mark, Value: kept.JSON()}))
}

// item adds an entry of another type as it came.
func (d *decoder) item(path, role, typ string, entry []byte) error {
	m := jsontext.Object{}.WithString("type", d.format.mark+"."+typ).WithString("role", role).With(origin.Item, entry)
	return d.add(path, m)
}

func (d *decoder) tool(id, name string) jsontext.Object {
	if d.names == nil {
		d.names = map[string]string{}
	}
	return jsontext.Object{}.WithString("type", "tool").WithString("id", id).WithString("name", name)
}

// marked adds what is kept for the format, if there is anything.
func (d *decoder) marked(m, kept jsontext.Object) jsontext.Object {
	if len(kept) == 0 {
		return m
	}
	return m.With(d.format.mark, kept.JSON())
}

func (d *decoder) add(path string, m jsontext.Object) error {
	msg, err := state.DecodeMessage(m.JSON())
	if err != nil {
		var bad *state.TypeError
		if errors.As(err, &bad) {
			problem := bad.Got
			if bad.Want != "" {
				problem = "want " + bad.Want + ", got " + bad.Got
			}
			return d.format.problem(path, "in the message made of it, "+bad.Path+": "+problem)
		}
		return &Error{d.format.name, path, "the message made of it is too deep or too large", state.ErrLimitExceeded}
	}
	d.msgs = append(d.msgs, msg)
	return nil
}

// stopped says on the last message why the model stopped. The words that all
// providers have become one.
func (d *decoder) stopped(reason []byte) {
	if kind := jsontext.Kind(reason); kind == "nothing" || kind == "null" || len(d.msgs) == 0 {
		return
	}
	switch state.JSON(reason).Text() {
	case "end_turn", "STOP", "completed":
		reason = []byte(`"stop"`)
	case "tool_calls", "function_call", "tool_use":
		reason = []byte(`"tool"`)
	}
	last := len(d.msgs) - 1
	if m, err := origin.With(d.msgs[last], "stop_reason", reason); err == nil {
		d.msgs[last] = m
	}
}

// encoder writes messages for a format.
type encoder struct {
	format  *Format
	omitted []Omission
}

func (e *encoder) omit(message int, what string) {
	e.omitted = append(e.omitted, Omission{message, what})
}

// kept returns what the message holds for the format. own is false for a message
// that did not come from it, whose content then is not in its words.
func (e *encoder) kept(m state.Message) (kept jsontext.Object, own bool) {
	return origin.Of(m, e.format.mark)
}

// keptOf is kept of a call.
func (e *encoder) keptOf(c state.ToolCall) (kept jsontext.Object, own bool) {
	members, err := jsontext.Members([]byte(c.Extra)) // none if there is no more
	if err != nil {
		return nil, false
	}
	kept, err = jsontext.Members(jsontext.Object(members).Get(e.format.mark))
	return kept, err == nil
}

// arguments returns the value of arguments that are written as a string: an
// object, the text if they are no object, nil if they are empty.
func arguments(text []byte) []byte {
	if jsontext.Kind(text) != "string" {
		return text
	}
	inner := []byte(jsontext.Unquote(text))
	if len(inner) == 0 {
		return nil
	}
	if jsontext.Kind(inner) != "object" || jsontext.Check(inner, jsontext.Limits{Depth: inputDepth}) != nil {
		return text
	}
	return jsontext.AppendCompact(nil, inner)
}

// argumentsText returns the input of a call as a JSON string of its text, which
// is that of an object.
func argumentsText(input state.JSON) []byte {
	if input == "" || input == "null" {
		return []byte(`"{}"`)
	}
	return jsontext.AppendQuote(nil, input.Text())
}

// unix returns a time in UTC, the zero time for 0 and for what no time can be.
func unix(seconds int64) time.Time {
	const year9999 = 253402300799 // JSON has no times after it
	if seconds <= 0 || seconds > year9999 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
