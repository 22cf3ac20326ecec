package einostate

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// extra is what an Extra of eino holds, with the types that JSON does not keep: a
// plugin that finds a string in place of its bytes drops them, or panics.
type extra struct {
	Values map[string]json.RawMessage `json:"values,omitempty"`
	// Types are the types of values by their paths, such as "/signature".
	Types map[string]string `json:"types,omitempty"`
}

// keptTypes are the types that come back as they were, by their names in Go. Values
// of other types come back as encoding/json decodes their JSON.
var keptTypes = map[string]reflect.Type{}

func init() {
	for _, v := range []any{
		[]byte(nil), json.Number(""), json.RawMessage(nil), int(0), int8(0), int16(0), int32(0), int64(0),
		uint(0), uint8(0), uint16(0), uint32(0), uint64(0), float32(0),
		[]string(nil), []int(nil), []int64(nil), []float64(nil), [][]byte(nil), []bool(nil), []map[string]any(nil),
		map[string]string(nil), map[string]int(nil), map[string]bool(nil), map[string][]string(nil),
	} {
		keptTypes[reflect.TypeOf(v).String()] = reflect.TypeOf(v)
	}
}

// extraOf returns the stored form of an Extra, or nil for an empty one.
func extraOf(values map[string]any) (*extra, error) {
	if len(values) == 0 {
		return nil, nil
	}
	x := &extra{Values: map[string]json.RawMessage{}}
	for name, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("extra %q: %w", name, err)
		}
		x.Values[name] = data
		x.noteTypes("/"+name, v)
	}
	return x, nil
}

func (x *extra) noteTypes(path string, v any) {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for name, inner := range v {
			x.noteTypes(path+"/"+name, inner)
		}
	case []any:
		for i, inner := range v {
			x.noteTypes(fmt.Sprint(path, "/", i), inner)
		}
	default:
		if name := reflect.TypeOf(v).String(); keptTypes[name] != nil {
			if x.Types == nil {
				x.Types = map[string]string{}
			}
			x.Types[path] = name
		}
	}
}

// values is the inverse of extraOf.
func (x *extra) values() (map[string]any, error) {
	if x == nil {
		return nil, nil
	}
	values := make(map[string]any, len(x.Values))
	for name, data := range x.Values {
		var err error
		if values[name], err = x.decode("/"+name, data); err != nil {
			return nil, fmt.Errorf("extra %q: %w", name, err)
		}
	}
	return values, nil
}

func (x *extra) decode(path string, data json.RawMessage) (v any, err error) {
	if t := keptTypes[x.Types[path]]; t != nil {
		p := reflect.New(t)
		err := json.Unmarshal(data, p.Interface())
		return p.Elem().Interface(), err
	}
	if len(x.Types) == 0 || len(data) == 0 || data[0] != '{' && data[0] != '[' {
		err = json.Unmarshal(data, &v)
		return v, err
	}
	if data[0] == '{' {
		var members map[string]json.RawMessage
		err = json.Unmarshal(data, &members)
		all := make(map[string]any, len(members))
		for name, inner := range members {
			if err == nil {
				all[name], err = x.decode(path+"/"+name, inner)
			}
		}
		return all, err
	}
	var elements []json.RawMessage
	err = json.Unmarshal(data, &elements)
	all := make([]any, len(elements))
	for i, inner := range elements {
		if err == nil {
			all[i], err = x.decode(fmt.Sprint(path, "/", i), inner)
		}
	}
	return all, err
}
