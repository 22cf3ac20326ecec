package workspace

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// document is the content of a workspace: parts, each with fields, each with a
// JSON value. What is in parts and fields that this package does not know stays as
// it is. It may be read by many goroutines, as long as nobody changes it.
type document struct {
	parts map[string]map[string]*cell // none of the parts is empty
	table atomic.Pointer[table]       // of partMessage; nil if it is to be made
}

func newDocument() *document {
	return &document{parts: map[string]map[string]*cell{}}
}

// decodeDocument reads what encode wrote.
func decodeDocument(data []byte) (*document, error) {
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: content: %w", ErrCorrupt, err)
	}
	parts, err := jsontext.Members(data)
	if err != nil {
		return nil, fmt.Errorf("%w: content: %w", ErrCorrupt, err)
	}
	d := newDocument()
	for _, part := range parts {
		fields, err := jsontext.Members(part.Value)
		if err != nil {
			return nil, corrupt("content", jsontext.Path("$", part.Name)+": want object, got "+jsontext.Kind(part.Value))
		}
		for _, f := range fields {
			text := jsontext.AppendCompact(make([]byte, 0, len(f.Value)), f.Value)
			d.put(part.Name, f.Name, &cell{text: state.JSON(text)})
		}
	}
	return d, nil
}

// encode returns the document as JSON, compact and sorted: the same content gives
// the same bytes.
func (d *document) encode() []byte {
	var b bytes.Buffer
	separate := func(i int) {
		if i > 0 {
			b.WriteByte(',')
		}
	}
	b.WriteByte('{')
	for i, part := range slices.Sorted(maps.Keys(d.parts)) {
		separate(i)
		b.Write(jsontext.AppendQuote(b.AvailableBuffer(), part))
		b.WriteString(":{")
		fields := d.parts[part]
		for i, field := range slices.Sorted(maps.Keys(fields)) {
			separate(i)
			b.Write(jsontext.AppendQuote(b.AvailableBuffer(), field))
			b.WriteByte(':')
			b.WriteString(string(fields[field].json()))
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.Bytes()
}

// clone returns a document with the same content, which shares the values.
func (d *document) clone() *document {
	c := newDocument()
	for part, fields := range d.parts {
		c.parts[part] = maps.Clone(fields)
	}
	return c
}

// get returns the value of a field, nil if there is none.
func (d *document) get(part, field string) *cell { return d.parts[part][field] }

// fields returns the values in a part.
func (d *document) fields(part string) map[string][]byte {
	fields := make(map[string][]byte, len(d.parts[part]))
	for field, c := range d.parts[part] {
		fields[field] = []byte(c.json())
	}
	return fields
}

// put sets a field, or deletes it if there is no value.
func (d *document) put(part, field string, c *cell) {
	if part == partMessage {
		d.index(field, c)
	}
	fields := d.parts[part]
	switch {
	case c != nil && fields == nil:
		d.parts[part] = map[string]*cell{field: c}
	case c != nil:
		fields[field] = c
	default:
		if delete(fields, field); len(fields) == 0 {
			delete(d.parts, part)
		}
	}
}

// apply applies all effects, or none and returns an error.
func (d *document) apply(effects []Effect) error {
	before := make([]*cell, len(effects))
	for i := range effects {
		e := &effects[i]
		before[i] = d.get(e.Part, e.Field)
		after, problem := e.on(before[i])
		if problem != "" {
			for j := i - 1; j >= 0; j-- {
				d.put(effects[j].Part, effects[j].Field, before[j])
			}
			return fmt.Errorf("%w: effect %d, %q of %q in %q: %s",
				ErrCorrupt, i, fault.Clip(e.Do), fault.Clip(e.Field), fault.Clip(e.Part), problem)
		}
		d.put(e.Part, e.Field, after)
	}
	return nil
}

// diff returns the effects that turn the content into an earlier one. The version
// of the state is not turned back but goes on.
func (d *document) diff(to *document) []Effect {
	var effects []Effect
	for _, part := range union(d.parts, to.parts) {
		for _, field := range union(d.parts[part], to.parts[part]) {
			a, b := d.get(part, field), to.get(part, field)
			if a == b || part == partTalk && field == talkVersion {
				continue
			}
			effects = append(effects, turnInto(part, field, a, b)...)
		}
	}
	if next, err := d.nextVersion(); err == nil && len(effects) > 0 {
		effects = append(effects, next)
	}
	return effects
}

// union returns the keys of both, sorted.
func union[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
