// Package walk counts the size of a value while code goes through its parts,
// knows the place it has reached, and enforces the limits.
package walk

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// Limits bound a value. A field that is 0 or negative sets no limit, but no
// value may be nested more than [MaxDepth] levels deep.
type Limits struct {
	Bytes int // the size of the value, about the length of its JSON
	Depth int // containers inside one another: a scalar has 0, a []int 1
}

// MaxDepth is the nesting up to which any value is accepted, as in
// encoding/json. It ends the walk through a cycle.
const MaxDepth = 10_000

// ScalarSize is the size of a null, a bool or a number.
const ScalarSize = 8

// ContainerSize is the size of an empty list or object.
const ContainerSize = 2

// A Walk goes through one value. The zero Walk has no limits.
type Walk struct {
	Exact  bool // a json.Number may be any number, because it stays text
	Sorted bool // the members of maps are to be visited in the order of their names

	limits   Limits
	size     int
	steps    []step
	pointers int // followed on the way: no levels of JSON, but they can form a cycle
}

// A step is the place inside one container: a member or an index.
type step struct {
	member string
	index  int // or inMember, inKey or inWhole
}

const (
	inMember = -1
	inWhole  = -2 // the container itself
	inKey    = -3 // in an entry of a map, whose key is content
)

// pool keeps walks for their slices of steps. These hold names of members, but
// no values.
var pool = sync.Pool{New: func() any { return new(Walk) }}

// Measure runs visit with a new Walk and returns the size that it counted. If
// visit fails, it runs again with Sorted set: of several errors in a map it
// always reports the same one, without sorting the maps of valid values.
func Measure(limits Limits, exact bool, visit func(*Walk) error) (int, error) {
	w := pool.Get().(*Walk)
	defer pool.Put(w)
	*w = Walk{limits: limits, Exact: exact, steps: w.steps[:0]}
	if visit(w) == nil {
		return w.size, nil
	}
	sorted := Walk{limits: limits, Exact: exact, Sorted: true}
	if err := visit(&sorted); err != nil {
		return 0, err
	}
	return sorted.size, nil
}

// Size returns the number of bytes counted so far.
func (w *Walk) Size() int { return w.size }

// ResetSize forgets what was counted after Size was n.
func (w *Walk) ResetSize(n int) { w.size = n }

// Add counts n bytes.
func (w *Walk) Add(n int) error {
	if w.size += n; w.limits.Bytes > 0 && w.size > w.limits.Bytes {
		return w.tooLarge(w.size)
	}
	return nil
}

func (w *Walk) tooLarge(size int) error {
	return &fault.LimitError{Name: "ValueBytes", Path: w.path(), Limit: w.limits.Bytes, Got: size}
}

// AddString counts a string with its quotes and checks it.
func (w *Walk) AddString(s string) error {
	if err := w.Add(len(s) + 2); err != nil {
		return err
	}
	if !utf8.ValidString(s) {
		return w.Fail("valid UTF-8", "other bytes")
	}
	return nil
}

// AddFloat counts a number and checks that JSON can spell it.
func (w *Walk) AddFloat(f float64) error {
	if err := w.Add(ScalarSize); err != nil {
		return err
	}
	if f-f != 0 {
		return w.Fail("a finite number", "NaN or infinity")
	}
	return nil
}

// AddJSON counts and checks the JSON text that a method of type t wrote.
func (w *Walk) AddJSON(text []byte, t reflect.Type) error {
	if err := w.Add(len(text)); err != nil {
		return err
	}
	limit := w.depthLimit()
	rest := limit - len(w.steps)
	if rest <= 0 {
		// jsontext takes 0 for no limit. Only a scalar fits here.
		if kind := jsontext.Kind(text); kind == "object" || kind == "array" {
			return w.checkDepth(len(w.steps) + 1)
		}
	}
	err := jsontext.Check(text, jsontext.Limits{Depth: rest})
	if fault.AsLimit(err) != nil {
		return w.tooDeep(limit)
	}
	if err != nil {
		return w.Fail("JSON written by "+t.String(), "text that is not strict JSON")
	}
	return nil
}

