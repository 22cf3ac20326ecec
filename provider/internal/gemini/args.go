package gemini

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

const (
	maxSteps = 40 // of a path, so that the response is not too deep
	maxGap   = 4  // elements that may be missing before one that comes; they become null
)

// arguments is a value in the arguments of a call that are streamed. They come
// as pieces of strings and as other values, each with its JSON path, as RFC 9535
// defines it.
type arguments struct {
	names    []string // of members, in their order
	members  map[string]*arguments
	elements []*arguments
	text     []byte // of a string, nil if it is not one
	value    []byte // of any other value
}

// add takes the pieces of partialArgs. It returns the first problem: the other
// pieces count.
func (a *arguments) add(pieces [][]byte) (first error) {
	for i, raw := range pieces {
		piece, err := jsontext.Members(raw)
		if err == nil {
			err = a.addPiece(piece)
		}
		if first == nil && err != nil {
			first = fault.Under(jsontext.Index("$.partialArgs", i), err)
		}
	}
	return first
}

func (a *arguments) addPiece(piece jsontext.Object) error {
	var text, value []byte
	for _, m := range piece {
		var err error
		switch m.Name {
		case "jsonPath":
			err = piece.Want(m.Name, "string")
		case "stringValue":
			text, err = m.Value, piece.Want(m.Name, "string")
		case "numberValue":
			value, err = m.Value, piece.Want(m.Name, "number")
		case "boolValue":
			value, err = m.Value, piece.Want(m.Name, "bool")
		case "nullValue":
			value, err = []byte("null"), piece.Want(m.Name, "string", "null")
		}
		if err != nil {
			return err
		}
	}
	if text == nil && value == nil {
		return nil
	}
	node, ok := a.at(piece.String("jsonPath"))
	if !ok || node.members != nil || node.elements != nil {
		return &fault.Error{Path: "$.jsonPath", Got: "is not a path to a place in the arguments"}
	}
	if text == nil {
		node.text, node.value = nil, value
		return nil
	}
	if node.text == nil {
		node.text = []byte{}
	}
	node.text, node.value = append(node.text, jsontext.Unquote(text)...), nil
	return nil
}

// at returns the value at a path, a new one if there is none.
func (a *arguments) at(path string) (*arguments, bool) {
	steps, ok := parsePath(path)
	for _, s := range steps {
		if ok {
			a, ok = a.child(s)
		}
	}
	return a, ok
}

// step is a step of a path: a name, or an index.
type step struct {
	name    string
	index   int
	isIndex bool
}

// child returns the value that a step leads to, a new one if there is none.
func (a *arguments) child(s step) (*arguments, bool) {
	switch {
	case a.text != nil, a.value != nil,
		s.isIndex && (a.members != nil || s.index > len(a.elements)+maxGap),
		!s.isIndex && a.elements != nil:
		return nil, false
	case s.isIndex:
		for len(a.elements) <= s.index {
			a.elements = append(a.elements, nil)
		}
		if a.elements[s.index] == nil {
			a.elements[s.index] = &arguments{}
		}
		return a.elements[s.index], true
	}
	child := a.members[s.name]
	if child == nil {
		if a.members == nil {
			a.members = map[string]*arguments{}
		}
		child = &arguments{}
		a.names, a.members[s.name] = append(a.names, s.name), child
	}
	return child, true
}

// parsePath reads a path such as $.places[0].name or $['places'][0]['name'].
func parsePath(path string) (steps []step, ok bool) {
	rest, ok := strings.CutPrefix(path, "$")
	for ok && rest != "" {
		var s step
		switch {
		case rest[0] == '.':
			n := strings.IndexAny(rest[1:], ".[") + 1
			if n == 0 {
				n = len(rest)
			}
			s.name, rest = rest[1:n], rest[n:]
			ok = s.name != ""
		case len(rest) > 1 && rest[0] == '[' && (rest[1] == '\'' || rest[1] == '"'):
			s.name, rest, ok = parseQuotedName(rest[1:])
		default:
			var digits string
			if digits, rest, ok = strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok {
				index, err := strconv.ParseUint(digits, 10, 31)
				s.index, s.isIndex, ok = int(index), true, err == nil
			}
		}
		steps = append(steps, s)
		ok = ok && len(steps) <= maxSteps
	}
	return steps, ok && len(steps) > 0
}

// parseQuotedName reads a name in quotes of either kind, and the bracket after
// it.
func parseQuotedName(rest string) (name, after string, ok bool) {
	quote := rest[0]
	text := []byte{'"'} // as a JSON string
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			text = append(text, '"')
			after, ok = strings.CutPrefix(rest[i+1:], "]")
			if !ok || jsontext.Check(text, jsontext.Limits{Depth: 1}) != nil {
				return "", "", false
			}
			return jsontext.Unquote(text), after, true
		case c == '"':
			text = append(text, '\\', c)
		case c == '\\' && i+1 < len(rest):
			if i++; rest[i] != '\'' {
				text = append(text, c)
			}
			text = append(text, rest[i])
		default:
			text = append(text, c)
		}
	}
	return "", "", false
}

// isEmpty reports whether nothing has come.
func (a *arguments) isEmpty() bool {
	return a == nil || a.text == nil && a.value == nil && a.members == nil && a.elements == nil
}

// appendJSON appends the value as JSON.
func (a *arguments) appendJSON(b []byte) []byte {
	switch {
	case a.isEmpty():
		return append(b, "null"...)
	case a.text != nil:
		return jsontext.AppendQuote(b, string(a.text))
	case a.value != nil:
		return append(b, a.value...)
	}
	begin := len(b)
	b = append(b, '{')
	for _, name := range a.names {
		if child := a.members[name]; !child.isEmpty() {
			b = append(jsontext.AppendQuote(b, name), ':')
			b = append(child.appendJSON(b), ',')
		}
	}
	if a.elements != nil {
		b[begin] = '['
	}
	for _, element := range a.elements {
		b = append(element.appendJSON(b), ',')
	}
	b = bytes.TrimSuffix(b, []byte(","))
	return append(b, b[begin]+2) // the closing bracket is two after the opening one
}
