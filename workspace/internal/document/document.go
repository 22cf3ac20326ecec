package document

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/workspace/work"
)

// corrupt returns ErrCorrupt for a place in the content.
func corrupt(path, problem string) error {
	return fmt.Errorf("%w: content: %s: %s", work.ErrCorrupt, path, problem)
}

// The parts of a document that this package knows.
const (
	PartField        = state.EffectPartField // declared fields, except the conversation
	PartKey          = state.EffectPartKey   // undeclared keys
	PartMessage      = "message"             // messages, each under its number
	PartConversation = "conversation"        // entries and results, which refer to messages, and the version
	PartMemory       = "memory"
	PartSetting      = "setting"
)

// Documents hold lists of these types.
func init() {
	persist.Declare[state.JSON]()
	persist.Declare[result]()
	persist.Declare[runNumbers]()
}

// Document is the content of a workspace. Concurrent goroutines may read it and
// clone it, but not while it is changed.
type Document struct {
	parts []partFields // few, in no order; one without fields counts as missing
	known knownFields  // those of PartConversation, which are not in parts
	// owner is that of the maps that the document may change in place.
	owner atomic.Uint64
	// messages is the index of PartMessage, or nil if it has to be built.
	messages atomic.Pointer[messageIndex]
	// unused says that there may be messages to which nothing refers. edited says
	// that not only the oldest ones were dropped since they were deleted last; swept
	// is the number of messages that were left then, or 0.
	unused, edited bool
	swept          int
	// empty is what the schema has for which the document was loaded last, or nil.
	empty atomic.Pointer[emptyState]
	// conversation is never nil. It is another one after each change of the
	// conversation or the results.
	conversation *keptConversation
}

// partFields has the fields of a part. Documents that come from one another
// share the nodes of the map.
type partFields struct {
	name   string
	fields persist.Map[fieldValue]
	len    int
}

// New returns an empty document.
func New() *Document {
	d := &Document{conversation: &keptConversation{}}
	d.owner.Store(persist.NewOwner())
	return d
}

