package state

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/internal/value"
)

// Handler says how a value that is written combines with the current value of a
// field of type T. The zero Handler is the default of the field: lists append,
// all else replaces. Handlers are immutable and safe for concurrent use.
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
	name string
	kind handlerKind
	typ  reflect.Type // nil: any
	keep int          // for keepsLast: how many elements

	// fn merges two values of typ. Where user is not set it changes neither
	// and may return parts of both.
	fn   func(current any, present bool, update any) (any, error)
	user bool // fn calls code of the user
}

type handlerKind uint8

const (
	merges handlerKind = iota // by fn
	replaces
	appends
	keepsLast
	firstWins
	lastWins
	pushes // a result onto the history
)

var (
	replace   = &handler{name: "replace", kind: replaces}
	appending = &handler{name: "append", kind: appends}
)

// overwrites reports whether a write through the handler takes no account of
// the current value.
func (h *handler) overwrites() bool { return h == nil || h.kind == replaces }

// shares reports whether what the handler makes shares memory with what was
// there.
func (h *handler) shares() bool {
	return h != nil && (h.kind == appends || h.kind == keepsLast || h.kind == pushes)
}

// keepsPairs reports whether the handler can be used for messages: it must not
// part a tool call from its result. Of the user's own that is trusted.
func (h *handler) keepsPairs() bool {
	return h.kind == replaces || h.kind == appends || h.kind == merges && h.user && h.keep == 0
}

