package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// The table of this file has the mistakes that users make, with the whole text
// of the error for each. A new error gets a row. Its text names the field or
// the argument, says what was wanted and what was given, names the remedy if
// there is one, and holds no value: no row may contain mistakeValue. Every row
// has a sentinel or an exported type, by which a caller can tell the error.

// mistakeValue is a value that the rows write. No error may contain it.
const mistakeValue = "hunter2-hunter2"

// A mistake is what a user did, and the error that came of it.
type mistake struct {
	what string
	err  error
	text string
	kind any // a sentinel, or a pointer to a variable for errors.As
}

func TestMistakesHaveClearErrors(t *testing.T) {
	rows := map[string]bool{}
	for _, group := range []func(*testing.T) []mistake{
		mistakesOfSchemas, mistakesOfParseSchema, mistakesOfFields, mistakesOfNames, mistakesOfValues, mistakesOfHandlers,
		mistakesOfRights, mistakesOfBranches, mistakesOfHistory, mistakesOfImport, mistakesOfTools, mistakesOfSteps,
		mistakesOfTranscripts, mistakesOfTransactions, mistakesOfRoutes,
	} {
		for _, m := range group(t) {
			require.False(t, rows[m.what], "two rows %q", m.what)
			rows[m.what] = true
			t.Run(m.what, func(t *testing.T) {
				require.Error(t, m.err)
				require.Equal(t, m.text, m.err.Error())
				require.NotContains(t, m.err.Error(), mistakeValue)
				if sentinel, ok := m.kind.(error); ok {
					require.ErrorIs(t, m.err, sentinel)
				} else {
					require.ErrorAs(t, m.err, m.kind)
				}
			})
		}
	}
	require.GreaterOrEqual(t, len(rows), 84, "the mistakes that were tried at first")
}

func schemaMistake(parts ...state.Part) error {
	_, err := state.NewSchema(parts...)
	return err
}

type mistakeCycle struct {
	F func() `json:"f"`
}

type mistakeCircle *mistakeCircle

type mistakeHidden struct {
	Name   string
	secret string
}

var _ = mistakeHidden{}.secret // that it cannot be stored is the mistake

type mistakeHalf struct{}

func (mistakeHalf) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

