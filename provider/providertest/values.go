package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
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

func edit(t *testing.T, text []byte, isMeant func(i int, path string) bool, change func(in object, name string)) []byte {
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
