package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
)

type (
	object = map[string]any
	array  = []any
)

// parse returns the value of a JSON text. Numbers keep their spelling.
func parse(t *testing.T, text []byte) (value any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// write returns the JSON text of a value.
func write(t *testing.T, value any) []byte {
	t.Helper()
	text, err := state.JSONOf(value)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// eachMember calls visit for every member in a value, in the order of their
// names, with the path and the object. Elements of arrays have the path [].
func eachMember(value any, path string, visit func(path string, in object, name string)) {
	switch value := value.(type) {
	case object:
		for _, name := range sortedNames(value) {
			inner := value[name]
			visit(path+"."+name, value, name)
			eachMember(inner, path+"."+name, visit)
		}
	case array:
		for _, inner := range value {
			eachMember(inner, path+"[]", visit)
		}
	}
}

// eachObject calls visit for every object in a value.
func eachObject(value any, visit func(object)) {
	switch value := value.(type) {
	case object:
		for _, name := range sortedNames(value) {
			eachObject(value[name], visit)
		}
		visit(value)
	case array:
		for _, inner := range value {
			eachObject(inner, visit)
		}
	}
}

func sortedNames(value object) []string {
	names := make([]string, 0, len(value))
	for name := range value {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// members returns the paths of the members in a text.
func members(t *testing.T, text []byte) (paths []string) {
	t.Helper()
	eachMember(parse(t, text), "$", func(path string, _ object, _ string) { paths = append(paths, path) })
	return paths
}

// editMember returns a text with one of its members edited.
func editMember(t *testing.T, text []byte, index int, change func(in object, name string)) []byte {
	t.Helper()
	return edit(t, text, func(i int, _ string) bool { return i == index }, change)
}

// editPath returns a text with all members of a path edited.
func editPath(t *testing.T, text []byte, path string, change func(in object, name string)) []byte {
	t.Helper()
	return edit(t, text, func(_ int, at string) bool { return at == path }, change)
}

func edit(
	t *testing.T, text []byte, isMeant func(i int, path string) bool, change func(in object, name string),
) []byte {
	t.Helper()
	value := parse(t, text)
	i := -1
	eachMember(value, "$", func(path string, in object, name string) {
		if i++; isMeant(i, path) {
			change(in, name)
		}
	})
	return write(t, value)
}

func remove(in object, name string) { delete(in, name) }

func setTo(value any) func(object, string) {
	return func(in object, name string) { in[name] = value }
}

// meaning describes what messages say to a program that reads them. A null says
// nothing.
func meaning(msgs []state.Message) string {
	var said []string
	for _, m := range msgs {
		text := m.Type() + " " + m.Role()
		switch m := m.(type) {
		case state.TextMessage:
			text += " " + m.Text()
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				text += fmt.Sprintf(" %s %s %s", c.ID, c.Name, withoutNulls(c.Input))
			}
		case state.ToolResultMessage:
			text += fmt.Sprintf(" %s %s %t", m.Call().ID, withoutNulls(m.Content()), m.IsError())
		}
		said = append(said, text)
	}
	return strings.Join(said, "\n")
}

// unknown returns the number of messages that only keep an entry.
func unknown(msgs []state.Message) (n int) {
	for _, m := range msgs {
		if _, ok := m.(state.UnknownMessage); ok {
			n++
		}
	}
	return n
}

// withoutNulls returns a value without the members that are null, and without
// those in which a format of provider.New keeps the rest of a part of a result.
// An empty value is "".
func withoutNulls(j state.JSON) string {
	var value any
	if j.Decode(&value) != nil {
		return string(j)
	}
	text, _ := json.Marshal(pruned(value)) // as it was decoded
	switch string(text) {
	case "null", "{}", `""`, "[]":
		return ""
	}
	return string(text)
}

func pruned(value any) any {
	switch value := value.(type) {
	case object:
		for name, inner := range value {
			if inner = pruned(inner); inner == nil || strings.HasPrefix(name, "format:") {
				delete(value, name)
			} else {
				value[name] = inner
			}
		}
		if len(value) == 0 {
			return nil
		}
	case array:
		for i, inner := range value {
			value[i] = pruned(inner)
		}
	}
	return value
}

// raws returns the JSON of messages, one a line.
func raws(msgs []state.Message) string {
	texts := make([]string, len(msgs))
	for i, m := range msgs {
		texts[i] = string(m.Raw())
	}
	return strings.Join(texts, "\n")
}

// equal reports whether two texts are the same JSON value.
func equal(a, b []byte) bool { return state.JSON(a).Equal(state.JSON(b)) }

// variants returns copies of a message in which one value is replaced, emptied
// or removed.
func variants[M any](m M) (all []M) {
	for i := 0; ; i++ {
		for k := 0; ; k++ {
			v := &varier{at: i, change: k}
			copied := reflect.New(reflect.TypeFor[M]()).Elem()
			copied.Set(v.copy(reflect.ValueOf(&m).Elem()))
			if !v.reached {
				return all
			}
			if v.exhausted {
				break
			}
			all = append(all, copied.Interface().(M))
		}
	}
}

// texts that a codec may take for something else.
var variedTexts = []string{"", "x <b>", `{"a": 1}`, `{"a":1`, "null", "[]", `"x"`, "data:image/png;base64,aGk="}

// varier copies a value and makes one change in it, at the value that it comes to
// after at others.
type varier struct {
	at, change int
	reached    bool // whether there is such a value
	exhausted  bool // whether it has no further change
}

// copy returns a copy of a value.
func (v *varier) copy(from reflect.Value) reflect.Value {
	to := reflect.New(from.Type()).Elem()
	if to.Set(from); v.at == 0 {
		v.reached, v.at = true, -1
		v.vary(to)
		return to
	}
	v.at--
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			to.Elem().Set(v.copy(from.Elem()))
		}
	case reflect.Interface:
		if !from.IsNil() {
			to.Set(v.copy(from.Elem()))
		}
	case reflect.Struct:
		for i := range from.NumField() {
			if from.Type().Field(i).IsExported() {
				to.Field(i).Set(v.copy(from.Field(i)))
			}
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		}
		for i := range from.Len() {
			to.Index(i).Set(v.copy(from.Index(i)))
		}
	case reflect.Map:
		if from.IsNil() {
			break
		}
		to.Set(reflect.MakeMap(from.Type()))
		keys := from.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			if a.Kind() != reflect.String || a.String() == b.String() {
				return 0
			}
			if a.String() < b.String() {
				return -1
			}
			return 1
		})
		for _, key := range keys {
			to.SetMapIndex(key, v.copy(from.MapIndex(key)))
		}
	}
	return to
}

