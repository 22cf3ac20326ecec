package workspace

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// members are the members of an object that this binary does not know. They are
// written back as they came, so that an old binary takes nothing away from what a
// newer one wrote.
type members = jsontext.Object

func (h head) MarshalJSON() ([]byte, error) { type known head; return open(known(h), h.rest) }
func (h *head) UnmarshalJSON(data []byte) error {
	type known head
	return split(data, (*known)(h), &h.rest)
}

func (l lease) MarshalJSON() ([]byte, error) { type known lease; return open(known(l), l.rest) }
func (l *lease) UnmarshalJSON(data []byte) error {
	type known lease
	return split(data, (*known)(l), &l.rest)
}

func (i item) MarshalJSON() ([]byte, error) { type known item; return open(known(i), i.rest) }
func (i *item) UnmarshalJSON(data []byte) error {
	type known item
	return split(data, (*known)(i), &i.rest)
}

// A head has many of these, so they are read and written without reflection.
func (d done) MarshalJSON() ([]byte, error) {
	return append(members{}.WithString("id", d.ID).WithString("as", d.As), d.rest...).JSON(), nil
}

func (d *done) UnmarshalJSON(data []byte) error {
	list, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	for _, m := range list {
		var known *string
		switch m.Name {
		case "id":
			known = &d.ID
		case "as":
			known = &d.As
		}
		switch {
		case known == nil:
			d.rest = append(d.rest, jsontext.Member{Name: m.Name, Value: slices.Clone(m.Value)})
		case jsontext.Kind(m.Value) != "string":
			return &fault.Error{Path: "$." + m.Name, Want: "string", Got: jsontext.Kind(m.Value)}
		default:
			*known = jsontext.Unquote(m.Value)
		}
	}
	return nil
}

func (d dead) MarshalJSON() ([]byte, error) { type known dead; return open(known(d), d.rest) }
func (d *dead) UnmarshalJSON(data []byte) error {
	type known dead
	return split(data, (*known)(d), &d.rest)
}

func (r ref) MarshalJSON() ([]byte, error) { type known ref; return open(known(r), r.rest) }
func (r *ref) UnmarshalJSON(data []byte) error {
	type known ref
	return split(data, (*known)(r), &r.rest)
}

func (s snap) MarshalJSON() ([]byte, error) { type known snap; return open(known(s), s.rest) }
func (s *snap) UnmarshalJSON(data []byte) error {
	type known snap
	return split(data, (*known)(s), &s.rest)
}

// open encodes a struct with the members that it does not know at the end.
func open(known any, rest members) ([]byte, error) {
	data, err := jsontext.Marshal(known)
	if err != nil || len(rest) == 0 {
		return data, err
	}
	data = append(data[:len(data)-1], ',')
	return append(data, rest.JSON()[1:]...), nil
}

// split decodes an object into a struct, by the exact names of its members, and
// leaves those that the struct does not have to rest.
func split(data []byte, known any, rest *members) error {
	all, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	names := namesOf(reflect.TypeOf(known).Elem())
	var mine members
	for _, m := range all {
		if slices.Contains(names, m.Name) {
			mine = append(mine, m)
		} else {
			*rest = append(*rest, jsontext.Member{Name: m.Name, Value: slices.Clone(m.Value)})
		}
	}
	if len(*rest) > 0 {
		data = mine.JSON()
	}
	return json.Unmarshal(data, known)
}

var names sync.Map // of []string by reflect.Type

func namesOf(t reflect.Type) []string {
	if known, ok := names.Load(t); ok {
		return known.([]string)
	}
	var list []string
	for _, f := range reflect.VisibleFields(t) {
		if tag, ok := f.Tag.Lookup("json"); ok {
			name, _, _ := strings.Cut(tag, ",")
			list = append(list, name)
		}
	}
	names.Store(t, list)
	return list
}
