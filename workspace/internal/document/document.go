// Package document holds the content of a workspace as JSON: parts, each with
// named fields. It applies effects to a document, makes the effects that store
// what changed in a State, and makes a State of a document.
//
// It knows nothing of stores, heads and runs. Parts and fields that it does not
// know stay as they are, so that a program preserves what a newer one wrote.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// ErrCorrupt is returned for content and effects that do not fit.
var ErrCorrupt = errors.New("workspace: corrupt")

// corrupt returns ErrCorrupt for a place in the content.
func corrupt(path, problem string) error {
	return fmt.Errorf("%w: content: %s: %s", ErrCorrupt, path, problem)
}

// The parts of a document that this package knows.
const (
	PartField        = state.EffectPartField // declared fields, except the conversation
	PartKey          = state.EffectPartKey   // undeclared keys
	PartMessage      = "message"             // each message once, under its number
	PartConversation = "conversation"        // entries and results, which refer to messages, and the version
	PartMemory       = "memory"
	PartSetting      = "setting"
)

// Document is the content of a workspace. Concurrent goroutines may read it,
// but not while it is changed.
type Document struct {
	parts map[string]map[string]*fieldValue // no part is empty
	// table is the index of PartMessage, or nil if it has to be built.
	table atomic.Pointer[messageTable]
}

// New returns an empty document.
func New() *Document {
	return &Document{parts: map[string]map[string]*fieldValue{}}
}

// Decode is the inverse of [Document.Encode].
func Decode(data []byte) (*Document, error) {
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: content: %w", ErrCorrupt, err)
	}
	parts, err := jsontext.Members(data)
	if err != nil {
		return nil, fmt.Errorf("%w: content: %w", ErrCorrupt, err)
	}
	d := New()
	for _, part := range parts {
		fields, err := jsontext.Members(part.Value)
		if err != nil {
			return nil, corrupt(jsontext.Path("$", part.Name), "want object, got "+jsontext.Kind(part.Value))
		}
		for _, f := range fields {
			text := jsontext.AppendCompact(make([]byte, 0, len(f.Value)), f.Value)
			d.put(part.Name, f.Name, &fieldValue{text: state.JSON(text)})
		}
	}
	return d, nil
}

// Encode returns the document as JSON, compact and sorted: equal content gives
// equal bytes.
func (d *Document) Encode() []byte {
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
		for i, field := range d.Names(part) {
			separate(i)
			b.Write(jsontext.AppendQuote(b.AvailableBuffer(), field))
			b.WriteByte(':')
			b.WriteString(string(d.get(part, field).json()))
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Clone returns a document with the same content. The two share the values,
// which never change.
func (d *Document) Clone() *Document {
	c := New()
	for part, fields := range d.parts {
		c.parts[part] = maps.Clone(fields)
	}
	return c
}

// Has reports whether a field has a value.
func (d *Document) Has(part, field string) bool { return d.get(part, field) != nil }

// Names returns the fields of a part, sorted.
func (d *Document) Names(part string) []string { return slices.Sorted(maps.Keys(d.parts[part])) }

// Fields returns the values of a part by field.
func (d *Document) Fields(part string) map[string][]byte {
	fields := make(map[string][]byte, len(d.parts[part]))
	for field, v := range d.parts[part] {
		fields[field] = []byte(v.json())
	}
	return fields
}

// get returns the value of a field, or nil.
func (d *Document) get(part, field string) *fieldValue { return d.parts[part][field] }

// put sets a field, or deletes it if v is nil.
func (d *Document) put(part, field string, v *fieldValue) {
	if part == PartMessage {
		if t := d.table.Load(); t != nil && !t.set(field, v) {
			d.table.Store(nil)
		}
	}
	fields := d.parts[part]
	switch {
	case v != nil && fields == nil:
		d.parts[part] = map[string]*fieldValue{field: v}
	case v != nil:
		fields[field] = v
	default:
		if delete(fields, field); len(fields) == 0 {
			delete(d.parts, part)
		}
	}
}

// messages returns the table of messages. The caller must not change it.
func (d *Document) messages() (*messageTable, error) {
	if t := d.table.Load(); t != nil {
		return t, nil
	}
	t, err := newMessageTable(d.parts[PartMessage])
	if err == nil {
		d.table.Store(t)
	}
	return t, err
}