// NewHandler returns a handler of your own. fn gets copies of the current value
// and of the update and returns the result; present is false if the field is
// unset, and current is then the zero T. It must be pure: it may run again, it
// runs while others use the State, and a call of the State from inside it is an
// error. If it fails or panics, nothing changes.
func NewHandler[T any](name string, fn func(current T, present bool, update T) (T, error)) Handler[T] {
	return newHandler(name, true, fn)
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

// Replace returns the handler that stores the update.
func Replace[T any]() Handler[T] {
	return Handler[T]{&handler{name: "replace", kind: replaces, typ: reflect.TypeFor[T]()}}
}

// Append returns the handler that adds the update's elements after those of the
// list. It costs what is added, however long the list is.
func Append[S ~[]E, E any]() Handler[S] {
	h := newHandler("append", false, func(current S, _ bool, update S) (S, error) {
		return slices.Concat(current, update), nil
	})
	h.h.kind = appends
	return h
}

// KeepLast returns the handler that appends and then drops all but the last n
// elements. It is not for messages, where it could part a tool call from its
// result.
func KeepLast[S ~[]E, E any](n int) Handler[S] {
	n = max(n, 0)
	h := newHandler(fmt.Sprintf("keep_last(%d)", n), false, func(current S, _ bool, update S) (S, error) {
		all := slices.Concat(current, update)
		return all[max(0, len(all)-n):], nil
	})
	h.h.kind, h.h.keep = keepsLast, n
	return h
}

// Union returns the handler that appends those elements of the update that the
// list does not yet have, and drops doubles. Elements are compared by value.
func Union[S ~[]E, E any]() Handler[S] {
	plan, err := value.For(reflect.TypeFor[E]())
	key := func(e E) (string, error) {
		if err != nil {
			return "", err
		}
		text, err := plan.AppendJSON(nil, reflect.ValueOf(&e).Elem())
		return string(text), err
	}
	return newHandler("union", false, func(current S, _ bool, update S) (S, error) {
		return union(current, update, key)
	})
}

// UnionBy is Union with elements compared by key.
func UnionBy[S ~[]E, E any, K comparable](key func(E) K) Handler[S] {
	return newHandler("union_by", true, func(current S, _ bool, update S) (S, error) {
		return union(current, update, func(e E) (K, error) { return key(e), nil })
	})
}

func union[S ~[]E, E any, K comparable](current, update S, key func(E) (K, error)) (S, error) {
	seen := make(map[K]bool, len(current)+len(update))
	out := make(S, 0, len(current)+len(update))
	for _, part := range []S{current, update} {
		for _, e := range part {
			k, err := key(e)
			if err != nil {
				return nil, err
			}
			if !seen[k] {
				seen[k] = true
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// MergeByID returns the handler that puts each element of the update in the
// place of the one with the same id, or after all others if there is none.
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
	})
}

// MergeMap returns the handler that sets the update's keys in the map. It does
// not merge the values under a key.
func MergeMap[M ~map[K]V, K comparable, V any]() Handler[M] {
	return newHandler("merge_map", false, func(current M, _ bool, update M) (M, error) {
		out := make(M, len(current)+len(update))
		for k, v := range current {
			out[k] = v
		}
		for k, v := range update {
			out[k] = v
		}
		return out, nil
	})
}

// Number is what [Sum] adds.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

var errOverflow = errors.New("sum is out of range")

// Sum returns the handler that adds the update. A sum that is out of range is an
// error.
func Sum[N Number]() Handler[N] {
	return newHandler("sum", false, func(current N, _ bool, update N) (N, error) {
		sum := current + update
		if update > 0 && sum < current || update < 0 && sum > current {
			return current, errOverflow
		}
		return sum, nil
	})
}

// Max returns the handler that keeps the greater value.
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

// FirstWins returns the handler that keeps the first value written. Between
// branches that were joined, and the state they were forked from, the earlier
// write in the order of the join wins.
func FirstWins[T any]() Handler[T] {
	h := newHandler("first_wins", false, func(current T, present bool, update T) (T, error) {
		if present {
			return current, nil
		}
		return update, nil
	})
	h.h.kind = firstWins
	return h
}

// LastWins returns the handler that keeps the last value written; unlike
// Replace it says that this is meant to be so between branches too, where the
// last in the order of the join wins.
func LastWins[T any]() Handler[T] {
	h := newHandler("last_wins", false, func(_ T, _ bool, update T) (T, error) { return update, nil })
	h.h.kind = lastWins
	return h
}

// merge returns the result of writing update, of the given size, over what is
// stored. Both are in stored form, without hidden; so is the result. If the
// update is borrowed, its elements still are the caller's.
func (h *handler) merge(sp *spec, current any, present bool, update any, size int, borrowed bool, lim value.Limits) (any, int, error) {
	switch {
	case h.overwrites():
		v, err := sp.settle(update, size, borrowed)
		return v, size, err
	case h.kind == pushes:
		pushed, err := pushResult(current, present, update)
		return pushed, 0, err
	case (h.kind == appends || h.kind == keepsLast) && sp.list != nil:
		l, _ := current.(*persist.List)
		if !present {
			l = persist.NewList(sp.typ)
		}
		l, err := sp.appendTo(l, update, size, borrowed)
		if err != nil {
			return nil, 0, err
		}
		if over := l.Len() - h.keep; h.kind == keepsLast && over > 0 {
			dropped := sp.sizeOf(l.Slice(0, over).Interface()) - sp.sizeOf(reflect.Zero(sp.typ).Interface())
			l = l.DropFirst(over, min(dropped, l.Bytes()))
		}
		return l, l.Bytes(), nil
	}
	if !h.user {
		if present {
			current = sp.share(current)
		}
		result, err := h.call(sp, current, present, sp.share(update))
		if err != nil {
			return nil, 0, err
		}
		return sp.admit(result, lim)
	}
	if present {
		current = sp.out(current)
	}
	result, err := h.call(sp, current, present, sp.out(update))
	if err != nil {
		return nil, 0, err
	}
	result, size, err = sp.take(result, lim, false)
	if err != nil {
		return nil, 0, err
	}
	result, err = sp.settle(result, size, false)
	return result, size, err
}

// admit checks what a handler of this package made of stored values.
func (sp *spec) admit(result any, lim value.Limits) (any, int, error) {
	if sp.any {
		return sp.takeAny(result, lim)
	}
	rv := reflect.ValueOf(result)
	size, err := sp.plan.Check(rv, lim)
	if err != nil {
		return nil, 0, sp.fault(err)
	}
	result, err = sp.settle(result, size, false)
	return result, size, err
}

// call runs fn. For an undeclared key the values are converted to what the
// handler takes.
func (h *handler) call(sp *spec, current any, present bool, update any) (result any, err error) {
	if h.typ != nil && h.typ != sp.typ {
		plan, err := value.For(h.typ)
		if err != nil {
			return nil, sp.fault(err)
		}
		for _, v := range []*any{&current, &update} {
			if v == &current && !present {
				current = nil
				continue
			}
			c, _, err := plan.Convert(*v, value.Limits{})
			if err != nil {
				return nil, sp.fault(err)
			}
			*v = c.Interface()
		}
	}
	if h.user {
		leave := enterUserCode()
		defer leave()
	}
	defer func() {
		if r := recover(); r != nil {
			// What a handler panics with may hold the values it got.
			result, err = nil, fieldError(sp.name, fmt.Errorf("handler %s panicked with a %T", h.name, r))
		}
	}()
	if result, err = h.fn(current, present, update); err != nil {
		if sp.secret {
			return nil, fieldError(sp.name, fmt.Errorf("handler %s failed on a secret", h.name))
		}
		return nil, fieldError(sp.name, fmt.Errorf("handler %s: %w", h.name, err))
	}
	return result, nil
}

// User code that a write calls — handlers and validation — must not call the
// State: it runs once per attempt, and would wait for itself or go on for ever.
// A goroutine that is inside it is remembered, so that such a call is an error.
var (
	inUserCode      atomic.Int64 // goroutines inside user code
	userCodeCallers sync.Map     // their ids
)

var errReentered = errors.New("state: called from a handler or validation")

// enterUserCode notes that this goroutine is inside user code until leave is
// called.
func enterUserCode() (leave func()) {
	id := goroutineID()
	userCodeCallers.Store(id, true)
	inUserCode.Add(1)
	return func() {
		inUserCode.Add(-1)
		userCodeCallers.Delete(id)
	}
}

// reentered reports whether this goroutine is inside user code.
func reentered() bool {
	if inUserCode.Load() == 0 {
		return false
	}
	_, ok := userCodeCallers.Load(goroutineID())
	return ok
}

// goroutineID returns the number by which a stack trace names this goroutine.
func goroutineID() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	id, _ := strconv.ParseUint(string(text[:max(0, slices.Index(text, ' '))]), 10, 64)
	return id
}
