// Handlers shows how Set combines a value with the one that is there: a row for
// each handler, with the writes and what they came to.
package main

import (
	"fmt"
	"log"
	"strings"

	"github.com/agentstate/state"
)

type Task struct{ ID, Status string }

func main() {
	type words = []string
	type numbers = map[string]int
	row(state.Replace[string](), "draft", "final")
	row(state.Append[words](), words{"a"}, words{"b", "a"})
	row(state.Union[words](), words{"a"}, words{"b", "a"})
	row(state.UnionBy[words](strings.ToLower), words{"Go"}, words{"GO", "C"})
	row(state.MergeByID[[]Task](func(t Task) string { return t.ID }),
		[]Task{{"1", "open"}, {"2", "open"}}, []Task{{"1", "done"}})
	row(state.KeepLast[words](2), words{"a", "b"}, words{"c"})
	row(state.MergeMap[numbers](), numbers{"x": 1, "y": 1}, numbers{"y": 2})
	row(state.Sum[float64](), 0.25, 0.5, 0.25)
	row(state.Max[int](), 3, 7, 5)
	row(state.Min[int](), 3, 7, 5)
	row(state.FirstWins[string](), "first", "second")
	row(state.LastWins[string](), "first", "second")
	row(longest, "ant", "elephant", "bee")

	// One call can use another handler than the schema's, and Replace none.
	notes := &state.Field[words]{Name: "notes"}
	st := state.New(state.MustSchema(notes))
	check(notes.Set(st, words{"a", "b"}))
	check(notes.SetWith(st, words{"b", "c"}, state.Union[words]()))
	fmt.Println("\nSetWith a union:", notes.Or(st, nil))
	check(notes.Replace(st, words{"z"}))
	fmt.Println("Replace:        ", notes.Or(st, nil))

	// A handler that fails or panics changes nothing.
	strict := state.NewHandler("strict", func(words, bool, words) (words, error) { panic("a bug") })
	fmt.Println("A panic:        ", notes.SetWith(st, words{"!"}, strict), notes.Or(st, nil))
}

// longest is a handler of our own.
var longest = state.NewHandler("longest", func(current string, present bool, update string) (string, error) {
	if present && len(current) >= len(update) {
		return current, nil
	}
	return update, nil
})

// row writes values one after the other to a field with a handler.
func row[T any](handler state.Handler[T], writes ...T) {
	field := &state.Field[T]{Name: "value", Handler: handler}
	st := state.New(state.MustSchema(field))
	var written []string
	for _, v := range writes {
		check(field.Set(st, v))
		written = append(written, fmt.Sprint(v))
	}
	result, err := field.Get(st)
	check(err)
	fmt.Printf("%-14s %-36s => %v\n", handler.Name(), strings.Join(written, " + "), result)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