func mistakesOfSchemas(*testing.T) []mistake {
	team := state.Team{"a": {"b"}}
	number := func(name string) *state.Field[int] { return &state.Field[int]{Name: name} }
	nilHandler := state.NewHandler[int]("h", nil)
	return []mistake{
		{"a field without a name", schemaMistake(&state.Field[int]{}),
			"state: a field has no Name", state.ErrInvalidSchema},
		{"a nil part", schemaMistake(nil),
			"state: schema: part 0 is nil", state.ErrInvalidSchema},
		{"a nil field", schemaMistake((*state.Field[int])(nil)),
			"state: schema: part 0 is nil", state.ErrInvalidSchema},
		{"a conversation with an owner and no team", schemaMistake(&state.Field[[]state.Message]{Name: "messages", Owner: "a"}),
			`state: field "messages": Owner, Read and Write need a Team in the schema`, state.ErrInvalidSchema},
		{"a conversation with a scope and no team", schemaMistake(&state.Field[[]state.Message]{Name: "messages", Read: state.Public, Write: state.Only("a")}),
			`state: field "messages": Owner, Read and Write need a Team in the schema`, state.ErrInvalidSchema},
		{"the same name twice", schemaMistake(number("x"), number("x")),
			`state: field "x": declared twice`, state.ErrInvalidSchema},
		{"two mistakes at once", schemaMistake(number("a\n"), &state.Field[int]{Name: "m", MaxBytes: -1}),
			"state: \"a\\n\": name: want one line of visible text, got U+000A\nstate: field \"m\": MaxBytes is negative", state.ErrInvalidSchema},
		{"a name with outer space", schemaMistake(number("order ")),
			`state: "order ": name: want a name without space around it, got outer space`, state.ErrInvalidSchema},
		{"a name with a zero-width space", schemaMistake(number("order\u200bid")),
			`state: "order\u200bid": name: want one line of visible text, got U+200B`, state.ErrWrongType},
		{"a name that is too long", schemaMistake(number(strings.Repeat("n", 300))),
			`state: "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn…": limit NameBytes: 300 is more than 256`, state.ErrLimitExceeded},
		{"a channel", schemaMistake(&state.Field[chan int]{Name: "x"}),
			`state: "x": want a type that can be stored, or a field that is Ephemeral and NoCopy, got chan int`, state.ErrInvalidSchema},
		{"a function inside", schemaMistake(&state.Field[[]mistakeCycle]{Name: "x"}),
			`state: "x": $[].f: want a type that can be stored, or a field that is Ephemeral and NoCopy, got func()`, state.ErrInvalidSchema},
		{"an unexported field", schemaMistake(&state.Field[mistakeHidden]{Name: "x"}),
			`state: "x": want a type that can be stored, or a field that is Ephemeral and NoCopy, got the unexported field secret of state_test.mistakeHidden, which has no JSON and would be lost`, state.ErrInvalidSchema},
		{"half of the coding methods", schemaMistake(&state.Field[mistakeHalf]{Name: "x"}),
			`state: "x": want a type that can be stored, or a field that is Ephemeral and NoCopy, got state_test.mistakeHalf, which has only one of MarshalJSON and UnmarshalJSON`, state.ErrInvalidSchema},
		{"keys that JSON cannot have", schemaMistake(&state.Field[map[float64]string]{Name: "x"}),
			`state: "x": want a type that can be stored, or a field that is Ephemeral and NoCopy, got a map with keys of type float64`, state.ErrInvalidSchema},
		{"messages of another type", schemaMistake(&state.Field[[]string]{Name: "messages"}),
			`state: field "messages": must be a Field[[]state.Message], not []string`, state.ErrInvalidSchema},
		{"secret messages", schemaMistake(&state.Field[[]state.Message]{Name: "messages", Secret: true}),
			`state: field "messages": cannot be Secret: the history shows the conversation; use Read`, state.ErrInvalidSchema},
		{"a pointer to itself", schemaMistake(&state.Field[mistakeCircle]{Name: "x"}),
			`state: "x": want a type that can be stored, or a field that is Ephemeral and NoCopy, got state_test.mistakeCircle, which points to nothing but itself`, state.ErrInvalidSchema},
		{"a complex number", schemaMistake(&state.Field[[]complex128]{Name: "x"}),
			`state: "x": $[]: want a type that can be stored, or a field that is Ephemeral and NoCopy, got complex128`, state.ErrInvalidSchema},
		{"an interface", schemaMistake(&state.Field[fmt.Stringer]{Name: "x"}),
			`state: "x": want a type that can be stored, or a field that is Ephemeral and NoCopy, got the interface fmt.Stringer`, state.ErrInvalidSchema},
		{"messages that lose tool results", schemaMistake(&state.Field[[]state.Message]{Name: "messages", Handler: state.KeepLast[[]state.Message](9)}),
			`state: field "messages": handler keep_last(9) can separate tool calls from their results`, state.ErrInvalidSchema},
		{"a secret that masks itself", schemaMistake(&state.Field[shapeMasked]{Name: "x", Secret: true}),
			`state: field "x": cannot be Secret: the JSON of state_test.shapeMasked does not give the value back`, state.ErrInvalidSchema},
		{"a negative limit of a field", schemaMistake(&state.Field[string]{Name: "x", MaxBytes: -1}),
			`state: field "x": MaxBytes is negative`, state.ErrInvalidSchema},
		{"OneOf of a typed field", schemaMistake(&state.Field[string]{Name: "x", OneOf: []reflect.Type{reflect.TypeFor[int]()}}),
			`state: field "x": OneOf is for a Field[any]`, state.ErrInvalidSchema},
		{"a nil in OneOf", schemaMistake(&state.Field[any]{Name: "x", OneOf: []reflect.Type{nil}}),
			`state: field "x": OneOf[0] is nil`, state.ErrInvalidSchema},
		{"a channel in OneOf", schemaMistake(&state.Field[any]{Name: "x", OneOf: []reflect.Type{reflect.TypeFor[chan int]()}}),
			`state: field "x": OneOf[0]: $: want a type that can be stored, got chan int`, state.ErrInvalidSchema},
		{"messages united, which drops equal calls", schemaMistake(&state.Field[[]state.Message]{Name: "messages", Handler: state.Union[[]state.Message]()}),
			`state: field "messages": handler union can separate tool calls from their results`, state.ErrInvalidSchema},
		{"a handler without a function", schemaMistake(&state.Field[int]{Name: "x", Handler: nilHandler}),
			`state: field "x": handler h has no function`, state.ErrInvalidSchema},
		{"an owner without a team", schemaMistake(&state.Field[int]{Name: "x", Owner: "a"}),
			`state: field "x": Owner, Read and Write need a Team in the schema`, state.ErrInvalidSchema},
		{"a reader without a team", schemaMistake(&state.Field[int]{Name: "x", Read: state.Public}),
			`state: field "x": Owner, Read and Write need a Team in the schema`, state.ErrInvalidSchema},
		{"a writer without a team", schemaMistake(&state.Field[int]{Name: "x", Write: state.Only("a")}),
			`state: field "x": Owner, Read and Write need a Team in the schema`, state.ErrInvalidSchema},
		{"an owner outside the team", schemaMistake(team, &state.Field[int]{Name: "x", Owner: "z"}),
			`state: field "x": owner "z" is not in the team`, state.ErrInvalidSchema},
		{"a reader outside the team", schemaMistake(team, &state.Field[int]{Name: "x", Read: state.Only("z")}),
			`state: field "x": agent "z" is not in the team`, state.ErrInvalidSchema},
		{"a reader that reads as two", schemaMistake(team, &state.Field[int]{Name: "x", Read: state.Only("a\x00b")}),
			"state: field \"x\": agent \"a\ufffdb\" is not in the team", state.ErrInvalidSchema},
		{"a writer that is not a reader", schemaMistake(team, &state.Field[int]{Name: "x", Read: state.Only("a"), Write: state.Only("b")}),
			`state: field "x": agent "b" may write but not read it: Write must not be wider than Read`, state.ErrInvalidSchema},
		{"a writer that may not read", schemaMistake(team, &state.Field[int]{Name: "x", Write: state.Public}),
			`state: field "x": agent "a" may write but not read it: Write must not be wider than Read`, state.ErrInvalidSchema},
		{"an agent below two others", schemaMistake(state.Team{"a": {"c"}, "b": {"c"}}),
			`state: team: agent "c" is below "a" and "b"`, state.ErrInvalidSchema},
		{"an agent below itself", schemaMistake(state.Team{"a": {"b"}, "b": {"a"}}),
			`state: team: agent "a" is below itself`, state.ErrInvalidSchema},
		{"a team with an agent without a name", schemaMistake(state.Team{"": nil}),
			`state: team: "": name: want a name, got nothing`, state.ErrInvalidSchema},
		{"an agent with an invisible name", schemaMistake(state.Team{"a\u2060": nil}),
			`state: team: "a\u2060": name: want one line of visible text, got U+2060`, state.ErrInvalidSchema},
		{"two teams", schemaMistake(team, team),
			"state: Team given twice", state.ErrInvalidSchema},
		{"limits twice", schemaMistake(state.Limits{}, state.Limits{}),
			"state: Limits given twice", state.ErrInvalidSchema},
	}
}

