package statetest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/agentstate/state"
)

// A leaf is a part of a value that texts can repeat: a string, a sequence of
// bytes, a number or the key of a map.
type leaf struct {
	text   string
	number bool
}

// maxLeafDepth is how deep a value is searched, which may refer to itself.
const maxLeafDepth = 64

// leavesOf calls yield with each leaf of v, and says false for a part that has
// no text to look for: a boolean.
func leavesOf(v any, yield func(l leaf, searchable bool)) { walkLeaves(reflect.ValueOf(v), 0, yield) }

func walkLeaves(v reflect.Value, depth int, yield func(l leaf, searchable bool)) {
	if !v.IsValid() || depth > maxLeafDepth {
		return
	}
	add := func(part reflect.Value) { walkLeaves(part, depth+1, yield) }
	if v.CanInterface() {
		switch t := v.Interface().(type) {
		case state.Message:
			add(reflect.ValueOf(saidBy(t)))
			return
		case state.JSON:
			add(reflect.ValueOf(spelledTree(t)))
			return
		case json.Number:
			yield(leaf{string(t), true}, true)
			return
		case json.Marshaler, encoding.TextMarshaler:
			if data, err := json.Marshal(t); err == nil {
				add(reflect.ValueOf(spelledTree(state.JSON(data))))
				return
			}
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		yield(leaf{}, false)
	case reflect.String:
		yield(leaf{text: v.String()}, true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		yield(leaf{strconv.FormatInt(v.Int(), 10), true}, true)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		yield(leaf{strconv.FormatUint(v.Uint(), 10), true}, true)
	case reflect.Float32, reflect.Float64:
		yield(leaf{strconv.FormatFloat(v.Float(), 'f', -1, v.Type().Bits()), true}, true)
	case reflect.Pointer, reflect.Interface:
		add(v.Elem())
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			data := make([]byte, v.Len())
			for i := range data {
				data[i] = byte(v.Index(i).Uint())
			}
			yield(leaf{text: string(data)}, true)
			return
		}
		for i := range v.Len() {
			add(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			add(it.Key())
			add(it.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			add(v.Field(i))
		}
	}
}

// saidBy returns what a message says: its content, and what its calls are given.
// Its type, its role and its other members are words of the protocol, and in
// every conversation.
func saidBy(m state.Message) (said []any) {
	switch m := m.(type) {
	case state.TextMessage:
		said = append(said, m.Text())
	case state.ToolCallMessage:
		for _, c := range m.Calls() {
			said = append(said, c.Input)
		}
	case state.ToolResultMessage:
		said = append(said, m.Content())
	}
	return said
}
