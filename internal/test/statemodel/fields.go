package statemodel

import (
	"errors"
	"reflect"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"pgregory.net/rapid"
)

var (
	errUpdate  = errors.New("fn gives up")
	errHandler = errors.New("handler refuses")
	errTooLong = errors.New("too long")
	errAny     = errors.New("some error") // any error will do
)

// historyName is the name under which the model keeps the results.
const historyName = "(history)"

// accessors gives access to a field of any type.
type accessors struct {
	name, handler     string
	part              state.Part
	secret, ephemeral bool
	values            *rapid.Generator[any]
	with              []string // handlers for SetWith
	zero              any

	get     func(*state.State) (any, error)
	set     func(*state.State, any) error
	setWith func(*state.State, any, string) error
	replace func(*state.State, any) error
	update  func(*state.State, func(any) (any, error)) error
	remove  func(*state.State) (bool, error)
	byName  func(string) state.AnyHandler
}

func accessorsOf[T any](f *state.Field[T], values *rapid.Generator[T], with ...state.Handler[T]) *accessors {
	var zero T
	m := &accessors{
		name: f.Name, handler: f.Handler.Name(), part: f, secret: f.Secret, ephemeral: f.Ephemeral,
		values: values.AsAny(), zero: zero,
		get:     func(st *state.State) (any, error) { return f.Get(st) },
		set:     func(st *state.State, v any) error { return f.Set(st, asType[T](v)) },
		replace: func(st *state.State, v any) error { return f.Replace(st, asType[T](v)) },
		update: func(st *state.State, fn func(any) (any, error)) error {
			return f.Update(st, func(cur T) (T, error) {
				v, err := fn(cur)
				return asType[T](v), err
			})
		},
		remove: f.Delete,
	}
	if m.handler == "" && reflect.TypeFor[T]().Kind() == reflect.Slice {
		m.handler = "append"
	}
	pick := func(name string) state.Handler[T] {
		return with[slices.IndexFunc(with, func(h state.Handler[T]) bool { return h.Name() == name })]
	}
	for _, h := range with {
		m.with = append(m.with, h.Name())
	}
	m.setWith = func(st *state.State, v any, by string) error { return f.SetWith(st, asType[T](v), pick(by)) }
	m.byName = func(by string) state.AnyHandler { return pick(by) }
	return m
}

func asType[T any](v any) T {
	t, _ := v.(T)
	return t
}

var (
	wordValues   = rapid.SampledFrom([]string{"a", "b", "c", "", "bad", "boom"})
	numberValues = rapid.IntRange(-2, 3)
	listValues   = rapid.SliceOfN(wordValues, 0, 3)
	anyValues    = rapid.SampledFrom([]any{
		nil, true, "a", int64(3), 3.0, 2.5, []any{"x", nil, int64(1), 1.0}, map[string]any{"k": []any{false}},
	})

	// glueHandler is a handler that fails, or panics, on certain updates.
	glueHandler = state.NewHandler("glue", func(cur string, _ bool, upd string) (string, error) {
		switch upd {
		case "bad":
			return "", errHandler
		case "boom":
			panic(upd)
		}
		return cur + "+" + upd, nil
	})
	itemHandler = state.MergeByID[[]item](func(i item) string { return i.ID })

	allFields = []*accessors{
		accessorsOf(state.Messages, rapid.Map(wordValues, func(s string) []state.Message {
			return []state.Message{state.UserText(s)}
		}),
			state.Append[[]state.Message](), state.Replace[[]state.Message]()),
		accessorsOf(&state.Field[string]{Name: "title"}, wordValues, state.Max[string](),
			state.FirstWins[string](), glueHandler),
		accessorsOf(&state.Field[int]{Name: "total", Handler: state.Sum[int]()}, numberValues, state.Max[int](),
			state.Min[int](), state.Replace[int]()),
		accessorsOf(&state.Field[[]string]{Name: "log"}, listValues, state.Union[[]string](), state.KeepLast[[]string](2),
			state.Replace[[]string]()),
		accessorsOf(&state.Field[[]string]{Name: "tags", Handler: state.Union[[]string]()}, listValues,
			state.Append[[]string](), state.Replace[[]string]()),
		accessorsOf(&state.Field[[]string]{Name: "recent", Handler: state.KeepLast[[]string](3)}, listValues,
			state.Append[[]string]()),
		accessorsOf(&state.Field[[]item]{Name: "items", Handler: itemHandler},
			rapid.SliceOfN(rapid.Map(numberValues, func(n int) item { return item{string(rune('p' + n&1)), n} }), 0, 3),
			state.Append[[]item](), state.Replace[[]item]()),
		accessorsOf(&state.Field[map[string]string]{Name: "labels", Handler: state.MergeMap[map[string]string]()},
			rapid.Map(listValues, func(l []string) map[string]string {
				m := map[string]string{}
				for i, k := range l {
					m[k] = strconv.Itoa(i)
				}
				return m
			}), state.Replace[map[string]string]()),
		accessorsOf(&state.Field[string]{Name: "first", Handler: state.FirstWins[string]()}, wordValues,
			state.Replace[string]()),
		accessorsOf(&state.Field[string]{Name: "last", Handler: state.LastWins[string]()}, wordValues,
			state.Replace[string]()),
		accessorsOf(&state.Field[any]{Name: "free"}, anyValues, state.LastWins[any]()),
		accessorsOf(&state.Field[string]{Name: "secret", Secret: true}, wordValues, glueHandler),
		accessorsOf(&state.Field[[]string]{Name: "draft", Ephemeral: true}, listValues),
		accessorsOf(&state.Field[*point]{Name: "point"}, rapid.Map(numberValues, func(n int) *point {
			if n < 0 {
				return nil
			}
			return &point{n, []string{"t"}}
		}), state.FirstWins[*point]()),
		accessorsOf(&state.Field[string]{Name: "checked", Handler: glueHandler, Validate: func(s string) error {
			if len(s) > 7 {
				return errTooLong
			}
			return nil
		}}, wordValues, state.Replace[string]()),
	}
	undeclaredKeys = []string{"k1", "k2"} // undeclared
	Schema         = func() *state.Schema {
		parts := []state.Part{state.AllowUndeclared}
		for _, f := range allFields[1:] {
			parts = append(parts, f.part)
		}
		return state.MustSchema(parts...)
	}()
)

func fieldNamed(name string) *accessors {
	for _, f := range allFields {
		if f.name == name {
			return f
		}
	}
	return &accessors{name: name}
}