func mistakesOfParseSchema(*testing.T) []mistake {
	parse := func(text string, handlers ...state.AnyHandler) error {
		_, err := state.ParseSchema([]byte(text), handlers...)
		return err
	}
	return []mistake{
		{"a schema that is cut", parse(`{`),
			`state: "schema": want a member name, got the end of the text`, state.ErrInvalidSchema},
		{"an unknown member of a schema", parse(`{"fieldz":[]}`),
			`state: "schema": $.fieldz: unknown member: want allow_undeclared, fields, limits, team`, state.ErrInvalidSchema},
		{"an unknown type", parse(`{"fields":[{"name":"x","type":"int"}]}`),
			`state: "schema": $.fields[0].type: "int" is not one of any, boolean, date, integer, list, number, object, string`, state.ErrInvalidSchema},
		{"an unknown handler", parse(`{"fields":[{"name":"x","type":"string","handler":"concat"}]}`),
			`state: "schema": $.fields[0].handler: no handler "concat" for type string`, state.ErrInvalidSchema},
		{"a handler of another type", parse(`{"fields":[{"name":"x","type":"string","handler":"own"}]}`, state.NewHandler("own", func(a int, _ bool, b int) (int, error) { return a + b, nil })),
			`state: "schema": $.fields[0].handler: want a handler of string, got state.Handler[int]`, state.ErrInvalidSchema},
		{"a bad scope", parse(`{"fields":[{"name":"x","type":"string","read":"all"}]}`),
			`state: "schema": $.fields[0].read: want "private", "public" or a list of names, got another value`, state.ErrInvalidSchema},
		{"a bad name", parse(`{"fields":[{"name":" ","type":"string"}]}`),
			`state: " ": name: want a name without space around it, got outer space`, state.ErrInvalidSchema},
	}
}

func mistakesOfFields(t *testing.T) []mistake {
	text, other := &state.Field[string]{Name: "text"}, &state.Field[int]{Name: "text"}
	unset, undeclared := &state.Field[string]{Name: "unset"}, &state.Field[string]{Name: "texts"}
	st := state.New(state.MustSchema(text, unset))
	require.NoError(t, text.Set(st, mistakeValue))
	get := func(f *state.Field[string], st *state.State) error { _, err := f.Get(st); return err }
	_, typeErr := other.Get(st)
	_, deleteErr := (*state.Field[string])(nil).Delete(st)
	var nilContext context.Context
	var watchErr, unknownErr error
	for _, err := range st.Watch(nilContext, 0) {
		watchErr = err
	}
	_, unknownErr = state.GetAs[string](st, "Text")
	return []mistake{
		{"a field that is unset", get(unset, st),
			`state: "unset": no value`, state.ErrNotFound},
		{"a field of another schema", get(undeclared, st),
			`state: "texts": unknown field; did you mean "text"?`, state.ErrUnknownField},
		{"a field with another handler", (&state.Field[string]{Name: "text", Handler: state.FirstWins[string]()}).Set(st, mistakeValue),
			`state: "text": handler: want replace, which the schema of the State has, got first_wins`, state.ErrWrongType},
		{"a field of another type", typeErr,
			`state: "text": type: want string, got int`, state.ErrWrongType},
		{"a nil field is read", get(nil, st),
			"state: field: the *Field is nil", state.ErrInvalid},
		{"a nil field is written", (*state.Field[string])(nil).Set(st, mistakeValue),
			"state: field: the *Field is nil", state.ErrInvalid},
		{"a nil field is deleted", deleteErr,
			"state: field: the *Field is nil", state.ErrInvalid},
		{"a field of a nil State is read", get(text, nil),
			`state: "text": no value`, state.ErrNotFound},
		{"a field of a nil State is written", text.Set(nil, mistakeValue),
			`state: "text": the State is nil`, state.ErrReadOnly},
		{"a name in a nil State is written", (*state.State)(nil).KV().Set("x", mistakeValue),
			`state: "x": read-only: a snapshot or a transaction that has ended`, state.ErrReadOnly},
		{"a snapshot is written", text.Set(st.Snapshot(), mistakeValue),
			`state: "text": read-only: a snapshot or a transaction that has ended`, state.ErrReadOnly},
		{"Update of a field without a function", text.Update(st, nil),
			`state: "text": update: the function is nil`, state.ErrInvalid},
		{"Update without a function", st.Update(nil),
			"state: update: the function is nil", state.ErrInvalid},
		{"Watch without a context", watchErr,
			"state: watch: the context is nil", state.ErrInvalid},
		{"a name in another case", unknownErr,
			`state: "Text": unknown field; did you mean "text"?`, state.ErrUnknownField},
	}
}

func mistakesOfNames(*testing.T) []mistake {
	id := &state.Field[string]{Name: "order_id"}
	closed, open := state.New(state.MustSchema(id)), state.New(nil)
	secret := &state.Field[string]{Name: "hidden_order", Owner: "b"}
	team := state.New(state.MustSchema(state.Team{"a": nil, "b": nil}, secret, &state.Field[int]{Name: "shown", Read: state.Public}))
	_, missing := state.GetAs[string](closed, "order_id")
	return []mistake{
		{"a hyphen for an underscore", closed.KV().Set("order-id", mistakeValue),
			`state: "order-id": unknown field; did you mean "order_id"?`, state.ErrUnknownField},
		{"another word", closed.KV().Set("customer", mistakeValue),
			`state: "customer": unknown field; there is "order_id"`, state.ErrUnknownField},
		{"a name that the agent may not see", team.As("a").KV().Set("hidden-order", mistakeValue),
			`state: "hidden-order": unknown field; there is "shown"`, state.ErrUnknownField},
		{"a patch with a misspelled name", closed.Patch(map[string]any{"orderId": mistakeValue}),
			`state: "orderId": unknown field; did you mean "order_id"?`, state.ErrUnknownField},
		{"an empty key", open.KV().Set("", mistakeValue),
			`state: "": name: want a name, got nothing`, state.ErrWrongType},
		{"a key of two lines", open.KV().Set("a\nb", mistakeValue),
			`state: "a\nb": name: want one line of visible text, got U+000A`, state.ErrWrongType},
		{"a key of fillers", open.KV().Set("\u3164", mistakeValue),
			"state: \"ㅤ\": name: want one line of visible text, got U+3164", state.ErrWrongType},
		{"a key that is too long", open.KV().Set(strings.Repeat("k", 300), mistakeValue),
			`state: "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk…": limit NameBytes: 300 is more than 256`, state.ErrLimitExceeded},
		{"a name that is unset", missing,
			`state: "order_id": no value`, state.ErrNotFound},
	}
}

