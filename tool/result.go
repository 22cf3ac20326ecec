package tool

import (
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value"
)

// result is what a function has returned.
type result struct {
	text state.JSON
	// value is the Go value that text encodes. It is invalid for raw functions.
	// The JSON of a nil list is that of an empty one.
	value reflect.Value
	empty bool // the function has no result: it says only that it has returned
}

// encodeResult returns the result of a Go function.
func encodeResult(tool string, plan *value.Plan, v reflect.Value) (result, error) {
	size, err := plan.Check(v, value.Limits{})
	if err == nil {
		var data []byte
		if data, err = plan.AppendJSON(make([]byte, 0, size), v); err == nil {
			return result{state.JSON(data), v, hasNoMembers(v.Type())}, nil
		}
	}
	return result{}, &OutputError{Tool: tool, Err: badResult("the result cannot be encoded: " + publicReason(err))}
}

// hasNoMembers reports whether a type is that of a function without a result. A
// nil interface or pointer says that there is no such value.
func hasNoMembers(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() == 0 && !hasOwnJSON(t)
}

// compactResult checks the result of a raw function.
func compactResult(tool string, out state.JSON) (result, error) {
	if out == "" {
		return result{text: "null", empty: true}, nil
	}
	data := []byte(out)
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return result{}, &OutputError{Tool: tool, Err: badResult("the result is not valid JSON")}
	}
	return result{text: state.JSON(jsontext.AppendCompact(nil, data))}, nil
}

// memberOf returns the value whose JSON is the member of v's JSON named key, or
// an invalid value if it cannot be found without the JSON.
func memberOf(v reflect.Value, key string) reflect.Value {
	for v.IsValid() && key != "" {
		switch {
		case v.Kind() == reflect.Interface, v.Kind() == reflect.Pointer:
			v = v.Elem()
			continue
		case hasOwnJSON(v.Type()):
		case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String && !hasOwnJSON(v.Type().Key()):
			return v.MapIndex(reflect.ValueOf(key).Convert(v.Type().Key()))
		case v.Kind() == reflect.Struct:
			members, _ := jsonstruct.Members(v.Type())
			for i := range members {
				if members[i].Name == key {
					member, _ := members[i].FieldOf(v)
					return member
				}
			}
		}
		return reflect.Value{}
	}
	return v
}

// isNil reports whether v is nil. A list or map that writes its own JSON is nil
// only if it says so there.
func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || isNil(v.Elem())
	case reflect.Pointer:
		return v.IsNil()
	case reflect.Slice, reflect.Map:
		return v.IsNil() && !hasOwnJSON(v.Type())
	}
	return false
}

// hasOwnJSON reports whether a type writes its JSON itself.
func hasOwnJSON(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}
