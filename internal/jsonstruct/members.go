// Package jsonstruct knows which members of a JSON object stand for a struct
// type. The rules are those of encoding/json, which does not export its own
// answer: names from tags, promotion from embedded structs, shadowing.
package jsonstruct

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A Member is a field of a struct, or of one embedded in it, that is a member
// of the struct's JSON object.
type Member struct {
	Name      string // in JSON, in its exact case
	Index     []int  // the path to the field, as in reflect.StructField
	Type      reflect.Type
	Tag       reflect.StructTag
	OmitEmpty bool
	OmitZero  bool

	tagged bool // the name comes from the tag
}

// Required reports whether every value of the struct has the member: no option
// in the tag may leave it out.
func (m *Member) Required() bool { return !m.OmitEmpty && !m.OmitZero }

// FieldOf returns the field of v, a struct. It reports false if the field is in
// an embedded struct whose pointer is nil.
func (m *Member) FieldOf(v reflect.Value) (reflect.Value, bool) {
	if len(m.Index) == 1 {
		return v.Field(m.Index[0]), true
	}
	for i, n := range m.Index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}, false
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v, true
}

// MakeField returns the field of v, a settable struct. It allocates the
// embedded structs on the way whose pointers are nil.
func (m *Member) MakeField(v reflect.Value) reflect.Value {
	for i, n := range m.Index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v
}

// cachedMembers is an answer of Members.
type cachedMembers struct {
	members []Member
	lost    error
}

var membersByType sync.Map // reflect.Type -> cachedMembers

// Members returns the members of a struct type in the order of its fields. The
// fields of an embedded struct stand where the struct does. The caller must not
// change the slice.
//
// lost names the first field that encoding/json would drop, shadow or change,
// or is nil if there is none. Callers that need a lossless round trip treat it
// as an error. Others may ignore it: the members are valid in any case.
func Members(t reflect.Type) (members []Member, lost error) {
	if known, ok := membersByType.Load(t); ok {
		answer := known.(cachedMembers)
		return answer.members, answer.lost
	}
	w := structWalk{outer: t, embedding: map[reflect.Type]bool{t: true}}
	w.addFields(t, nil)
	answer := cachedMembers{dominant(w.found), w.lost}
	membersByType.Store(t, answer)
	return answer.members, answer.lost
}

// Promotes reports whether the members of a field's type take the place of the
// field: it is an embedded struct, or a pointer to one, without a JSON name.
func Promotes(f reflect.StructField) bool {
	name, _ := tagName(f)
	return f.Anonymous && name == "" && structBehind(f.Type).Kind() == reflect.Struct
}

// structBehind returns what a field of type t embeds.
func structBehind(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// A structWalk collects the members of one struct type, shadowed ones included.
type structWalk struct {
	outer     reflect.Type
	embedding map[reflect.Type]bool // the structs around the current one, which end recursion
	found     []Member
	lost      error
}

func (w *structWalk) addFields(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		name, options := tagName(f)
		inner := structBehind(f.Type)
		switch {
		case f.Tag.Get("json") == "-":
			w.lose("the field %s of %s, which has no JSON and would be lost", f.Name, t)
		case Promotes(f):
			if f.Type != inner && !f.IsExported() {
				w.lose("an embedded pointer to the unexported %s", inner)
			}
			if w.embedding[inner] {
				// Everything below is shadowed by the same fields further out.
				w.lose("%s, which embeds itself", inner)
				continue
			}
			w.embedding[inner] = true
			w.addFields(inner, at)
			delete(w.embedding, inner)
		case !f.IsExported():
			w.lose("the unexported field %s of %s, which has no JSON and would be lost", f.Name, t)
		default:
			m := Member{
				Name: name, Index: at, Type: f.Type, Tag: f.Tag,
				OmitEmpty: slices.Contains(options, "omitempty"),
				OmitZero:  slices.Contains(options, "omitzero"),
				tagged:    name != "",
			}
			if !m.tagged {
				m.Name = f.Name
			}
			if slices.Contains(options, "string") {
				w.lose("the field %s of %s with the JSON option string", f.Name, t)
			}
			if slices.ContainsFunc(w.found, func(other Member) bool { return other.Name == m.Name }) {
				w.lose("two fields of %s with the JSON name %q", w.outer, m.Name)
			}
			w.found = append(w.found, m)
		}
	}
}

// lose notes the first loss.
func (w *structWalk) lose(format string, args ...any) {
	if w.lost == nil {
		w.lost = fmt.Errorf(format, args...)
	}
}

// tagName returns the JSON name in the tag of a field, empty if there is none
// that encoding/json accepts, and the options after it.
func tagName(f reflect.StructField) (name string, options []string) {
	name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
	for _, r := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			name = ""
			break
		}
	}
	return name, strings.Split(rest, ",")
}

// dominant returns the members that are not shadowed. Of several with one name
// the least nested wins; of several at one level the only one with a tag. If
// that leaves more than one, encoding/json uses none of them.
func dominant(found []Member) []Member {
	var members []Member
	for i, m := range found {
		wins := true
		for j, other := range found {
			if i == j || other.Name != m.Name || len(other.Index) > len(m.Index) {
				continue
			}
			if len(other.Index) < len(m.Index) || !m.tagged || other.tagged {
				wins = false
			}
		}
		if wins {
			members = append(members, m)
		}
	}
	return members
}