func mistakesOfValues(t *testing.T) []mistake {
	type order struct {
		ID    string `json:"id"`
		Count int    `json:"count"`
	}
	number, one := &state.Field[int8]{Name: "number"}, &state.Field[order]{Name: "order"}
	names, secret := &state.Field[map[string]int]{Name: "names"}, &state.Field[map[string]int]{Name: "secret", Secret: true}
	when, small := &state.Field[state.Time]{Name: "when"}, &state.Field[string]{Name: "small", MaxBytes: 10}
	choice := &state.Field[any]{Name: "choice", OneOf: []reflect.Type{reflect.TypeFor[int]()}}
	st := state.New(state.MustSchema(number, one, names, secret, when, small, choice, state.Limits{Depth: 3}, state.AllowUndeclared))
	require.NoError(t, st.KV().Set("word", mistakeValue))
	_, asNumber := state.GetAs[int](st, "word")
	_, parseTime := state.ParseTime(mistakeValue)
	_, jsonOf := state.JSONOf(make(chan int))
	var decoded int
	return []mistake{
		{"text for a number", st.KV().Set("number", mistakeValue),
			`state: "number": want integer, got string`, state.ErrWrongType},
		{"a number that is too large", st.KV().Set("number", 300),
			`state: "number": want integer, got a number it cannot hold`, state.ErrWrongType},
		{"a fraction for an integer", st.KV().Set("number", 1.5),
			`state: "number": want integer, got a number it cannot hold`, state.ErrWrongType},
		{"null for a number", st.KV().Set("number", nil),
			`state: "number": want integer, got null`, state.ErrWrongType},
		{"an unknown member", st.KV().Set("order", map[string]any{"idd": mistakeValue}),
			`state: "order": $.idd: want a known member, got an unknown one`, state.ErrWrongType},
		{"a member of another type", st.KV().Set("order", map[string]any{"count": mistakeValue}),
			`state: "order": $.count: want integer, got string`, state.ErrWrongType},
		{"a value under a key", st.KV().Set("names", map[string]any{mistakeValue: "x"}),
			`state: "names": $[…]: want integer, got string`, state.ErrWrongType},
		{"a value under a key of a secret", st.KV().Set("secret", map[string]any{mistakeValue: "x"}),
			`state: "secret": want integer, got string`, state.ErrWrongType},
		{"a day that is none", st.KV().Set("when", mistakeValue),
			`state: "when": want date, got another string`, state.ErrWrongType},
		{"a type that is none of the choice", st.KV().Set("choice", mistakeValue),
			`state: "choice": want one of [int], got string`, state.ErrWrongType},
		{"text that is not UTF-8", small.Set(st, "\xff"),
			`state: "small": want valid UTF-8, got other bytes`, state.ErrWrongType},
		{"text that is too long", small.Set(st, mistakeValue),
			`state: "small": limit MaxBytes: 17 is more than 10`, state.ErrLimitExceeded},
		{"a value that is too deep", st.KV().Set("deep", [][][][]string{{{{mistakeValue}}}}),
			`state: "deep": limit Depth: 4 is more than 3`, state.ErrLimitExceeded},
		{"a channel in a map", st.KV().Set("any", map[string]any{mistakeValue: make(chan int)}),
			`state: "any": $[…]: want a value that can be stored, got chan int`, state.ErrWrongType},
		{"a mask that is written back", st.KV().Set("any", state.Masked{}),
			`state: "any": want a value that can be stored, got a state.Masked`, state.ErrWrongType},
		{"a State as a value", st.KV().Set("any", st),
			`state: "any": want a value that can be stored, got a state.State`, state.ErrWrongType},
		{"text read as a number", asNumber,
			`state: "word": want integer, got string`, state.ErrWrongType},
		{"two bad fields in a patch", st.Patch(map[string]any{"number": mistakeValue, "when": mistakeValue}),
			"state: \"number\": want integer, got string\nstate: \"when\": want date, got another string", state.ErrWrongType},
		{"a time of other text", parseTime,
			`state: "date": want RFC 3339 or 2006-01-02, got other text`, state.ErrWrongType},
		{"JSON of a channel", jsonOf,
			"state: JSON: json: unsupported type: chan int", new(*json.UnsupportedTypeError)},
		{"JSON that is cut", state.JSON(`{"a":`).Decode(&decoded),
			`state: "JSON": $.a: want a value, got the end of the text`, state.ErrWrongType},
		{"JSON into another type", state.JSON(`"x"`).Decode(&decoded),
			"state: JSON: json: cannot unmarshal string into Go value of type int", new(*json.UnmarshalTypeError)},
	}
}

var errMistake = errors.New("not today")

