package state

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/value"
)

// Handler says how a value that is written combines with the current value of a
// field of type T. The zero Handler is the default of the field: lists append,
// and everything else is replaced. Handlers are immutable and safe for
// concurrent use.
type Handler[T any] struct{ h *handler }

// AnyHandler is a Handler of any type, for writes by name.
type AnyHandler interface {
	// Name returns the name under which ParseSchema knows the handler.
	Name() string
	erased() *handler
}

// Name returns the handler's name, empty for the zero Handler.
func (h Handler[T]) Name() string {
	if h.h == nil {
		return ""
	}
	return h.h.name
}

func (h Handler[T]) erased() *handler { return h.h }

// handler is a Handler without its type argument.
type handler struct {
	name   string
	kind   handlerKind
	policy engine.Policy // of fields that declare the handler
	typ    reflect.Type  // nil: any
	keep   int           // the number of elements that keepsLast keeps

	// fn merges two values of typ. Unless user is set it changes neither, and
	// its result may share parts with both.
	fn   func(current any, present bool, update any) (any, error)
	user bool // fn calls code of the user
}

type handlerKind uint8

const (
	merges handlerKind = iota // by fn
	replaces
	appends
	keepsLast
)

var (
	replaceHandler = &handler{name: "replace", kind: replaces}
	appendHandler  = &handler{name: "append", kind: appends}
)

// shares reports whether the result of the handler shares memory with the
// current value.
func (h *handler) shares() bool { return h.kind == appends || h.kind == keepsLast }

// mistake returns what is wrong with the declaration of the handler.
func (h *handler) mistake() error {
	if h.fn == nil && h.kind == merges {
		return fmt.Errorf("handler %s has no function", h.name)
	}
	return nil
}

// keepsPairs reports whether the handler can be used for messages: it must not
// separate a tool call from its result. A handler of the user is trusted not
// to.
func (h *handler) keepsPairs() bool {
	return h.kind == replaces || h.kind == appends || h.kind == merges && h.user
}

// NewHandler returns a handler that calls fn with copies of the current value
// and the update. If the field is unset, present is false and current is the
// zero T. If fn fails or panics, nothing changes.
//
// fn must be pure: it may run more than once, while others use the State. Calls
// of fn for the same field of the same State or branch take turns. fn may read
// the State and write other fields. A write of the same field waits for itself,
// and fails after a second with a [ConflictError]; one by Replace, which waits for
// nobody, makes the write fail that has called fn.
func NewHandler[T any](name string, fn func(current T, present bool, update T) (T, error)) Handler[T] {
	return newHandler(name, true, fn).given(fn != nil)
}

// given takes the function of the handler away if the user gave none, which is
// a mistake of the schema or of SetWith.
func (h Handler[T]) given(function bool) Handler[T] {
	if !function {
		h.h.fn = nil
	}
	return h
}

func newHandler[T any](name string, user bool, fn func(current T, present bool, update T) (T, error)) Handler[T] {
	return Handler[T]{&handler{
		name: name,
		typ:  reflect.TypeFor[T](),
		user: user,
		fn: func(current any, present bool, update any) (any, error) {
			return fn(as[T](current), present, as[T](update))
		},
	}}
}

// Replace returns the handler that stores the update as it is.
func Replace[T any]() Handler[T] {
	return Handler[T]{&handler{name: "replace", kind: replaces, typ: reflect.TypeFor[T]()}}
}

// Append returns the handler that appends the elements of the update. The cost
// does not depend on the length of the list.
func Append[S ~[]E, E any]() Handler[S] {
	h := newHandler("append", false, func(current S, _ bool, update S) (S, error) {
		return slices.Concat(current, update), nil
	})
	h.h.kind = appends
	return h
}

// KeepLast returns the handler that appends the elements of the update and then
// drops all but the last n. It is refused for messages, where it could separate
// a tool call from its result.
func KeepLast[S ~[]E, E any](n int) Handler[S] {
	n = max(n, 0)
	h := newHandler(fmt.Sprintf("keep_last(%d)", n), false, func(current S, _ bool, update S) (S, error) {
		all := slices.Concat(current, update)
		return all[max(0, len(all)-n):], nil
	})
	h.h.kind, h.h.keep = keepsLast, n
	return h
}

