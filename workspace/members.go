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
type unknownMembers = jsontext.Object

func (h head) MarshalJSON() ([]byte, error) { type known head; return open(known(h), h.unknownMembers) }
func (h *head) UnmarshalJSON(data []byte) error {
	type known head
	return split(data, (*known)(h), &h.unknownMembers)
}

func (l activeRun) MarshalJSON() ([]byte, error) {
	type known activeRun
	return open(known(l), l.unknownMembers)
}
func (l *activeRun) UnmarshalJSON(data []byte) error {
	type known activeRun
	return split(data, (*known)(l), &l.unknownMembers)
}

func (i pendingMessage) MarshalJSON() ([]byte, error) {
	type known pendingMessage
	return open(known(i), i.unknownMembers)
}
func (i *pendingMessage) UnmarshalJSON(data []byte) error {
	type known pendingMessage
	return split(data, (*known)(i), &i.unknownMembers)
}

// A head has many of these, so they are read and written without reflection.
func (d finishedMessage) MarshalJSON() ([]byte, error) {
	return append(unknownMembers{}.WithString("id", d.ID).WithString("as", d.Outcome), d.unknownMembers...).JSON(), nil
}

func (d *finishedMessage) UnmarshalJSON(data []byte) error {
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
			known = &d.Outcome
		}
		switch {
		case known == nil:
			d.unknownMembers = append(d.unknownMembers, jsontext.Member{Name: m.Name, Value: slices.Clone(m.Value)})
		case jsontext.Kind(m.Value) != "string":
			return &fault.Error{Path: "$." + m.Name, Want: "string", Got: jsontext.Kind(m.Value)}
		default:
			*known = jsontext.Unquote(m.Value)
		}
	}
	return nil
}

func (d deadLetter) MarshalJSON() ([]byte, error) {
	type known deadLetter
	return open(known(d), d.unknownMembers)
}
func (d *deadLetter) UnmarshalJSON(data []byte) error {
	type known deadLetter
	return split(data, (*known)(d), &d.unknownMembers)
}

func (r blobRef) MarshalJSON() ([]byte, error) {
	type known blobRef
	return open(known(r), r.unknownMembers)
}
func (r *blobRef) UnmarshalJSON(data []byte) error {
	type known blobRef
	return split(data, (*known)(r), &r.unknownMembers)
}

func (s snapshot) MarshalJSON() ([]byte, error) {
	type known snapshot
	return open(known(s), s.unknownMembers)
}
func (s *snapshot) UnmarshalJSON(data []byte) error {
	type known snapshot
	return split(data, (*known)(s), &s.unknownMembers)
}

// open encodes a struct with the members that it does not know at the end.
func open(known any, rest unknownMembers) ([]byte, error) {
	data, err := jsontext.Marshal(known)
	if err != nil || len(rest) == 0 {
		return data, err
	}
	data = append(data[:len(data)-1], ',')
	return append(data, rest.JSON()[1:]...), nil
}

// split decodes an object into a struct, by the exact names of its members, and
// leaves those that the struct does not have to rest.
func split(data []byte, known any, rest *unknownMembers) error {
	all, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	names := namesOf(reflect.TypeOf(known).Elem())
	var mine unknownMembers
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