func mistakesOfHandlers(t *testing.T) []mistake {
	panics := func(int, bool, int) (int, error) { panic(mistakeValue) }
	fails := func(int, bool, int) (int, error) { return 0, errMistake }
	mine := &state.Field[int]{Name: "mine", Handler: state.NewHandler("mine", panics)}
	theirs := &state.Field[int]{Name: "theirs", Handler: state.NewHandler("theirs", fails)}
	secret := &state.Field[int]{Name: "secret", Handler: state.NewHandler("theirs", fails), Secret: true}
	sum := &state.Field[int8]{Name: "sum", Handler: state.Sum[int8]()}
	even := &state.Field[int]{Name: "even", Validate: func(n int) error { return errMistake }}
	thrown := &state.Field[int]{Name: "thrown", Validate: func(int) error { panic(mistakeValue) }}
	hidden := &state.Field[int]{Name: "hidden", Validate: func(int) error { return errMistake }, Secret: true}
	st := state.New(state.MustSchema(mine, theirs, secret, sum, even, thrown, hidden))
	require.NoError(t, sum.Set(st, 100))
	return []mistake{
		{"a handler panics", mine.Set(st, 1),
			`state: "mine": handler mine panicked with a string`, new(*state.PanicError)},
		{"a handler fails", theirs.Set(st, 1),
			`state: "theirs": handler theirs: not today`, errMistake},
		{"a handler of a secret fails", secret.Set(st, 1),
			`state: "secret": handler theirs failed on a secret`, state.ErrRefused},
		{"a sum is out of range", sum.Set(st, 100),
			`state: "sum": handler sum: sum is out of range`, state.ErrRefused},
		{"a validation refuses", even.Set(st, 1),
			`state: "even": not today`, state.ErrRefused},
		{"a validation panics", thrown.Set(st, 1),
			`state: "thrown": Validate panicked with a string`, state.ErrRefused},
		{"a validation of a secret refuses", hidden.Set(st, 1),
			`state: "hidden": validation refused the value`, state.ErrRefused},
		{"SetWith of a handler of another type", st.KV().SetWith("sum", 1, state.Sum[float64]()),
			`state: "sum": handler: want int8, got float64`, state.ErrWrongType},
		{"SetWith of a handler without a function", sum.SetWith(st, 1, state.NewHandler[int8]("none", nil)),
			"state: SetWith: handler none has no function", state.ErrInvalid},
		{"SetWith of MergeByID without a function", state.New(nil).KV().SetWith("x", []string{"a"}, state.MergeByID[[]string](nil)),
			"state: SetWith: handler merge_by_id has no function", state.ErrInvalid},
	}
}

// The log of the program is told which setting would give a right.
func TestHintsOfDeniedAccess(t *testing.T) {
	mine := &state.Field[string]{Name: "mine", Owner: "a"}
	shown := &state.Field[string]{Name: "shown", Owner: "a", Read: state.Public}
	talk := &state.Field[[]state.Message]{Name: "messages", Owner: "a"}
	st := state.New(state.MustSchema(state.Team{"a": nil, "b": nil}, mine, shown, talk))
	_, read := mine.Get(st.As("b"))
	_, stranger := mine.Get(st.As("z"))
	_, export := st.As("a").Export()
	for _, row := range []struct {
		err  error
		want string
	}{
		{read, `Read of the field "mine" would have to allow the agent "b", or Owner to be it`},
		{shown.Set(st.As("b"), "x"), `Write of the field "shown" would have to allow the agent "b", or Owner to be it`},
		{stranger, `the Team of the schema has no agent "z"`},
		{export, "only the handle of the host may do this"},
		{st.As("b").UserSays("Hello!"), `Write of the field "messages" would have to allow the agent "b", or Owner to be it`},
		{st.As("b").History().Append(state.InferenceResult{Agent: "a"}), `Read and Write of the conversation would have to allow the agent "b"`},
	} {
		var denied *state.AccessError
		require.ErrorAs(t, row.err, &denied)
		require.Equal(t, row.want, denied.Hint())
		require.NotContains(t, row.err.Error(), row.want)
	}
}

func mistakesOfRights(t *testing.T) []mistake {
	mine := &state.Field[string]{Name: "mine", Owner: "a"}
	shown := &state.Field[string]{Name: "shown", Owner: "a", Read: state.Public}
	temp := &state.Field[string]{Name: "temp", Owner: "a", Ephemeral: true}
	st := state.New(state.MustSchema(state.Team{"a": nil, "b": nil}, mine, shown, temp))
	require.NoError(t, mine.Set(st, mistakeValue))
	_, read := mine.Get(st.As("b"))
	_, stranger := mine.Get(st.As("z"))
	_, export := st.As("a").Export()
	_, at := st.As("a").At(0)
	_, none := shown.Get(st.As(""))
	return []mistake{
		{"an agent reads what it may not", read,
			`state: read "mine": access denied to agent "b"`, state.ErrDenied},
		{"an agent writes what it may only read", shown.Set(st.As("b"), mistakeValue),
			`state: set "shown": access denied to agent "b"`, state.ErrDenied},
		{"an agent outside the team", stranger,
			`state: read "mine": access denied to agent "z", which is not in the team`, state.ErrDenied},
		{"an agent without a name", none,
			`state: read "shown": access denied to agent "", which is not in the team`, state.ErrDenied},
		{"an agent exports", export,
			`state: export: access denied to agent "a"`, state.ErrDenied},
		{"an agent looks back", at,
			`state: look at a past version: access denied to agent "a"`, state.ErrDenied},
		{"an agent reverts", st.As("a").Revert(st.Snapshot()),
			`state: revert: access denied to agent "a"`, state.ErrDenied},
		{"an agent ends the run of others", st.As("b").EndRun(),
			`state: end run "temp": access denied to agent "b"`, state.ErrDenied},
	}
}

