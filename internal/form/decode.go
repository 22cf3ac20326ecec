package form

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value/walk"
)

// maxDepth is the deepest form: three levels around a value.
const maxDepth = walk.MaxDepth + 3

// Decode reads a form. It refuses members that the format does not have.
func Decode(data []byte) (*State, error) {
	if err := jsontext.Check(data, jsontext.Limits{Depth: maxDepth}); err != nil {
		return nil, withoutKeys(err)
	}
	r := jsontext.ReadObject("$", data)
	if err := r.Err(); err != nil {
		return nil, err
	}
	// Another format may have other members.
	s := &State{Format: r.Int("format")}
	switch {
	case r.Has("format"):
	case r.Has("values"):
		return nil, &fault.Error{Path: "$", Got: "the masked view that MarshalJSON writes; use Export"}
	default:
		return nil, &fault.Error{Path: "$", Got: "JSON that Export has not written"}
	}
	if s.Format != Format {
		return nil, &fault.Error{Path: "$", Got: fmt.Sprintf("format %d; this package reads format %d", s.Format, Format)}
	}
	d := decoder{}
	s.Version = d.uint(r, "version")
	s.Fields = d.fields(r, "fields")
	s.Keys = d.fields(r, "keys")
	if r.Value("conversation") != nil {
		runs := d.runs(r, "conversation")
		s.Conversation = &runs
	}
	decodeList(&d, r, "results", &s.Results, d.result)
	for _, m := range r.Elements("messages") {
		s.Messages = append(s.Messages, Message(m))
	}
	d.end(r)
	return s, d.err
}

var valuePath = regexp.MustCompile(`^\$\.(fields|keys)\[\d+\]\.value`)

// withoutKeys returns a fault with a path that has no names from inside a
// value. They may be keys of a map.
func withoutKeys(err error) error {
	if e := fault.As(err); e != nil {
		if outer := valuePath.FindString(e.Path); outer != "" && outer != e.Path {
			moved := *e
			moved.Keyless = outer + "[…]"
			return &moved
		}
	}
	return err
}

// decoder keeps the first error of reading a form.
type decoder struct{ err error }

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) end(r *jsontext.Reader) {
	if err := r.End(); err != nil {
		d.fail(err)
	}
}

// decodeList reads a list of objects.
func decodeList[T any](d *decoder, r *jsontext.Reader, name string, to *[]T, decode func(*jsontext.Reader) T) {
	for i, data := range r.Elements(name) {
		if d.err != nil {
			return
		}
		element := jsontext.ReadObject(jsontext.Index(r.Path(name), i), data)
		*to = append(*to, decode(element))
		d.end(element)
	}
}

// fields reads a list of fields. There may be many, so that a Reader is made
// only for those that are not as AppendJSON writes them.
func (d *decoder) fields(r *jsontext.Reader, name string) []Field {
	elements := r.Elements(name)
	if len(elements) == 0 {
		return nil
	}
	fields := make([]Field, len(elements))
	for i, data := range elements {
		if fields[i].read(data) {
			continue
		}
		element := jsontext.ReadObject(jsontext.Index(r.Path(name), i), data)
		fields[i] = Field{Name: element.String("name"), Value: json.RawMessage(element.Value("value"))}
		d.end(element)
		if d.err != nil {
			return nil
		}
	}
	return fields
}

// read reads a field. It reports false if the text is not an object of a name
// and a value, which are then not set.
func (f *Field) read(data []byte) bool {
	var name, value jsontext.Span
	members := 0
	err := jsontext.EachMember(data, func(member []byte, at jsontext.Span) error {
		switch string(member) {
		case "name":
			name = at
		case "value":
			value = at
		}
		members++
		return nil
	})
	if err != nil || members != 2 || value.To == 0 || jsontext.Kind(name.In(data)) != "string" {
		return false
	}
	f.Name, f.Value = jsontext.Unquote(name.In(data)), value.In(data)
	return true
}

func (d *decoder) result(r *jsontext.Reader) Result {
	return Result{
		ID: r.String("id"), Agent: r.String("agent"), Input: r.String("input"),
		Prompt: d.runs(r, "prompt"), History: d.runs(r, "history"),
		Output: d.runs(r, "output"), ToolCalls: d.runs(r, "tool_calls"),
		Raw: r.String("raw"), RawBytes: r.String("raw_base64"),
		Stop: r.String("stop"), StopWord: r.String("stop_word"),
		Usage: d.usage(r.Object("usage")), StartedAt: d.time(r, "started_at"), CreatedAt: d.time(r, "created_at"),
	}
}

// usage reads the counts of an object, which may be nil.
func (d *decoder) usage(r *jsontext.Reader) Usage {
	if r == nil {
		return Usage{}
	}
	u := Usage{
		Input: r.Int("input"), Output: r.Int("output"),
		CacheRead: r.Int("cache_read"), CacheWrite: r.Int("cache_write"), Reasoning: r.Int("reasoning"),
	}
	d.end(r)
	return u
}

// uint reads a number from 0 to the largest int.
func (d *decoder) uint(r *jsontext.Reader, name string) uint64 {
	n := r.Int(name)
	if n < 0 {
		r.Fault(name, "a number of at least 0", "a negative number")
		return 0
	}
	return uint64(n)
}

func (d *decoder) runs(r *jsontext.Reader, name string) []Run {
	elements := r.Elements(name)
	if elements == nil {
		return nil
	}
	runs := make([]Run, len(elements))
	for i, data := range elements {
		if runs[i].UnmarshalJSON(data) != nil {
			d.fail(fault.Under(jsontext.Index(r.Path(name), i), errRun))
		}
	}
	return runs
}

func (d *decoder) time(r *jsontext.Reader, name string) time.Time {
	var t time.Time
	if text := r.String(name); text != "" {
		if err := t.UnmarshalText([]byte(text)); err != nil {
			r.Fault(name, "a time as in RFC 3339", "another text")
		}
	}
	return t
}
