package value

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/number"
)

// A Leaf is a part of a value that has no parts itself: a string, a number, a
// sequence of bytes, or the key of a map.
type Leaf struct {
	Text   string // of bytes, the bytes themselves
	Number bool   // the text is a number
}

// Leaves returns every string, number, sequence of bytes and map key in v, at
// any depth, behind pointers and interfaces, each once. Bools and null are not
// leaves, and neither are the names of the members of a struct.
//
// A value of a type with coding methods has the leaves of the JSON that it
// writes and, as far as reflection reaches, those of the memory behind it. The
// numbers in unexported fields are not among them: they are what the type is
// made of, such as the words of a big.Int, and its JSON says what they mean.
//
// Bytes are one leaf, be they a slice or an array. An array, which JSON shows
// as a list of numbers, has that list without its brackets as a second leaf. In
// a value of type any, bytes have become base64 or a list of numbers: a string
// that is base64 has the bytes as another leaf, and a list of at least
// minListedBytes numbers from 0 to 255 is an array of bytes.
func Leaves(v reflect.Value) []Leaf { return walkLeaves(v, false) }

func walkLeaves(v reflect.Value, memory bool) []Leaf {
	w := &leafWalk{memory: memory, seen: map[Leaf]bool{}, visited: map[visitedPointer]bool{}}
	w.add(v)
	return w.leaves
}

const (
	// minListedBytes is the length from which a list in a value of type any
	// that could be bytes is taken for bytes. Keys are longer and lists of
	// small numbers are usually shorter.
	minListedBytes = 16

	// minDecodedBytes is the length from which the bytes of a base64 string are
	// looked for. Most short words are base64 of something.
	minDecodedBytes = 6
)

// A leafWalk collects the leaves of a value.
type leafWalk struct {
	memory  bool // without what coding methods write
	leaves  []Leaf
	seen    map[Leaf]bool
	visited map[visitedPointer]bool // ends cycles
	depth   int                     // of unexported fields around the present part
}

// A visitedPointer is a pointer that was followed. Different types may begin at
// one address.
type visitedPointer struct {
	address uintptr
	typ     reflect.Type
}

func (w *leafWalk) addLeaf(text string, number bool) {
	leaf := Leaf{text, number}
	if text != "" && !w.seen[leaf] {
		w.seen[leaf] = true
		w.leaves = append(w.leaves, leaf)
	}
}

// add adds the leaves of a value.
func (w *leafWalk) add(v reflect.Value) {
	if !v.IsValid() {
		return
	}
	t := v.Type()
	switch {
	case t == timeType:
		w.addTime(v)
		return
	case t == numberType:
		w.addLeaf(v.String(), true)
		return
	case t == locationType:
		return // its strings are the names of time zones
	}
	if !w.memory && v.CanInterface() && v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
		if opaqueTypeOf(t) != nil || hasCodingMethods(t) {
			w.addCoded(v)
		}
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		w.addLeaf(v.String(), false)
	case v.CanInt():
		w.addNumber(strconv.FormatInt(v.Int(), 10))
	case v.CanUint():
		w.addNumber(strconv.FormatUint(v.Uint(), 10))
	case v.CanFloat():
		w.addFloat(v.Float(), t.Bits())
	case isBytes(t):
		w.addBytes(v)
	case kind == reflect.Slice || kind == reflect.Array:
		for i := range v.Len() {
			w.add(v.Index(i))
		}
	case kind == reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			w.add(iter.Key())
			w.add(iter.Value())
		}
	case kind == reflect.Struct:
		w.addFields(v)
	case kind == reflect.Pointer:
		w.addPointer(v)
	case kind == reflect.Interface:
		w.addDynamic(v.Elem())
	}
}

var locationType = reflect.TypeFor[time.Location]()

func (w *leafWalk) addNumber(text string) {
	if w.depth == 0 {
		w.addLeaf(text, true)
	}
}

// addFloat adds a number as JSON and fmt spell it, and with all its digits.
func (w *leafWalk) addFloat(f float64, bits int) {
	if !number.IsFinite(f) {
		return
	}
	w.addNumber(string(number.AppendFloat(nil, f, bits)))
	for _, format := range []byte{'f', 'g'} {
		w.addNumber(strconv.FormatFloat(f, format, -1, bits))
	}
}

// addTime adds a time as its JSON says it.
func (w *leafWalk) addTime(v reflect.Value) {
	if v.CanInterface() {
		w.addLeaf(encodableTime(v).Format(time.RFC3339Nano), false)
	}
}

// isBytes reports whether a type is a slice or an array of bytes.
func isBytes(t reflect.Type) bool {
	if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return false
	}
	return t.Elem().Kind() == reflect.Uint8 && !hasCodingMethods(t.Elem())
}

func (w *leafWalk) addBytes(v reflect.Value) {
	data := make([]byte, v.Len())
	for i := range data {
		data[i] = byte(v.Index(i).Uint())
	}
	w.addLeaf(string(data), false)
	if v.Kind() == reflect.Array {
		w.addListed(data)
	}
}