func mistakesOfBranches(t *testing.T) []mistake {
	text := &state.Field[string]{Name: "text"}
	schema := state.MustSchema(text, state.Limits{Journal: 2})
	st, other := state.New(schema), state.New(schema)
	joined, twice, a, b := st.Fork(), st.Fork(), st.Fork(), st.Fork()
	require.NoError(t, st.Join(joined))
	require.NoError(t, errors.Join(text.Set(a, mistakeValue), text.Set(b, mistakeValue+"b")))
	conflict := st.Join(a, b)
	for range 20 {
		require.NoError(t, text.Set(st, mistakeValue))
	}
	_, future := st.At(99)
	_, past := st.At(1)
	var compacted error
	for _, err := range st.Changes(0) {
		compacted = err
	}
	var ended *state.State
	require.NoError(t, st.Update(func(tx *state.State) error { ended = tx; return nil }))
	_, effects := st.Effects(state.New(nil).Snapshot())
	return []mistake{
		{"a branch of another state", st.Join(other.Fork()),
			"state: join: branch 0: a fork of another state", state.ErrInvalid},
		{"a state that is no branch", st.Join(other),
			"state: join: branch 0: not a fork of this state", state.ErrInvalid},
		{"a nil branch", st.Join(nil),
			"state: join: branch 0: not a fork of this state", state.ErrInvalid},
		{"a branch twice", st.Join(twice, twice),
			"state: join: branch 1: given twice", state.ErrInvalid},
		{"a branch that is joined", st.Join(joined),
			"state: join: branch 0: read-only: the branch is joined", state.ErrReadOnly},
		{"a write to a branch that is joined", text.Set(joined, mistakeValue),
			`state: "text": read-only: the branch is joined`, state.ErrReadOnly},
		{"two branches that overwrote a field", conflict,
			`state: conflicting writes to ["text"]`, state.ErrConflict},
		{"a version that is yet to come", future,
			"state: version 99: no such version; the last is 20", state.ErrNotFound},
		{"a version that is forgotten", past,
			"state: version 1: no longer in the journal", state.ErrCompacted},
		{"changes that are forgotten", compacted,
			"state: changes since 0: no longer in the journal", state.ErrCompacted},
		{"Revert to a state that is alive", st.Revert(st.Fork()),
			"state: revert: not to a snapshot", state.ErrInvalid},
		{"Revert to a snapshot with another schema", st.Revert(state.New(nil).Snapshot()),
			"state: revert: not to a snapshot of this state", state.ErrInvalid},
		{"Effects from a state with another schema", effects,
			"state: effects: from is a state with another schema", state.ErrInvalid},
		{"a transaction that has ended", text.Set(ended, mistakeValue),
			`state: "text": read-only: a snapshot or a transaction that has ended`, state.ErrReadOnly},
	}
}

func mistakesOfHistory(*testing.T) []mistake {
	st := state.New(state.MustSchema(state.Team{"a": nil, "b": nil}, state.Limits{ValueBytes: 200}))
	_, message := state.DecodeMessage([]byte(`{"type":1,"content":"` + mistakeValue + `"}`))
	_, noType := state.DecodeMessage([]byte(`{"content":"` + mistakeValue + `"}`))
	var result state.InferenceResult
	return []mistake{
		{"a result for another agent", st.As("a").History().Append(state.InferenceResult{Agent: "b"}),
			`state: append a result of "b" to "history": access denied to agent "a"`, state.ErrDenied},
		{"a result of a zero message", st.History().Append(state.InferenceResult{Output: []state.Message{state.TextMessage{}}}),
			`state: "history": $.output[0]: want a message, got state.TextMessage`, state.ErrWrongType},
		{"a zero message", state.Messages.Set(st, []state.Message{state.TextMessage{}}),
			`state: "messages": $[0]: want message, got one that is not to be stored`, state.ErrWrongType},
		{"a nil message", state.Messages.Set(st, []state.Message{nil}),
			`state: "messages": $[0]: want message, got null`, state.ErrWrongType},
		{"a result that is too large", st.History().Append(state.InferenceResult{Raw: strings.Repeat("r", 300)}),
			`state: "history": limit ValueBytes: 300 is more than 200`, state.ErrLimitExceeded},
		{"a result of the year 12000", st.History().Append(state.InferenceResult{CreatedAt: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}),
			`state: "history": $.created_at: want a year from 0 to 9999, got 12000`, state.ErrWrongType},
		{"a result that has begun in the year 12000", st.History().Append(state.InferenceResult{StartedAt: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}),
			`state: "history": $.started_at: want a year from 0 to 9999, got 12000`, state.ErrWrongType},
		{"a message with a number as type", message,
			`state: "message": $.type: want string, got number`, state.ErrWrongType},
		{"a message without a type", noType,
			`state: "message": $.type: want string, got nothing`, state.ErrWrongType},
		{"a text among the results of tools", json.Unmarshal([]byte(`{"tool_calls":[{"type":"text","role":"user","content":"`+mistakeValue+`"}]}`), &result),
			`state: "result": $.tool_calls[0]: want a tool result, got "text"`, state.ErrWrongType},
	}
}

func mistakesOfImport(t *testing.T) []mistake {
	text := &state.Field[string]{Name: "text"}
	st := state.New(state.MustSchema(text))
	view, err := json.Marshal(st)
	require.NoError(t, err)
	load := func(text string) error {
		_, err := state.Import(state.MustSchema(&state.Field[string]{Name: "text"}), []byte(text))
		return err
	}
	open := func(text string) error { _, err := state.Import(nil, []byte(text)); return err }
	return []mistake{
		{"the view of MarshalJSON", load(string(view)),
			`state: "import": the masked view that MarshalJSON writes; use Export`, state.ErrWrongType},
		{"other JSON", load(`{"text":"` + mistakeValue + `"}`),
			`state: "import": JSON that Export has not written`, state.ErrWrongType},
		{"no JSON", load(`text`),
			`state: "import": want a value, got other text at byte 0`, state.ErrWrongType},
		{"a newer format", load(`{"format":99}`),
			`state: "import": format 99; this package reads format 1`, state.ErrWrongType},
		{"an imported field of another type", load(`{"format":1,"fields":[{"name":"text","value":[1]}]}`),
			`state: import: "text": want string, got list`, state.ErrWrongType},
		{"a field that the schema does not have", load(`{"format":1,"fields":[{"name":"texts","value":"` + mistakeValue + `"}]}`),
			`state: import: "texts": unknown field: declare it, or name it in Was of the field that has its values now`, state.ErrUnknownField},
		{"a field that an open schema does not have", open(`{"format":1,"fields":[{"name":"text","value":"` + mistakeValue + `"}]}`),
			`state: import: "text": unknown field: declare it, or name it in Was of the field that has its values now`, state.ErrUnknownField},
		{"a key that the schema does not accept", load(`{"format":1,"keys":[{"name":"texts","value":"` + mistakeValue + `"}]}`),
			`state: import: "texts": unknown field: declare it, or give the schema AllowUndeclared`, state.ErrUnknownField},
		{"a field twice", load(`{"format":1,"fields":[{"name":"text","value":"a"},{"name":"text","value":"` + mistakeValue + `"}]}`),
			`state: import: "text": given twice`, state.ErrWrongType},
		{"a key with an invisible name", open(`{"format":1,"keys":[{"name":"a\u200b","value":"` + mistakeValue + `"}]}`),
			`state: import: "a\u200b": name: want one line of visible text, got U+200B`, state.ErrWrongType},
		{"a message that there is not", load(`{"format":1,"conversation":[[0,1]]}`),
			`state: "import": $.conversation: no messages from 0 to 1`, state.ErrWrongType},
		{"a State from its JSON", json.Unmarshal(view, st),
			"state: JSON: a State is restored with Import, not from its JSON view", state.ErrInvalid},
	}
}

