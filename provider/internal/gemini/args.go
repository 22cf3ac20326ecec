package gemini

import (
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

const (
	maxSteps = 40 // of a path, so that the response is not too deep
	maxGap   = 4  // elements that may be missing before one that comes; they become null
)

// addArgument adds an element of partialArgs. The arguments of a streamed call
// come as pieces of strings and as other values, each with its JSON path, as
// RFC 9535 defines it.
func addArgument(args *codec.Growing, piece jsontext.Object) error {
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
			value, err = []byte("null"), piece.Want(m.Name, "string", "number", "null") // an enum
		}
		if err != nil {
			return err
		}
	}
	if text == nil && value == nil {
		return nil
	}
	node, ok := nodeAt(args, piece.String("jsonPath"))
	if !ok {
		return &fault.Error{Path: "$.jsonPath", Got: "is not a path to a place in the arguments"}
	}
	if text == nil {
		node.Set(value)
	} else {
		node.AppendText(jsontext.Unquote(text))
	}
	return nil
}

// nodeAt returns the value at a path, or a new value. It returns false for a
// path that is not valid, and for one through or to a value of another kind.
func nodeAt(args *codec.Growing, path string) (*codec.Growing, bool) {
	steps, ok := parsePath(path)
	if !ok {
		return nil, false
	}
	node := args
	for _, s := range steps {
		switch {
		case s.isIndex && (node.IsEmpty() || node.IsList()) && s.index <= node.Len()+maxGap:
			for i := node.Len(); i < s.index; i++ {
				node.Element(i)
			}
			node = node.Element(s.index)
		case !s.isIndex && (node.IsEmpty() || node.IsObject()):
			node = node.Member(s.name)
		default:
			return nil, false
		}
	}
	return node, !node.IsList() && !node.IsObject()
}

// step is a step of a path: a name, or an index.
type step struct {
	name    string
	index   int
	isIndex bool
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
