package provider

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

const (
	argsDepth = 40 // steps of a path, so that the response is not too deep
	argsGap   = 4  // elements that may be missing before one that comes; they become null
)

// geminiArgs is a value in the arguments of a call that are streamed. They come
// as pieces of strings and as other values, each with its JSON path, as
// RFC 9535 defines it.
type geminiArgs struct {
	names    []string // of members, in their order
	members  map[string]*geminiArgs
	elements []*geminiArgs
	text     []byte // of a string, not nil if it is one
	value    []byte // of anything else
}

// add takes pieces. One that has no place is an error, and the others count.
func (a *geminiArgs) add(path string, partial []byte) error {
	pieces, err := jsontext.Elements(partial)
	for i, piece := range pieces {
		if bad := a.piece(jsontext.Index(path, i), piece); err == nil {
			err = bad
		}
	}
	return err
}

func (a *geminiArgs) piece(path string, piece []byte) error {
	if err := want(path, piece, "object"); err != nil {
		return err
	}
	members, err := jsontext.Members(piece)
	if err != nil {
		return err
	}
	var at string
	var text, value []byte
	for _, m := range members {
		var kinds []string
		switch m.Name {
		case "jsonPath":
			at, kinds = stringOf(m.Value), []string{"string"}
		case "stringValue":
			text, kinds = m.Value, []string{"string"}
		case "numberValue":
			value, kinds = m.Value, []string{"number"}
		case "boolValue":
			value, kinds = m.Value, []string{"bool"}
		case "nullValue":
			value, kinds = []byte("null"), []string{"string", "null"}
		default:
			continue
		}
		if err := want(jsontext.Path(path, m.Name), m.Value, kinds...); err != nil {
			return err
		}
	}
	if text == nil && value == nil {
		return nil
	}
	node := a
	steps, ok := stepsOf(at)
	for _, step := range steps {
		if ok {
			node, ok = node.child(step)
		}
	}
	if !ok || node.members != nil || node.elements != nil {
		return &fault.Error{Path: jsontext.Path(path, "jsonPath"), Got: "is no path to a place in the arguments"}
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

// argsStep is a step of a path: a name, or an index.
type argsStep struct {
	name    string
	index   int
	isIndex bool
}

// child returns the value that a step leads to, a new one if there is none.
func (a *geminiArgs) child(step argsStep) (*geminiArgs, bool) {
	switch {
	case a.text != nil, a.value != nil,
		step.isIndex && (a.members != nil || step.index > len(a.elements)+argsGap),
		!step.isIndex && a.elements != nil:
		return nil, false
	case step.isIndex:
		for len(a.elements) <= step.index {
			a.elements = append(a.elements, nil)
		}
		if a.elements[step.index] == nil {
			a.elements[step.index] = &geminiArgs{}
		}
		return a.elements[step.index], true
	}
	child := a.members[step.name]
	if child == nil {
		if a.members == nil {
			a.members = map[string]*geminiArgs{}
		}
		child = &geminiArgs{}
		a.names, a.members[step.name] = append(a.names, step.name), child
	}
	return child, true
}

// stepsOf reads a path such as $.places[0].name or $['places'][0]['name'].
func stepsOf(path string) (steps []argsStep, ok bool) {
	rest, ok := strings.CutPrefix(path, "$")
	for ok && rest != "" {
		var step argsStep
		switch {
		case rest[0] == '.':
			n := strings.IndexAny(rest[1:], ".[") + 1
			if n == 0 {
				n = len(rest)
			}
			step.name, rest = rest[1:n], rest[n:]
			ok = step.name != ""
		case len(rest) > 1 && rest[0] == '[' && (rest[1] == '\'' || rest[1] == '"'):
			step.name, rest, ok = quotedName(rest[1:])
		default:
			var digits string
			if digits, rest, ok = strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok {
				index, err := strconv.ParseUint(digits, 10, 31)
				step.index, step.isIndex, ok = int(index), true, err == nil
			}
		}
		steps = append(steps, step)
		ok = ok && len(steps) <= argsDepth
	}
	return steps, ok && len(steps) > 0
}

// quotedName reads a name in quotes of either kind, and the bracket after it.
func quotedName(rest string) (name, after string, ok bool) {
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

// empty reports whether nothing has come.
func (a *geminiArgs) empty() bool {
	return a == nil || a.text == nil && a.value == nil && a.members == nil && a.elements == nil
}

// append appends the value as JSON.
func (a *geminiArgs) append(b []byte) []byte {
	switch {
	case a.empty():
		return append(b, "null"...)
	case a.text != nil:
		return jsontext.AppendQuote(b, string(a.text))
	case a.value != nil:
		return append(b, a.value...)
	}
	begin := len(b)
	b = append(b, '{')
	for _, name := range a.names {
		if child := a.members[name]; !child.empty() {
			b = append(jsontext.AppendQuote(b, name), ':')
			b = append(child.append(b), ',')
		}
	}
	if a.elements != nil {
		b[begin] = '['
	}
	for _, element := range a.elements {
		b = append(element.append(b), ',')
	}
	b = bytes.TrimSuffix(b, []byte(","))
	return append(b, b[begin]+2) // the bracket that closes
}