func mistakesOfTools(*testing.T) []mistake {
	type args struct {
		Query string `json:"query"`
	}
	st := state.New(state.MustSchema(&state.Field[string]{Name: "card"}))
	search := tool.Must(tool.New("search", "Search.", func(context.Context, args) (string, error) { panic(mistakeValue) }))
	call := func(args string) error {
		_, err := search.Call(context.Background(), st, state.JSON(args))
		return err
	}
	return []mistake{
		{"an unknown argument", call(`{"query":"x","querry":"` + mistakeValue + `"}`),
			"tool \"search\": bad arguments:\n- \"querry\": is unknown, there are \"query\"", new(*tool.ArgumentError)},
		{"a missing argument", call(`{}`),
			"tool \"search\": bad arguments:\n- \"query\": want string, got nothing", new(*tool.ArgumentError)},
		{"an argument of another type", call(`{"query":1}`),
			"tool \"search\": bad arguments:\n- \"query\": want string, got number", new(*tool.ArgumentError)},
		{"arguments that are no JSON", call(`{"query":`),
			"tool \"search\": bad arguments:\n- arguments.query: want a value, got the end of the text", new(*tool.ArgumentError)},
		{"a function panics", call(`{"query":"x"}`),
			`tool "search": the function panicked`, new(*tool.PanicError)},
	}
}

func mistakesOfSteps(*testing.T) []mistake {
	var nilContext context.Context
	st, ctx := state.New(nil), context.Background()
	secret := &state.Field[string]{Name: "card", Secret: true}
	masked := state.New(state.MustSchema(secret))
	_ = secret.Set(masked, mistakeValue)
	fine := func(context.Context, struct{}) (int, error) { return 1, nil }
	search := tool.Must(tool.New("search", "Search.", fine))
	_, name := tool.New("my tool!", "", fine)
	_, function := tool.New[struct{}, int]("search", "", nil)
	_, param := tool.New("search", "", fine, tool.From(secret, "card"))
	_, context := search.Call(nilContext, st, "")
	_, zero := new(tool.Tool).Call(ctx, st, "")
	_, updater := tool.Updater(state.MustSchema(), "ann")
	unknown := must(tool.Run(ctx, masked, []*tool.Tool{search}, []state.ToolCall{{Name: mistakeValue}}))[0]
	twice := must(tool.Run(ctx, st, []*tool.Tool{search, search}, []state.ToolCall{{Name: "search"}}))[0]
	step := must(tool.BeginStep(ctx, st, []*tool.Tool{search}, []state.ToolCall{{Name: "search"}}))
	_, none := step.Call(ctx, 1)
	_, _ = step.Call(ctx, 0)
	_, again := step.Call(ctx, 0)
	return []mistake{
		{"a tool with a name that no provider accepts", name,
			`tool "my tool!": the name has characters other than A-Z a-z 0-9 _ - . : /, which no provider accepts`, tool.ErrInvalidTool},
		{"a tool without a function", function,
			`tool "search": no function`, tool.ErrInvalidTool},
		{"a field for a parameter that there is not", param,
			`tool "search": From: field "card", parameter "card": the function has no such parameter`, tool.ErrInvalidTool},
		{"a tool that is called without a context", context,
			`tool "search": the context is nil`, state.ErrInvalid},
		{"the zero tool", zero,
			"tool: the Tool is nil, or no constructor has made it", tool.ErrInvalidTool},
		{"an updater of no fields", updater,
			`tool "update_state": there is no field that agent "ann" may write`, tool.ErrInvalidTool},
		{"a call to a tool that there is not", unknown.Err,
			`tool "[SECRET]" not found; there is search`, tool.ErrUnknownTool},
		{"a call to a tool that there is twice", twice.Err,
			`tool: there are several tools "search"`, tool.ErrUnknownTool},
		{"a call that is not in the step", none,
			"tool: there is no call 1 in a step of 1", tool.ErrNotPending},
		{"a call that is made twice", again,
			"tool: call 0 is not pending: it has been made already", tool.ErrNotPending},
	}
}

