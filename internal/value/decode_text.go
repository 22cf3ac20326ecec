package value

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/number"
	"github.com/agentstate/state/internal/value/walk"
)

// Decode returns JSON as a value of the plan's type, as Convert returns the
// tree of the JSON. Types with coding methods get their part of the text as it
// is spelled. data must have passed [jsontext.Check]. Errors are those of
// Convert.
func (p *Plan) Decode(data []byte, limits Limits) (v reflect.Value, size int, err error) {
	if p.scalar {
		v = reflect.New(p.typ).Elem()
		if p.decodeScalar(v, data) {
			if size, err = p.Check(v, limits); err != nil {
				return reflect.Value{}, 0, err
			}
			return v, size, nil
		}
	}
	tree, err := jsontext.Decode(data, jsontext.Limits{})
	if err != nil {
		return reflect.Value{}, 0, err
	}
	if p.typ == anyType {
		return p.Convert(tree, limits)
	}
	return p.convertMeasured(tree, jsonText(data), limits)
}

// DecodeInto stores JSON in dst, a settable value of the plan's type, as Decode
// returns it without limits. Scalars are stored without a copy.
func (p *Plan) DecodeInto(dst reflect.Value, data []byte) error {
	if p.scalar && p.decodeScalar(dst, data) {
		return nil
	}
	v, _, err := p.Decode(data, Limits{})
	if err == nil {
		dst.Set(v)
	}
	return err
}

// decodeScalar sets dst, a value of a scalar type, from a checked text in the
// spelling that AppendJSON uses. It reports false for other texts.
func (p *Plan) decodeScalar(dst reflect.Value, data []byte) bool {
	switch kind := dst.Kind(); {
	case len(data) == 0:
	case kind == reflect.String && data[0] == '"' && data[len(data)-1] == '"':
		dst.SetString(jsontext.Unquote(data))
		return true
	case kind == reflect.Bool && (data[0] == 't' || data[0] == 'f'):
		dst.SetBool(data[0] == 't')
		return true
	case dst.CanInt():
		if n, err := strconv.ParseInt(string(data), 10, 64); err == nil && !dst.OverflowInt(n) {
			dst.SetInt(n)
			return true
		}
	}
	return false
}

// NormaliseJSON returns the value of a checked JSON text as [Normalise] returns
// it, and its size.
func NormaliseJSON(data []byte, limits Limits) (any, int, error) {
	if x, ok := scalarOf(data); ok {
		size := walk.ScalarSize
		if text, ok := x.(string); ok {
			size = len(text) + 2
		}
		if limits.Bytes <= 0 || size <= limits.Bytes {
			return x, size, nil
		}
	}
	tree, err := jsontext.Decode(data, jsontext.Limits{})
	if err != nil {
		return nil, 0, err
	}
	size, err := walk.Measure(limits, false, func(w *walk.Walk) error { return dynamic.addValue(tree, w) })
	if err != nil {
		return nil, 0, err
	}
	return normalizeTree(tree), size, nil
}

// scalarOf returns the normalised value of a checked text without space around
// it. It reports false for containers and for numbers that it does not know.
func scalarOf(data []byte) (x any, ok bool) {
	if len(data) == 0 {
		return nil, false
	}
	switch c := data[0]; {
	case c == '"':
		if data[len(data)-1] != '"' {
			return nil, false
		}
		return jsontext.Unquote(data), true
	case c == '-' || '0' <= c && c <= '9':
		if n, err := strconv.ParseInt(string(data), 10, 64); err == nil && n != 0 {
			return n, true
		}
		return number.Normalize(json.Number(data))
	}
	switch string(data) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "null":
		return nil, true
	}
	return nil, false
}

// normalizeTree normalises a measured tree in its place: no other code has seen
// it.
func normalizeTree(tree any) any {
	switch x := tree.(type) {
	case []any:
		for i, e := range x {
			x[i] = normalizeTree(e)
		}
	case map[string]any:
		for name, e := range x {
			switch e.(type) {
			case json.Number, []any, map[string]any:
				x[name] = normalizeTree(e)
			}
		}
	case json.Number:
		n, _ := number.Normalize(x) // it can: the tree was measured
		return n
	}
	return tree
}
