package jsontext

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
)

// A Reader reads the members of one object by name and kind, and collects a
// fault for each that does not fit. It is strict, as for a configuration or a
// stored record: names count in their exact case, and unknown members are
// faults.
//
//	r := jsontext.ReadObject("$", data)
//	name := r.String("name")
//	limit := r.Int("limit")
//	err := r.End()
//
// A missing member and null give the zero value. [Reader.Value] tells the two
// apart.
//
// A Reader is not safe for concurrent use.
type Reader struct {
	path    string
	members Object
	get     func(name string) []byte // of members
	known   []string
	faults  []*fault.Error
}

// ReadObject returns a reader of the object in data, which must have passed
// [Check]. path is the place of the object in the whole text, for the errors.
// If data is not an object, that is the only fault, and all members are
// missing.
func ReadObject(path string, data []byte) *Reader {
	r := &Reader{path: path, get: Object(nil).Get}
	if kind := Kind(data); kind != "object" {
		r.faults = []*fault.Error{{Path: path, Want: "object", Got: kind}}
		return r
	}
	members, err := Members(data)
	if err != nil {
		r.faults = []*fault.Error{{Path: path, Want: "object", Got: "text that is not JSON"}}
	}
	r.members, r.get = members, members.Lookup()
	return r
}

// Path returns the place of a member.
func (r *Reader) Path(name string) string { return Path(r.path, name) }

// Has reports whether the object has the member, null included.
func (r *Reader) Has(name string) bool {
	return r.Value(name) != nil
}

// Value returns the text of a member, nil if it is missing.
func (r *Reader) Value(name string) []byte {
	r.known = append(r.known, name)
	return r.get(name)
}

// String returns the content of a string.
func (r *Reader) String(name string) string {
	if v := r.kind(name, "string"); v != nil {
		return Unquote(v)
	}
	return ""
}

// Bool returns a boolean.
func (r *Reader) Bool(name string) bool { return string(r.kind(name, "bool")) == "true" }

// Int returns a number that is an integer in the range of int.
func (r *Reader) Int(name string) int {
	v := r.kind(name, "number")
	if v == nil {
		return 0
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		r.Fault(name, "an integer", "another number")
	}
	return n
}

// Strings returns the elements of an array of strings. A missing array is nil.
func (r *Reader) Strings(name string) []string {
	elements := r.Elements(name)
	if elements == nil {
		return nil
	}
	texts := make([]string, len(elements))
	for i, e := range elements {
		if kind := Kind(e); kind != "string" {
			r.faults = append(r.faults, &fault.Error{Path: Index(r.Path(name), i), Want: "string", Got: kind})
			continue
		}
		texts[i] = Unquote(e)
	}
	return texts
}

// Elements returns the texts of the elements of an array, nil if it is missing
// and not nil if it is empty.
func (r *Reader) Elements(name string) [][]byte {
	v := r.kind(name, "array")
	if v == nil {
		return nil
	}
	elements, err := Elements(v)
	if err != nil {
		r.Fault(name, "array", "text that is not JSON")
	}
	if elements == nil {
		elements = [][]byte{}
	}
	return elements
}

// Object returns a reader of an object, nil if it is missing. The caller must
// call End on it as well: r does not collect its faults.
func (r *Reader) Object(name string) *Reader {
	v := r.Value(name)
	if v == nil || string(v) == "null" {
		return nil
	}
	return ReadObject(r.Path(name), v)
}

// Require notes a fault for each of these members that is missing or null.
func (r *Reader) Require(names ...string) {
	if r.members == nil && len(r.faults) > 0 {
		return // the only fault is that it is not an object
	}
	for _, name := range names {
		if kind := Kind(r.get(name)); kind == "nothing" || kind == "null" {
			r.Fault(name, "a value", kind)
		}
	}
}

// Fault notes that a member does not fit.
func (r *Reader) Fault(name, want, got string) {
	r.faults = append(r.faults, &fault.Error{Path: r.Path(name), Want: want, Got: got})
}

// Rest returns the members that were not asked for, in their order.
func (r *Reader) Rest() Object { return r.members.Without(r.known...) }

// Faults returns the faults found so far.
func (r *Reader) Faults() []*fault.Error { return r.faults }

// Unknown notes a fault for each member that was not asked for.
func (r *Reader) Unknown() {
	rest := r.Rest()
	if len(rest) == 0 {
		return
	}
	known := slices.Compact(slices.Sorted(slices.Values(r.known)))
	problem := "unknown member: want " + strings.Join(known, ", ")
	for _, m := range rest {
		r.faults = append(r.faults, &fault.Error{Path: Path(r.path, fault.Clip(m.Name)), Got: problem})
	}
}

// Err returns the first fault.
func (r *Reader) Err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return r.faults[0]
}

// End adds the faults of [Reader.Unknown] and returns the first fault.
func (r *Reader) End() error {
	r.Unknown()
	return r.Err()
}

// kind returns the text of a member of a kind, nil if it is missing or null.
func (r *Reader) kind(name, want string) []byte {
	v := r.Value(name)
	if v == nil || string(v) == "null" {
		return nil
	}
	if got := Kind(v); got != want {
		r.Fault(name, want, got)
		return nil
	}
	return v
}