// What users of package transcript do wrong with the conversation of a State.
func mistakesOfTranscripts(t *testing.T) []mistake {
	call := state.ToolCall{ID: "c1", Name: "search"}
	said := []state.Message{state.UserText(mistakeValue)}
	messages := func(h state.Handler[[]state.Message]) error {
		st := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: h}))
		return state.Messages.Set(st, said)
	}
	st := state.New(nil)
	require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}))
	require.NoError(t, st.History().Answer(state.ToolResult(call, `"found"`)))
	empty := transcript.Trim(func([]state.Message) []state.Message { return []state.Message{nil} })
	return []mistake{
		{"a nil Trim", schemaMistake(&state.Field[[]state.Message]{Name: "messages", Handler: transcript.Trim(nil).Handler()}),
			`state: field "messages": handler trim has no function`, state.ErrInvalidSchema},
		{"a Trim that panics", messages(transcript.Trim(func([]state.Message) []state.Message { panic(mistakeValue) }).Handler()),
			`state: "messages": handler trim panicked with a string`, new(*state.PanicError)},
		{"a Trim that returns a nil message", messages(empty.Handler()),
			`state: "messages": $[0]: want message, got null`, state.ErrWrongType},
		{"a handler that separates calls and results", state.Messages.SetWith(st, said, state.KeepLast[[]state.Message](1)),
			`state: "messages": handler: want one that keeps tool calls with their results, got keep_last(1)`, state.ErrWrongType},
		{"a result of a call that nobody made", st.History().Answer(state.ToolResult(state.ToolCall{ID: "c9", Name: "search"}, `"`+mistakeValue+`"`)),
			`state: call "c9" of "search": unknown call`, state.ErrUnknownCall},
		{"a second result of a call", st.History().Answer(state.ToolResult(call, `"`+mistakeValue+`"`)),
			`state: call "c1" of "search": call is answered`, state.ErrAnswered},
		{"a result that is not one", st.History().Answer(state.ToolResultMessage{}),
			`state: "history": $[0]: want a message, got the zero message`, state.ErrWrongType},
	}
}

func mistakesOfTransactions(t *testing.T) []mistake {
	text, list := &state.Field[string]{Name: "text"}, &state.Field[[]string]{Name: "list"}
	var outer, both error
	synctest.Test(t, func(*testing.T) {
		st := state.New(state.MustSchema(text, list))
		outer = st.Update(func(tx *state.State) error {
			_ = list.GetOr(tx, nil)
			return errors.Join(list.Set(st, []string{mistakeValue}), text.Set(tx, mistakeValue))
		})
		both = text.Update(st, func(string) (string, error) { return "", text.Set(st, mistakeValue) })
	})
	return []mistake{
		{"a transaction that writes through the outer handle", outer,
			`state: "list": written by others at each attempt: does a function given to Update write them through another handle than tx, or a handler or Validate write them itself?`, state.ErrConflict},
		{"an Update of a field that writes the field", both,
			`state: "text": written by others at each attempt: does a function given to Update write them through another handle than tx, or a handler or Validate write them itself?`, state.ErrConflict},
	}
}

func mistakesOfRoutes(*testing.T) []mistake {
	intent := &state.Field[string]{Name: "intent", Owner: "a"}
	schema := state.MustSchema(state.Team{"a": nil, "b": nil}, intent)
	rules := func(rules ...route.Rule) error { _, err := route.New(rules...); return err }
	parse := func(text string) error { _, err := route.Parse(schema, []byte(text)); return err }
	var router route.Router
	return []mistake{
		{"a rule without an agent", rules(route.Otherwise("")),
			"route: $.rules[0]: want when and agent, or otherwise", route.ErrInvalidRules},
		{"a rule after otherwise", rules(route.Otherwise("a"), route.Otherwise("b")),
			"route: $.rules[0]: otherwise must come last: no rule after it can match", route.ErrInvalidRules},
		{"the zero rule", rules(route.Rule{}),
			"route: $.rules[0]: want when and agent, or otherwise", route.ErrInvalidRules},
		{"a rule about a nil field", rules(route.When(route.Has[string](nil), "a")),
			"route: $.rules[0].when.field: the field is nil", route.ErrInvalidRules},
		{"the zero predicate", rules(route.When(route.Predicate{}, "a")),
			"route: $.rules[0].when: the predicate is missing", route.ErrInvalidRules},
		{"rules about an unknown field", parse(`{"rules":[{"when":{"field":"Intent","op":"has"},"agent":"a"}]}`),
			`route: $.rules[0].when.field: "Intent": unknown field; did you mean "intent"?`, route.ErrInvalidRules},
		{"rules with an unknown op", parse(`{"rules":[{"when":{"field":"intent","op":"is","value":"x"},"agent":"a"}]}`),
			`route: $.rules[0].when.op: unknown op "is": want one of has, eq, ne, in, gt, gte, lt, lte, match, contains`, route.ErrInvalidRules},
		{"rules with an unknown function", parse(`{"rules":[{"when":{"func":"weekend"},"agent":"a"}]}`),
			`route: $.rules[0].when.func: no function "weekend" was given: there are []`, route.ErrInvalidRules},
		{"no rules", parse(`{}`),
			"route: $.rules: want a list, got nothing", route.ErrInvalidRules},
		{"a router from JSON", json.Unmarshal([]byte(`{}`), &router),
			"route: a Router is read with Parse, which needs the schema", route.ErrInvalidRules},
		{"rules about what the agent may not read", route.Must(route.New(route.When(route.Has(intent), "a"))).Check(schema, "b"),
			`route: $.rules[0].when: the rule for "a" never matches: read "intent": access denied to agent "b"`, route.ErrInvalidRules},
	}
}

// The names in errors come from models, providers and clients as well. The
// texts are logged, and models read them.
func TestErrorsAreShortHoweverLongAName(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	team := state.New(state.MustSchema(state.Team{"ann": nil}, &state.Field[int]{Name: "count", Owner: "ann"}))
	known := tool.Must(tool.New("search", "", func(context.Context, struct{}) (int, error) { return 0, nil }))
	call := state.ToolCall{ID: long, Name: long, Input: state.JSON(`{"` + long + `":1}`)}
	run := func(name string) error {
		call := call
		call.Name = name
		return must(tool.Run(t.Context(), team, []*tool.Tool{known}, []state.ToolCall{call}))[0].Err
	}
	for name, err := range map[string]error{
		"a write of a stranger":           team.As(long).KV().Set("count", 1),
		"a patch of a stranger":           team.As(long).Patch(map[string]any{"count": 1}),
		"a write of an unknown name":      team.KV().Set(long, 1),
		"a result of another agent":       team.As("ann").History().Append(state.InferenceResult{Agent: long}),
		"a result of a call nobody made":  team.History().Answer(state.ToolResult(call, `1`)),
		"a call of a tool that is not":    run(long),
		"a call with an unknown argument": run("search"),
	} {
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 512, name)
	}
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