// Decode is the inverse of [Document.Encode].
func Decode(data []byte) (*Document, error) {
	type part struct {
		name   string
		fields []fieldSpan
	}
	var parts []part
	var fields []fieldSpan
	var misfit error
	compact, err := jsontext.CheckMembers(data, 2, func(level int, name []byte, value jsontext.Span) {
		switch {
		case level == 2:
			fields = append(fields, fieldSpan{string(name), value})
		case data[value.From] != '{':
			misfit = corrupt(jsontext.Path("$", string(name)), "want object, got "+jsontext.Kind(value.In(data)))
		default:
			parts, fields = append(parts, part{string(name), fields}), nil
		}
	})
	if err == nil && jsontext.Kind(data) != "object" {
		err = &fault.Error{Path: "$", Want: "object", Got: jsontext.Kind(data)}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: content: %w", work.ErrCorrupt, err)
	}
	if misfit != nil {
		return nil, misfit
	}
	if !compact { // Encode has not made it
		return Decode(jsontext.AppendCompact(nil, data))
	}
	d := New()
	d.unused = true
	for _, p := range parts {
		if err := d.fill(p.name, data, p.fields); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fieldSpan is the place of the value of a field in a text.
type fieldSpan struct {
	name  string
	value jsontext.Span
}

// fill gives a new document a part, whose fields have different names.
func (d *Document) fill(part string, data []byte, fields []fieldSpan) error {
	entries := make([]persist.Entry[fieldValue], 0, len(fields))
	for _, f := range fields {
		v, problem := newValue(part, f.name, state.JSON(f.value.In(data)))
		if problem != "" {
			return corrupt(jsontext.Path(jsontext.Path("$", part), fault.Clip(f.name)), problem)
		}
		if known := d.known.place(part, f.name); known != nil {
			*known = v
			continue
		}
		entries = append(entries, persist.Entry[fieldValue]{Key: f.name, Value: v})
	}
	if len(entries) == 0 {
		return nil
	}
	p := d.addPart(part)
	p.fields.Fill(d.owner.Load(), entries)
	p.len = len(entries)
	return nil
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
	for i, part := range d.partNames() {
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

// Clone returns a document with the same content. The cost does not depend on
// how much that is.
func (d *Document) Clone() *Document {
	c := &Document{
		parts: d.shareParts(0), known: d.known, conversation: d.conversation,
		unused: d.unused, edited: d.edited, swept: d.swept,
	}
	c.owner.Store(persist.NewOwner())
	d.owner.Store(persist.NewOwner())
	if x := d.messages.Load(); x != nil {
		c.messages.Store(x.clone())
	}
	c.empty.Store(d.empty.Load())
	return c
}

// shareParts returns the parts with shared nodes, and some more without a name.
func (d *Document) shareParts(more int) []partFields {
	parts := make([]partFields, len(d.parts)+more)
	for i := range d.parts {
		p := &d.parts[i]
		parts[i].name, parts[i].len = p.name, p.len
		p.fields.Share(&parts[i].fields)
	}
	return parts
}

// addPart adds a part, which the document does not have.
func (d *Document) addPart(name string) *partFields {
	d.parts = d.shareParts(1)
	d.owner.Store(persist.NewOwner())
	p := &d.parts[len(d.parts)-1]
	p.name = name
	return p
}

// part returns a part, or nil.
func (d *Document) part(name string) *partFields {
	for i := range d.parts {
		if d.parts[i].name == name {
			return &d.parts[i]
		}
	}
	return nil
}

// partNames returns the names of the parts that have fields, sorted.
func (d *Document) partNames() []string {
	names := make([]string, 0, len(d.parts)+1)
	for i := range d.parts {
		if p := &d.parts[i]; p.len > 0 && p.name != PartConversation {
			names = append(names, p.name)
		}
	}
	if d.count(PartConversation) > 0 {
		names = append(names, PartConversation)
	}
	slices.Sort(names)
	return names
}

// Has reports whether a field has a value.
func (d *Document) Has(part, field string) bool { return d.get(part, field) != nil }

// Names returns the fields of a part, sorted.
func (d *Document) Names(part string) []string {
	if d.count(part) == 0 {
		return nil
	}
	names := make([]string, 0, d.count(part))
	for name := range d.fields(part) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Fields returns the values of a part by field.
func (d *Document) Fields(part string) map[string][]byte {
	if d.count(part) == 0 {
		return nil
	}
	fields := make(map[string][]byte, d.count(part))
	for field, v := range d.fields(part) {
		fields[field] = []byte(v.json())
	}
	return fields
}

// fields yields the values of a part by field, in no order.
func (d *Document) fields(part string) iter.Seq2[string, *fieldValue] {
	return func(yield func(string, *fieldValue) bool) {
		if part == PartConversation {
			for i, v := range d.known {
				if v != nil && !yield(knownNames[i], v) {
					return
				}
			}
		}
		if p := d.part(part); p != nil {
			p.fields.All()(yield)
		}
	}
}

// count returns the number of fields of a part.
func (d *Document) count(part string) (n int) {
	if part == PartConversation {
		n = d.known.count()
	}
	if p := d.part(part); p != nil {
		n += p.len
	}
	return n
}

// get returns the value of a field, or nil.
func (d *Document) get(part, field string) *fieldValue {
	if known := d.known.place(part, field); known != nil {
		return *known
	}
	if p := d.part(part); p != nil {
		return p.fields.Get(field)
	}
	return nil
}

// put sets a field, or deletes it if v is nil.
func (d *Document) put(name, field string, v *fieldValue) {
	if known := d.known.place(name, field); known != nil {
		*known = v
		return
	}
	p := d.part(name)
	if p == nil {
		p = d.addPart(name)
	}
	var old *fieldValue
	if v != nil {
		old = p.fields.Set(d.owner.Load(), field, v)
	} else {
		old = p.fields.Delete(d.owner.Load(), field)
	}
	switch {
	case old == nil && v != nil:
		p.len++
	case old != nil && v == nil:
		p.len--
	}
	if name == PartMessage {
		d.noteMessage(field, old, v)
	}
}
