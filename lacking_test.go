package state_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
)

// logged returns what fn logs by the default Logger.
func logged(t *testing.T, fn func()) string {
	t.Helper()
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	fn()
	return log.String()
}

// What answers without an error says by the log that the schema does not have the field,
// once, and answers as for one that is unset.
func TestAFieldThatTheSchemaDoesNotHaveIsLogged(t *testing.T) {
	type world struct {
		st               *state.State
		misspelt, number *state.Field[string]
		list             *state.Field[[]string]
	}
	next := func(st *state.State, p route.Predicate) {
		agent, ok := route.Must(route.New(route.When(p, "a"))).Next(st)
		if ok {
			panic(agent)
		}
	}
	for name, use := range map[string]func(t *testing.T, w world){
		"GetOr": func(t *testing.T, w world) { require.Equal(t, "default", w.misspelt.GetOr(w.st, "default")) },
		"Has":   func(t *testing.T, w world) { require.False(t, w.misspelt.Has(w.st)) },
		"another type": func(t *testing.T, w world) {
			require.Equal(t, "default", w.number.GetOr(w.st, "default"))
		},
		"ListLen": func(t *testing.T, w world) { require.Zero(t, state.ListLen(w.st, w.list)) },
		"ListItems": func(t *testing.T, w world) {
			for range state.ListItems(w.st, w.list, 0) {
				t.Fail()
			}
		},
		"a snapshot": func(t *testing.T, w world) { require.Empty(t, w.misspelt.GetOr(w.st.Snapshot(), "")) },
		"a branch":   func(t *testing.T, w world) { require.Empty(t, w.misspelt.GetOr(w.st.Fork(), "")) },
		"a transaction": func(t *testing.T, w world) {
			require.NoError(t, w.st.Update(func(tx *state.State) error { w.misspelt.GetOr(tx, ""); return nil }))
		},
		"a rule that asks whether it is set": func(_ *testing.T, w world) { next(w.st, route.Has(w.misspelt)) },
		"a rule that compares":               func(_ *testing.T, w world) { next(w.st, route.Eq(w.misspelt, "x")) },
		"a rule with not":                    func(_ *testing.T, w world) { next(w.st, route.Not(route.Has(w.misspelt))) },
		"a rule of another type":             func(_ *testing.T, w world) { next(w.st, route.Has(w.number)) },
		"a rule with a function": func(_ *testing.T, w world) {
			next(w.st, route.Func("f", func(st *state.State) bool { return w.misspelt.GetOr(st, "") != "" }))
		},
		"a rule of JSON": func(t *testing.T, w world) {
			rules, err := route.Parse(nil, []byte(`{"rules":[{"when":{"field":"citty","op":"has"},"agent":"a"}]}`))
			require.NoError(t, err)
			_, ok := rules.Next(w.st)
			require.False(t, ok)
		},
	} {
		for _, schema := range []string{"closed", "open", "none"} {
			t.Run(name+" "+schema, func(t *testing.T) {
				w := world{
					misspelt: &state.Field[string]{Name: "citty"}, number: &state.Field[string]{Name: "number"}, list: &state.Field[[]string]{Name: "lists"},
				}
				parts := []state.Part{&state.Field[string]{Name: "city"}, &state.Field[int]{Name: "number"}, &state.Field[[]string]{Name: "list"}}
				switch schema {
				case "closed":
				case "open":
					parts = append(parts, state.AllowUndeclared)
				default:
					parts = []state.Part{state.AllowUndeclared}
				}
				if schema != "closed" && name == "a rule of JSON" || schema == "none" && strings.Contains(name, "another type") {
					return // there the name is a key, or unknown as the others are
				}
				made := state.MustSchema(parts...)
				w.st = state.New(made)
				log := logged(t, func() {
					use(t, w)
					use(t, w)
					w.st = state.New(made)
					use(t, w)
				})
				require.Equal(t, 1, strings.Count(log, "is not in the schema of the State"), log)
				require.Contains(t, log, "level=WARN")
				if schema == "closed" && !strings.Contains(name, "another type") {
					require.Contains(t, log, "unknown field; did you mean")
				}
			})
		}
	}
}

func TestNewNilHasNoFields(t *testing.T) {
	f := &state.Field[string]{Name: fmt.Sprint("of ", t.Name())}
	require.Contains(t, logged(t, func() { f.GetOr(state.New(nil), "") }), "New(nil) has none")
}

// What is sound, and what returns the error, logs nothing.
func TestOnlyMistakesAreLogged(t *testing.T) {
	unset, hidden, misspelt := &state.Field[string]{Name: "unset"}, &state.Field[string]{Name: "hidden", Read: state.Only("a"), Write: state.Only("a")}, &state.Field[string]{Name: "misspelt"}
	schema := state.MustSchema(state.Team{"a": {"b"}}, unset, hidden)
	st := state.New(schema)
	require.Empty(t, logged(t, func() {
		require.Empty(t, unset.GetOr(st, ""))
		require.Empty(t, unset.GetOr(nil, ""))
		require.Empty(t, misspelt.GetOr(nil, ""))
		require.Empty(t, hidden.GetOr(st.As("b"), ""), "who may not read it observes nothing")
		require.False(t, hidden.Has(st.As("nobody")))
		_, err := misspelt.Get(st)
		require.ErrorIs(t, err, state.ErrUnknownField)
		require.ErrorIs(t, misspelt.Set(st, ""), state.ErrUnknownField)
		_, found := st.KV().Get("name of a model")
		require.False(t, found)
		require.False(t, st.KV().Has("name of a model"))
		rules := route.Must(route.New(route.When(route.Has(misspelt), "a"), route.When(route.Has(hidden), "a")))
		require.ErrorIs(t, rules.Check(schema, "b"), state.ErrUnknownField)
		require.Contains(t, rules.Explain(st), "no such field")
	}))
	require.Contains(t, logged(t, func() { misspelt.GetOr(st, "") }), "misspelt", "nobody was told before")
}