// addListed adds bytes as a list of numbers.
func (w *leafWalk) addListed(data []byte) {
	var list []byte
	for i, b := range data {
		if i > 0 {
			list = append(list, ',')
		}
		list = strconv.AppendUint(list, uint64(b), 10)
	}
	w.addLeaf(string(list), false)
}

func (w *leafWalk) addFields(v reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			w.add(v.Field(i))
			continue
		}
		w.depth++
		w.add(v.Field(i))
		w.depth--
	}
}

func (w *leafWalk) addPointer(v reflect.Value) {
	at := visitedPointer{v.Pointer(), v.Type()}
	if v.IsNil() || w.visited[at] {
		return
	}
	w.visited[at] = true
	w.add(v.Elem())
}

// addDynamic adds a value whose type is known at run time only. It may be
// normalised.
func (w *leafWalk) addDynamic(v reflect.Value) {
	if !v.IsValid() {
		return
	}
	if v.CanInterface() {
		switch v.Interface().(type) {
		case string, []any, map[string]any:
			w.addTree(v.Interface(), true)
			return
		}
	}
	w.add(v)
}

// addTree adds the leaves of a tree, with the keys of its objects if keys is
// set.
func (w *leafWalk) addTree(tree any, keys bool) {
	switch x := tree.(type) {
	case string:
		w.addText(x)
	case json.Number:
		w.addLeaf(string(x), true)
	case []any:
		if data := listedBytes(x); data != nil {
			w.addLeaf(string(data), false)
			w.addListed(data)
			return
		}
		for _, e := range x {
			w.addTree(e, keys)
		}
	case map[string]any:
		for name, e := range x {
			if keys {
				w.addLeaf(name, false)
			}
			w.addTree(e, keys)
		}
	default:
		w.add(reflect.ValueOf(tree))
	}
}

// addText adds a string of a tree, which may be bytes in base64.
func (w *leafWalk) addText(text string) {
	w.addLeaf(text, false)
	if len(text)%4 != 0 || base64.StdEncoding.DecodedLen(len(text)) < minDecodedBytes {
		return
	}
	if data, err := base64.StdEncoding.Strict().DecodeString(text); err == nil && len(data) >= minDecodedBytes {
		w.addLeaf(string(data), false)
	}
}

// listedBytes returns a list in a tree as bytes, or nil if it is not one that
// is taken for bytes.
func listedBytes(list []any) []byte {
	if len(list) < minListedBytes {
		return nil
	}
	data := make([]byte, len(list))
	for i, x := range list {
		n, ok := treeScalar(x)
		if number, isNumber := n.(json.Number); isNumber {
			parsed, err := strconv.ParseInt(string(number), 10, 64)
			n, ok = parsed, err == nil
		}
		b, isInt := n.(int64)
		if !ok || !isInt || b < 0 || b > math.MaxUint8 {
			return nil
		}
		data[i] = byte(b)
	}
	return data
}

// addCoded adds what a value writes by its coding methods. The members of an
// object are keys unless a struct wrote it: then they are its names for its
// parts.
func (w *leafWalk) addCoded(v reflect.Value) {
	p, err := sources.planOf(v.Type())
	if err != nil {
		return
	}
	text, err := p.codec.appendJSON(nil, v)
	if err != nil {
		return
	}
	if tree, err := jsontext.Decode(text, jsontext.Limits{}); err == nil {
		w.addTree(tree, v.Kind() != reflect.Struct)
	}
}

// GivesBack reports whether the JSON of v, a value of the plan's type, gives
// back every leaf that v has in memory. Equal cannot tell: it compares what a
// type writes. GivesBack reports true if writing or reading fails, which is
// reported when the value is stored.
func (p *Plan) GivesBack(v reflect.Value) bool {
	back, ok := p.readBack(v)
	return !ok || containsAll(walkLeaves(back, true), walkLeaves(v, true))
}

// InventsNothing reports whether the JSON of the zero value reads as a value
// without leaves. Most types that mask themselves write something for it.
func (p *Plan) InventsNothing() bool {
	zero := reflect.Zero(p.typ)
	back, ok := p.readBack(zero)
	// The zero value of a type that holds JSON, such as json.RawMessage, reads
	// as the text null.
	known := append(walkLeaves(zero, true), Leaf{Text: "null"})
	return !ok || containsAll(known, walkLeaves(back, true))
}

// readBack returns what the JSON of v reads as. It reports false if the type
// has no coding methods, so that it reads as v, or if they fail.
func (p *Plan) readBack(v reflect.Value) (reflect.Value, bool) {
	if !p.callsCode {
		return v, false
	}
	text, err := p.AppendJSON(nil, v)
	if err != nil {
		return v, false
	}
	back, _, err := p.Decode(text, Limits{})
	return back, err == nil
}

func containsAll(leaves, others []Leaf) bool {
	return !slices.ContainsFunc(others, func(l Leaf) bool { return !slices.Contains(leaves, l) })
}