// Union returns the handler that appends those elements of the update that are
// not in the list, and drops duplicates. Elements are compared by value.
func Union[S ~[]E, E any]() Handler[S] {
	plan, err := value.For(reflect.TypeFor[E]())
	return newHandler("union", false, func(current S, _ bool, update S) (S, error) {
		if err != nil {
			return nil, err
		}
		seen := make(map[string]bool, len(current)+len(update))
		out := make(S, 0, len(current)+len(update))
		for _, part := range []S{current, update} {
			for i := range part {
				text, err := plan.AppendJSON(nil, reflect.ValueOf(&part[i]).Elem())
				if err != nil {
					return nil, err
				}
				if key := string(text); !seen[key] {
					seen[key] = true
					out = append(out, part[i])
				}
			}
		}
		return out, nil
	})
}

// MergeByID returns the handler that replaces elements by those of the update
// with the same id, and appends the others.
func MergeByID[S ~[]E, E any](id func(E) string) Handler[S] {
	return newHandler("merge_by_id", true, func(current S, _ bool, update S) (S, error) {
		at := make(map[string]int, len(current)+len(update))
		out := make(S, 0, len(current)+len(update))
		for _, part := range []S{current, update} {
			for _, e := range part {
				key := id(e)
				if i, ok := at[key]; ok {
					out[i] = e
					continue
				}
				at[key] = len(out)
				out = append(out, e)
			}
		}
		return out, nil
	}).given(id != nil)
}

// MergeMap returns the handler that sets the keys of the update in the map. The
// values under one key are replaced, or combined by a handler for them, of which
// there is at most one: MergeMap[map[string]int](Sum[int]()) counts by key.
func MergeMap[M ~map[K]V, K comparable, V any](values ...Handler[V]) Handler[M] {
	by, name := replaceHandler, "merge_map"
	if len(values) > 0 && values[0].h != nil {
		by = values[0].h
		name += "(" + by.name + ")"
	}
	return newHandler(name, by.user, func(current M, _ bool, update M) (M, error) {
		out := make(M, len(current)+len(update))
		for k, v := range current {
			out[k] = v
		}
		for k, v := range update {
			if by.kind != replaces {
				now, present := out[k]
				merged, err := by.fn(now, present, v)
				if err != nil {
					return nil, err
				}
				v = as[V](merged)
			}
			out[k] = v
		}
		return out, nil
	}).given(by.mistake() == nil && len(values) <= 1)
}

// Number is what [Sum] adds.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

var errOverflow = errors.New("sum is out of range")

// Sum returns the handler that adds the update. It fails if the sum is out of
// range.
func Sum[N Number]() Handler[N] {
	return newHandler("sum", false, func(current N, _ bool, update N) (N, error) {
		sum := current + update
		if update > 0 && sum < current || update < 0 && sum > current {
			return current, errOverflow
		}
		return sum, nil
	})
}

// Max returns the handler that keeps the larger value.
func Max[T cmp.Ordered]() Handler[T] {
	return newHandler("max", false, func(current T, present bool, update T) (T, error) {
		if present {
			return max(current, update), nil
		}
		return update, nil
	})
}

// Min returns the handler that keeps the smaller value.
func Min[T cmp.Ordered]() Handler[T] {
	return newHandler("min", false, func(current T, present bool, update T) (T, error) {
		if present {
			return min(current, update), nil
		}
		return update, nil
	})
}

// FirstWins returns the handler that keeps the first value written. In a
// [State.Join] the earliest writer wins, in the order: the state itself, then
// the branches in the order of the arguments.
func FirstWins[T any]() Handler[T] {
	h := newHandler("first_wins", false, func(current T, present bool, update T) (T, error) {
		if present {
			return current, nil
		}
		return update, nil
	})
	h.h.policy = engine.PolicyFirstWins
	return h
}

// LastWins returns the handler that keeps the last value written. In a
// [State.Join] the last writer wins, in the order of [FirstWins], where writes
// through Replace would be a conflict.
func LastWins[T any]() Handler[T] {
	h := newHandler("last_wins", false, func(_ T, _ bool, update T) (T, error) { return update, nil })
	h.h.policy = engine.PolicyLastWins
	return h
}

// as converts a stored or merged value to T. A nil is the zero T.
func as[T any](v any) T {
	t, _ := v.(T)
	return t
}