// vary changes a value.
func (v *varier) vary(to reflect.Value) {
	var changes []func()
	switch to.Kind() {
	case reflect.String:
		for _, text := range variedTexts {
			changes = append(changes, func() { to.SetString(text) })
		}
	case reflect.Bool:
		changes = append(changes, func() { to.SetBool(!to.Bool()) })
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		changes = append(changes, func() { to.SetInt(0) }, func() { to.SetInt(7) })
	case reflect.Float32, reflect.Float64:
		changes = append(changes, func() { to.SetFloat(0) }, func() { to.SetFloat(1.5) })
	case reflect.Slice:
		if n := to.Len(); n > 0 {
			changes = append(changes, func() { to.SetZero() }, func() { to.Set(to.Slice(0, n-1)) },
				func() { to.Set(reflect.AppendSlice(to.Slice(0, n), to)) })
		}
	case reflect.Pointer:
		if to.IsNil() {
			changes = append(changes, func() { to.Set(reflect.New(to.Type().Elem())) })
		} else {
			changes = append(changes, func() { to.SetZero() }, func() { to.Set(reflect.New(to.Type().Elem())) })
		}
	case reflect.Map:
		changes = append(changes, func() { to.SetZero() }, func() { to.Set(reflect.MakeMap(to.Type())) })
	case reflect.Interface:
		if to.NumMethod() == 0 {
			for _, value := range []any{nil, "x", 7.0, object{"y": array{true, nil}}} {
				changes = append(changes, func() {
					if to.SetZero(); value != nil {
						to.Set(reflect.ValueOf(value))
					}
				})
			}
		}
	}
	// A change that changes nothing does no harm.
	if v.change >= len(changes) {
		v.exhausted = true
		return
	}
	changes[v.change]()
}
