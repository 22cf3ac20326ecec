package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/workspace/work"
)

// Load returns the state with the document's content. Fields and keys for which
// the schema has no place stay in the document. moved are the fields that the
// document holds otherwise than the state.
func (d *Document) Load(schema *state.Schema) (st *state.State, moved Moved, err error) {
	fields := form.State{Format: form.Format, Version: d.version()}
	partOf := map[string]string{} // where a stored field is
	hasMessages := false
	empty := d.emptyOf(schema)
	for _, f := range empty.fields {
		switch {
		case f.Ephemeral:
		case f.Name == state.Messages.Name:
			hasMessages = true
		default:
			if name, part := d.locate(schema, f); part != "" {
				fields.Fields = append(fields.Fields, form.Field{Name: name, Value: []byte(d.get(part, name).json())})
				partOf[name] = part
			}
		}
	}
	if windows := d.get(PartField, windowsName); windows != nil {
		fields.Fields = append(fields.Fields, form.Field{Name: windowsName, Value: []byte(windows.json())})
	}
	for _, name := range d.Names(PartKey) {
		// Import refuses names that cannot be those of keys.
		if !empty.declared[name] && partOf[name] == "" && inside.IsKey(empty.state, name) {
			fields.Keys = append(fields.Keys, form.Field{Name: name, Value: []byte(d.get(PartKey, name).json())})
		}
	}
	return d.loadForm(schema, fields, partOf, hasMessages)
}

// loadForm returns the state with fields and the conversation. partOf says where the
// document has a field.
func (d *Document) loadForm(
	schema *state.Schema, fields form.State, partOf map[string]string, hasMessages bool,
) (st *state.State, moved Moved, err error) {
	kept := d.conversation.of(schema)
	whole := fields
	if kept == nil {
		if err := d.loadConversation(&whole, hasMessages); err != nil {
			return nil, nil, err
		}
	}
	st, fieldsMoved, err := inside.ImportForm(schema, &whole, kept)
	if err == nil {
		err = inside.KeepSecrets(st, d.StrangeSecrets(schema))
	}
	if err == nil {
		if kept == nil {
			d.conversation.keep(schema, st)
		} else if OnKeptLoad != nil {
			OnKeptLoad(d, schema, st)
		}
		moved = Moved{}
		for _, m := range fieldsMoved {
			moved[m.Field] = MovedField{partOf[m.From], m.From, &fieldValue{text: state.JSON(m.Value)}}
		}
		return st, moved, nil
	}
	err = fmt.Errorf("workspace: content: %w", err)
	_, _, fieldsErr := inside.ImportForm(schema, &fields, nil)
	if fieldsErr == nil && !errors.Is(err, state.ErrLimitExceeded) {
		// The fault is in the conversation, which no schema shapes.
		return nil, nil, fmt.Errorf("%w: %w", work.ErrCorrupt, err)
	}
	return nil, nil, err
}

// emptyState is a State without content, which only says what its schema has.
type emptyState struct {
	schema   *state.Schema
	state    *state.State
	fields   []state.FieldInfo
	declared map[string]bool
	secret   map[string]bool // fields and their former names
}

// Declares reports whether a schema has a field with a name, now or formerly, and
// whether it is secret.
func (d *Document) Declares(schema *state.Schema, name string) (declared, secret bool) {
	secret, declared = d.emptyOf(schema).secret[name]
	return declared, secret
}

