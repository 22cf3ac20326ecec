package statetest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/agentstate/state"
)

// A leaf is a part of a value that texts can repeat: a string, a sequence of
// bytes, a number or the key of a map.
type leaf struct {
	text   string
	number bool
}

// leavesOf calls yield with each leaf of v, and says false for a part that has
// no text to look for: a boolean.
func leavesOf(v any, yield func(l leaf, searchable bool)) {
	w := leafWalk{yield: yield, seen: map[uintptr]bool{}}
	w.add(reflect.ValueOf(v))
}

type leafWalk struct {
	yield func(leaf, bool)
	seen  map[uintptr]bool // pointers that are being walked
}

func (w *leafWalk) add(v reflect.Value) {
	if !v.IsValid() {
		return
	}
	if v.CanInterface() {
		switch t := v.Interface().(type) {
		case state.Message:
			w.message(t)
			return
		case state.JSON:
			w.json([]byte(t))
			return
		case json.RawMessage:
			w.json(t)
			return
		case json.Number:
			w.yield(leaf{string(t), true}, true)
			return
		case json.Marshaler, encoding.TextMarshaler:
			if v.Kind() != reflect.Pointer || !v.IsNil() {
				if data, err := json.Marshal(t); err == nil {
					w.json(data)
					return
				}
			}
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		w.yield(leaf{}, false)
	case reflect.String:
		w.yield(leaf{text: v.String()}, true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.yield(leaf{strconv.FormatInt(v.Int(), 10), true}, true)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		w.yield(leaf{strconv.FormatUint(v.Uint(), 10), true}, true)
	case reflect.Float32, reflect.Float64:
		w.yield(leaf{strconv.FormatFloat(v.Float(), 'f', -1, v.Type().Bits()), true}, true)
	case reflect.Complex64, reflect.Complex128:
		w.yield(leaf{text: fmt.Sprint(v.Complex())}, true)
	case reflect.Pointer:
		if v.IsNil() || w.seen[v.Pointer()] {
			return
		}
		w.seen[v.Pointer()] = true
		w.add(v.Elem())
		delete(w.seen, v.Pointer())
	case reflect.Interface:
		w.add(v.Elem())
	case reflect.Slice, reflect.Array:
		w.list(v)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			w.add(it.Key())
			w.add(it.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.add(v.Field(i))
		}
	}
}

func (w *leafWalk) list(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		data := make([]byte, v.Len())
		for i := range data {
			data[i] = byte(v.Index(i).Uint())
		}
		w.yield(leaf{text: string(data)}, true)
		return
	}
	for i := range v.Len() {
		w.add(v.Index(i))
	}
}

// json adds the strings, numbers and member names of a JSON text, and the text
// itself if it is not JSON.
func (w *leafWalk) json(data []byte) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		w.yield(leaf{text: string(data)}, true)
		return
	}
	w.add(reflect.ValueOf(v))
}

// message adds what a message says: its content, what its calls are given and
// what an unknown message has. Its type, its role and its other members are
// words of the protocol, and in every conversation.
func (w *leafWalk) message(m state.Message) {
	add := func(j state.JSON) {
		if j != "" {
			w.json([]byte(j))
		}
	}
	switch m := m.(type) {
	case state.TextMessage:
		w.yield(leaf{text: m.Text()}, true)
	case state.ToolCallMessage:
		for _, c := range m.Calls() {
			add(c.Input)
		}
	case state.ToolResultMessage:
		add(m.Content())
	}
}