// EnterName counts and checks the name of a member of the open container, and
// moves to the member.
func (w *Walk) EnterName(name string) error {
	w.Whole() // an error in a name belongs to the container
	if !utf8.ValidString(name) {
		return w.Fail("valid UTF-8", "a key with other bytes")
	}
	if err := w.Add(len(name) + 4); err != nil { // quotes, colon and comma
		return err
	}
	w.Key(name)
	return nil
}

// Enter begins a container of n elements. Leave ends it.
func (w *Walk) Enter(n int) error {
	if err := w.checkDepth(len(w.steps) + 1); err != nil {
		return err
	}
	// Every element takes a separator and at least one byte. A container that
	// is much too large is refused before its elements are visited.
	if w.limits.Bytes > 0 && n > w.limits.Bytes {
		return w.tooLarge(n)
	}
	w.steps = append(w.steps, step{index: inWhole})
	return w.Add(ContainerSize)
}

// Leave ends the container that Enter began last.
func (w *Walk) Leave() { w.steps = w.steps[:len(w.steps)-1] }

// Element moves to an element of the open container.
func (w *Walk) Element(i int) { w.steps[len(w.steps)-1] = step{index: i} }

// Member moves to a member of the open container.
func (w *Walk) Member(name string) { w.steps[len(w.steps)-1] = step{member: name, index: inMember} }

// Key moves to an entry of the open map.
func (w *Walk) Key(name string) { w.steps[len(w.steps)-1] = step{member: name, index: inKey} }

// Whole moves back to the open container itself, for errors that name it.
func (w *Walk) Whole() { w.steps[len(w.steps)-1] = step{index: inWhole} }

// VisitMap calls visit for the entries of m, in order if the Walk is Sorted.
func (w *Walk) VisitMap(m map[string]any, visit func(name string, x any) error) error {
	if w.Sorted {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if err := visit(name, m[name]); err != nil {
				return err
			}
		}
		return nil
	}
	for name, x := range m {
		if err := visit(name, x); err != nil {
			return err
		}
	}
	return nil
}

// FollowPointer goes through a pointer. LeavePointer comes back.
func (w *Walk) FollowPointer() error {
	if len(w.steps)+w.pointers >= MaxDepth {
		return w.tooDeep(MaxDepth)
	}
	w.pointers++
	return nil
}

// LeavePointer comes back from the pointer that was followed last.
func (w *Walk) LeavePointer() { w.pointers-- }

func (w *Walk) depthLimit() int {
	if limit := w.limits.Depth; limit > 0 {
		return min(limit, MaxDepth)
	}
	return MaxDepth
}

func (w *Walk) checkDepth(depth int) error {
	if limit := w.depthLimit(); depth > limit || depth+w.pointers > MaxDepth {
		return w.tooDeep(limit)
	}
	return nil
}

func (w *Walk) tooDeep(limit int) error {
	return &fault.LimitError{Name: "Depth", Path: w.path(), Limit: limit, Got: limit + 1}
}

// Fail returns an error at the current place.
func (w *Walk) Fail(want, got string) error {
	return &fault.Error{Path: w.path(), Keyless: w.keylessPath(), Want: want, Got: got}
}

// Under moves the path of an error below the current place.
func (w *Walk) Under(err error) error {
	moved := fault.Under(w.path(), err)
	if e, ok := moved.(*fault.Error); ok {
		inner := fault.As(err).KeylessPath()
		if outer := w.keylessPath(); outer != "" || inner != fault.As(err).Path {
			e.Keyless = w.pathWith(true) + strings.TrimPrefix(inner, "$")
		}
	}
	return moved
}

// shownSteps is the number of levels that a path shows.
const shownSteps = 32

func (w *Walk) path() string { return w.pathWith(false) }

// keylessPath returns the path without keys of maps, or "" if it has none.
func (w *Walk) keylessPath() string {
	if !slices.ContainsFunc(w.steps, func(s step) bool { return s.index == inKey }) {
		return ""
	}
	return w.pathWith(true)
}

func (w *Walk) pathWith(keyless bool) string {
	path := "$"
	for i, s := range w.steps {
		switch {
		case i == shownSteps:
			return path + "…"
		case s.index >= 0:
			path = jsontext.Index(path, s.index)
		case s.index == inKey && keyless:
			path += "[…]"
		case s.index == inMember || s.index == inKey:
			path = jsontext.Path(path, s.member)
		}
	}
	return path
}