// Unread returns the names of the fields and keys in the document for which a schema has
// no place, sorted.
func (d *Document) Unread(schema *state.Schema) (names []string) {
	empty := d.emptyOf(schema)
	for _, part := range []string{PartField, PartKey} {
		for name := range d.fields(part) {
			_, declared := empty.secret[name]
			if !declared && (part == PartField || !inside.IsKey(empty.state, name)) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// emptyOf returns the empty State of a schema.
func (d *Document) emptyOf(schema *state.Schema) *emptyState {
	if e := d.empty.Load(); e != nil && e.schema == schema {
		return e
	}
	e := &emptyState{
		schema: schema, state: state.New(schema), declared: map[string]bool{},
		secret: map[string]bool{windowsName: false},
	}
	e.fields = e.state.Fields()
	for _, f := range e.fields {
		e.declared[f.Name], e.secret[f.Name] = true, f.Secret
		for _, name := range f.Was {
			e.secret[name] = f.Secret
		}
	}
	d.empty.Store(e)
	return e
}

// Moved holds the fields that a document stores under a former name or in a
// former form, by their present names. The first effect on one moves it.
type Moved map[string]MovedField

// MovedField is a field that is stored under a former name or in a former form.
type MovedField struct {
	part, name string      // where it is stored
	value      *fieldValue // in the state
}

// locate returns the name and the part under which a declared field is stored,
// and no part if it is not stored: under its present name or a former one, or
// under an undeclared key of such a name whose value fits.
func (d *Document) locate(schema *state.Schema, f state.FieldInfo) (name, part string) {
	for _, name := range append([]string{f.Name}, f.Was...) {
		if d.Has(PartField, name) {
			return name, PartField
		}
		if key := d.get(PartKey, name); key != nil {
			alone := form.State{Format: form.Format, Fields: []form.Field{{Name: name, Value: []byte(key.json())}}}
			if _, _, err := inside.ImportForm(schema, &alone, nil); err == nil {
				return name, PartKey
			}
		}
	}
	return "", ""
}

// FormerNames returns the former names under which fields are stored.
func (m Moved) FormerNames() map[string]bool {
	names := map[string]bool{}
	for field, at := range m {
		if at.name != field {
			names[at.name] = true
		}
	}
	return names
}

// Forget removes the fields that effects have moved.
func (m Moved) Forget(effects []state.Effect) {
	for i := range effects {
		e := &effects[i]
		maps.DeleteFunc(m, func(field string, at MovedField) bool {
			return e.Part == PartField && e.Field == field || e.Part == at.part && e.Field == at.name
		})
	}
}

// loadConversation adds the messages, the results and, if the schema has the
// field messages, the conversation.
func (d *Document) loadConversation(out *form.State, hasMessages bool) error {
	places := newFormPlaces(d)
	out.Messages = make([]form.Message, len(places.texts))
	for i, text := range places.texts {
		out.Messages[i] = form.Message(text)
	}
	if hasMessages && d.Has(PartConversation, fieldEntries) {
		ranges, err := places.ranges("$.conversation.entries", rangesOf(d.entries()))
		if err != nil {
			return err
		}
		ranges = append([]form.Run{}, ranges...) // not nil if it is empty
		out.Conversation = &ranges
	}
	for i, stored := range d.results() {
		var r form.Result
		if json.Unmarshal([]byte(stored.text), &r) != nil {
			return corrupt(resultPath(i), "not a result")
		}
		for _, ranges := range []*[]form.Run{&r.Prompt, &r.History, &r.Output, &r.ToolCalls} {
			var err error
			if *ranges, err = places.ranges(resultPath(i), *ranges); err != nil {
				return err
			}
		}
		out.Results = append(out.Results, r)
	}
	return nil
}

// formPlaces maps the numbers of messages to their places in a form, in which
// each text stands once and places count from 0.
type formPlaces struct {
	numbers []int // sorted
	places  []int // of the messages with these numbers
	texts   []state.JSON
}

func newFormPlaces(d *Document) *formPlaces {
	list := d.numbered()
	p := &formPlaces{numbers: make([]int, len(list)), places: make([]int, len(list))}
	known := make(map[state.JSON]int, len(list))
	for i, m := range list {
		place, ok := known[m.text]
		if !ok {
			place = len(p.texts)
			known[m.text], p.texts = place, append(p.texts, m.text)
		}
		p.numbers[i], p.places[i] = m.number, place
	}
	return p
}

// ranges returns ranges of places for ranges of numbers. path is where they
// are.
func (p *formPlaces) ranges(path string, numbers []form.Run) ([]form.Run, error) {
	var places []form.Run
	for _, r := range numbers {
		at, ok := slices.BinarySearch(p.numbers, r.From)
		n := r.To - r.From
		if !ok || n <= 0 || n > len(p.numbers)-at || p.numbers[at+n-1] != r.To-1 {
			return nil, corrupt(path, fmt.Sprintf("no messages from %d to %d", r.From, r.To))
		}
		for _, place := range p.places[at : at+n] {
			places = appendNumber(places, place)
		}
	}
	return places, nil
}
