package value

import (
	"errors"
	"reflect"
	"sync"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// ceiling is how deep any value may be nested. What is deeper is a cycle, or
// as good as one.
const ceiling = 10_000

// scalarSize is the size of a null, a bool or a number.
const scalarSize = 8

// A walk goes through one value, knows where it is and counts.
type walk struct {
	lim    Limits
	size   int
	steps  []step
	hops   int  // pointers on the way, which are no containers but can be cycles
	exact  bool // a json.Number may be any number, since it stays text
	sorted bool // members are visited in order
}

// A step is the place inside one container: a member or an index.
type step struct {
	member string
	index  int // or inMember, or inWhole
}

const (
	inMember = -1
	inWhole  = -2 // the container itself
)

// walks keeps walks for later ones. They hold names of members, no values.
var walks = sync.Pool{New: func() any { return new(walk) }}

// walked runs visit with a new walk and returns the size it counted. If visit
// fails it is run again with the members of maps in order, so that of several
// errors it is always the same that is reported.
func walked(lim Limits, visit func(*walk) error) (int, error) {
	w := walks.Get().(*walk)
	defer walks.Put(w)
	*w = walk{lim: lim, steps: w.steps[:0]}
	if visit(w) == nil {
		return w.size, nil
	}
	ordered := walk{lim: lim, sorted: true}
	if err := visit(&ordered); err != nil {
		return 0, err
	}
	return ordered.size, nil
}

// add counts n bytes.
func (w *walk) add(n int) error {
	if w.size += n; w.lim.Bytes > 0 && w.size > w.lim.Bytes {
		return &fault.LimitError{Name: "ValueBytes", Path: w.path(), Limit: w.lim.Bytes, Got: w.size}
	}
	return nil
}

// addString counts and checks a string, with or without its quotes.
func (w *walk) addString(s string, quotes int) error {
	if err := w.add(len(s) + quotes); err != nil {
		return err
	}
	if !utf8.ValidString(s) {
		return w.fail("valid UTF-8", "other bytes")
	}
	return nil
}

// addMember counts and checks a member's name with its quotes and separators.
func (w *walk) addMember(name string) error {
	if !utf8.ValidString(name) {
		return w.fail("valid UTF-8", "a key with other bytes")
	}
	return w.add(len(name) + 4)
}

// enter begins a container of n elements, leave ends it.
func (w *walk) enter(n int) error {
	if err := w.deeper(1); err != nil {
		return err
	}
	// Every element has a separator and at least one byte, so a container
	// that is much too large is refused before anybody looks into it.
	if most := w.lim.Bytes; most > 0 && n > most {
		return &fault.LimitError{Name: "ValueBytes", Path: w.path(), Limit: most, Got: n}
	}
	w.steps = append(w.steps, step{index: inWhole})
	return w.add(2)
}

func (w *walk) leave() { w.steps = w.steps[:len(w.steps)-1] }

// deeper checks that n more levels are within the limits.
func (w *walk) deeper(n int) error {
	depth, limit := len(w.steps)+n, w.lim.Depth
	if limit <= 0 || limit > ceiling {
		limit = ceiling
	}
	if depth+w.hops > ceiling || depth > limit {
		return &fault.LimitError{Name: "Depth", Path: w.path(), Limit: limit, Got: limit + 1}
	}
	return nil
}

// hop goes through a pointer; the caller decrements hops when it is back.
func (w *walk) hop() error {
	if len(w.steps)+w.hops >= ceiling {
		return &fault.LimitError{Name: "Depth", Path: w.path(), Limit: ceiling, Got: ceiling + 1}
	}
	w.hops++
	return nil
}

func (w *walk) element(i int)      { w.steps[len(w.steps)-1] = step{index: i} }
func (w *walk) member(name string) { w.steps[len(w.steps)-1] = step{member: name, index: inMember} }

// whole makes errors name the container itself.
func (w *walk) whole() { w.steps[len(w.steps)-1] = step{index: inWhole} }

func (w *walk) fail(want, got string) error {
	return &fault.Error{Path: w.path(), Want: want, Got: got}
}

// shown is how many steps of a path are worth reading.
const shown = 32

func (w *walk) path() string {
	path := "$"
	for i, s := range w.steps {
		switch {
		case i == shown:
			return path + "…"
		case s.index >= 0:
			path = jsontext.Index(path, s.index)
		case s.index == inMember:
			path = jsontext.Path(path, s.member)
		}
	}
	return path
}

// addText counts and checks JSON text that a coding method wrote.
func (w *walk) addText(text []byte, t reflect.Type) error {
	if err := w.add(len(text)); err != nil {
		return err
	}
	depth := ceiling
	if w.lim.Depth > 0 {
		depth = min(depth, w.lim.Depth)
	}
	if depth -= len(w.steps); depth <= 0 {
		// For strict 0 is no limit: a scalar is what is left.
		if kind := jsontext.Kind(text); kind == "object" || kind == "array" {
			return w.deeper(1)
		}
	}
	err := jsontext.Check(text, jsontext.Limits{Depth: depth})
	if limit := (*fault.LimitError)(nil); errors.As(err, &limit) {
		most := depth + len(w.steps)
		return &fault.LimitError{Name: "Depth", Path: w.path(), Limit: most, Got: most + 1}
	}
	if err != nil {
		return w.fail("JSON written by "+t.String(), "text that is not strict JSON")
	}
	return nil
}

// atRoot makes any error an *fault.Error or a *fault.LimitError.
func atRoot(err error) error {
	var wrong *fault.Error
	var limit *fault.LimitError
	if errors.As(err, &wrong) || errors.As(err, &limit) {
		return err
	}
	return &fault.Error{Path: "$", Want: "a value that can be coded", Got: "an error of its type"}
}

// under returns an error of a walk that began at the place of w as one of w.
func (w *walk) under(err error) error { return fault.Under(w.path(), err) }
