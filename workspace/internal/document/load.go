package document

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/form"
)

// Load returns the state with the document's content. Fields and keys for which
// the schema has no place stay in the document.
func (d *Document) Load(schema *state.Schema) (*state.State, error) {
	version, err := d.version()
	if err != nil {
		return nil, err
	}
	fields := form.State{Format: form.Format, Version: version}
	declared := map[string]bool{}
	hasMessages := false
	for _, f := range state.New(schema).Fields() {
		declared[f.Name] = true
		switch {
		case f.Ephemeral:
		case f.Name == state.Messages.Name:
			hasMessages = true
		default:
			if v := d.declaredValue(schema, f.Name); v != nil {
				fields.Fields = append(fields.Fields, form.Field{Name: f.Name, Value: []byte(v.json())})
			}
		}
	}
	for _, name := range d.Names(PartKey) {
		// Import refuses names that cannot be those of keys.
		if !declared[name] && state.New(schema).KV().Set(name, nil) == nil {
			fields.Keys = append(fields.Keys, form.Field{Name: name, Value: []byte(d.get(PartKey, name).json())})
		}
	}
	whole := fields
	if err := d.loadConversation(&whole, hasMessages); err != nil {
		return nil, err
	}
	s, err := importForm(schema, &whole)
	if err == nil {
		return s, nil
	}
	err = fmt.Errorf("workspace: content: %w", err)
	_, fieldsErr := importForm(schema, &fields)
	if fieldsErr == nil && !errors.Is(err, state.ErrLimitExceeded) {
		// The fault is in the conversation, which no schema shapes.
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil, err
}

func importForm(schema *state.Schema, f *form.State) (*state.State, error) {
	s, err := internal.ImportForm(schema, f)
	if err != nil {
		return nil, err
	}
	return s.(*state.State), nil
}

// declaredValue returns the value of a declared field: what is stored for it,
// or what is stored under an undeclared key of its name, if that fits.
func (d *Document) declaredValue(schema *state.Schema, name string) *fieldValue {
	v, key := d.get(PartField, name), d.get(PartKey, name)
	if v != nil || key == nil {
		return v
	}
	alone := form.State{Format: form.Format, Fields: []form.Field{{Name: name, Value: []byte(key.json())}}}
	if _, err := importForm(schema, &alone); err != nil {
		return nil
	}
	return key
}

// loadConversation adds the messages, the results and, if the schema has the
// field messages, the conversation.
func (d *Document) loadConversation(out *form.State, hasMessages bool) error {
	t, err := d.messages()
	if err != nil {
		return err
	}
	places := newFormPlaces(t)
	for _, text := range places.texts {
		out.Messages = append(out.Messages, []byte(text))
	}
	entries, set, err := d.entries()
	if err != nil {
		return err
	}
	if set && hasMessages {
		ranges, err := places.ranges("$.conversation.entries", rangesOf(entries))
		if err != nil {
			return err
		}
		ranges = append([]form.Run{}, ranges...) // not nil if it is empty
		out.Conversation = &ranges
	}
	texts, err := d.results()
	if err != nil {
		return err
	}
	for i, text := range texts {
		var r form.Result
		if err := decodeResult(text, i, &r); err != nil {
			return err
		}
		for _, ranges := range []*[]form.Run{&r.Prompt, &r.History, &r.Output, &r.ToolCalls} {
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

func newFormPlaces(t *messageTable) *formPlaces {
	p := &formPlaces{numbers: slices.Sorted(maps.Keys(t.texts))}
	p.places = make([]int, len(p.numbers))
	for i, n := range p.numbers {
		text := t.texts[n]
		if first := t.first[text]; first < n {
			at, _ := slices.BinarySearch(p.numbers, first)
			p.places[i] = p.places[at]
			continue
		}
		p.places[i] = len(p.texts)
		p.texts = append(p.texts, text)
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
