package form

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentstate/state/internal/jsontext"
)

// Decode reads a form. It refuses members that the format does not have.
func Decode(data []byte) (*State, error) {
	if err := jsontext.Check(data, jsontext.Limits{Depth: 10_000}); err != nil {
		return nil, err
	}
	r := jsontext.ReadObject("$", data)
	if err := r.Err(); err != nil {
		return nil, err
	}
	// Another format may have other members.
	s := &State{Format: r.Int("format")}
	if s.Format != Format {
		return nil, fmt.Errorf("format %d; this package reads format %d", s.Format, Format)
	}
	d := decoder{}
	s.Version = d.uint(r, "version")
	decodeList(&d, r, "counts", &s.Counts, d.count)
	decodeList(&d, r, "fields", &s.Fields, d.field)
	decodeList(&d, r, "keys", &s.Keys, d.field)
	if r.Value("conversation") != nil {
		runs := d.runs(r, "conversation")
		s.Conversation = &runs
	}
	decodeList(&d, r, "results", &s.Results, d.result)
	for _, m := range r.Elements("messages") {
		s.Messages = append(s.Messages, json.RawMessage(m))
	}
	d.end(r)
	return s, d.err
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

func (d *decoder) field(r *jsontext.Reader) Field {
	return Field{Name: r.String("name"), Value: json.RawMessage(r.Value("value"))}
}

func (d *decoder) count(r *jsontext.Reader) Count {
	c := Count{Versions: d.uint(r, "versions")}
	for _, class := range r.Elements("classes") {
		var readers []string
		if err := json.Unmarshal(class, &readers); err != nil {
			r.Fault("classes", "lists of names", "other JSON")
		}
		c.Classes = append(c.Classes, readers)
	}
	return c
}

func (d *decoder) result(r *jsontext.Reader) Result {
	return Result{
		ID: r.String("id"), Agent: r.String("agent"), Input: r.String("input"),
		Prompt: d.runs(r, "prompt"), History: d.runs(r, "history"),
		Output: d.runs(r, "output"), ToolCalls: d.runs(r, "tool_calls"),
		Raw: r.String("raw"), RawBytes: r.String("raw_base64"),
		CreatedAt: d.time(r, "created_at"),
	}
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
		if err := runs[i].UnmarshalJSON(data); err != nil {
			d.fail(fmt.Errorf("%s: %w", jsontext.Index(r.Path(name), i), err))
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
