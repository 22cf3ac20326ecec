package state_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The model says again, with maps, slices and copies of everything, what a State
// does. Random programs run on both, and both must always look the same.

type modelItem struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

type modelPoint struct {
	X    int      `json:"x"`
	Tags []string `json:"tags"`
}

var (
	errModelFn      = errors.New("fn gives up")
	errModelHandler = errors.New("handler refuses")
	errModelInvalid = errors.New("too long")
	errModelAny     = errors.New("some error") // in the model: any error will do
)

// modelHistory is the name under which the model keeps the results.
const modelHistory = "(history)"

// modelField is a field with its doors, whatever its type is.
type modelField struct {
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

func modelFieldOf[T any](f *state.Field[T], values *rapid.Generator[T], with ...state.Handler[T]) *modelField {
	var zero T
	m := &modelField{
		name: f.Name, handler: f.Handler.Name(), part: f, secret: f.Secret, ephemeral: f.Ephemeral,
		values: values.AsAny(), zero: zero,
		get:     func(st *state.State) (any, error) { return f.Get(st) },
		set:     func(st *state.State, v any) error { return f.Set(st, modelAs[T](v)) },
		replace: func(st *state.State, v any) error { return f.Replace(st, modelAs[T](v)) },
		update: func(st *state.State, fn func(any) (any, error)) error {
			return f.Update(st, func(cur T) (T, error) {
				v, err := fn(cur)
				return modelAs[T](v), err
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
	m.setWith = func(st *state.State, v any, by string) error { return f.SetWith(st, modelAs[T](v), pick(by)) }
	m.byName = func(by string) state.AnyHandler { return pick(by) }
	return m
}

func modelAs[T any](v any) T {
	t, _ := v.(T)
	return t
}

var (
	modelWords    = rapid.SampledFrom([]string{"a", "b", "c", "", "bad", "boom"})
	modelNumbers  = rapid.IntRange(-2, 3)
	modelLists    = rapid.SliceOfN(modelWords, 0, 3)
	modelAnything = rapid.SampledFrom([]any{nil, true, "a", int64(3), 2.5, []any{"x", nil, int64(1)}, map[string]any{"k": []any{false}}})

	// modelGlue is a handler that fails, or panics, on certain updates.
	modelGlue = state.NewHandler("glue", func(cur string, _ bool, upd string) (string, error) {
		switch upd {
		case "bad":
			return "", errModelHandler
		case "boom":
			panic(upd)
		}
		return cur + "+" + upd, nil
	})
	modelByID = state.MergeByID[[]modelItem](func(i modelItem) string { return i.ID })

	modelFields = []*modelField{
		modelFieldOf(state.Messages, rapid.Map(modelWords, func(s string) []state.Message { return []state.Message{state.UserText(s)} }),
			state.Append[[]state.Message](), state.Replace[[]state.Message]()),
		modelFieldOf(&state.Field[string]{Name: "title"}, modelWords, state.Max[string](), state.FirstWins[string](), modelGlue),
		modelFieldOf(&state.Field[int]{Name: "total", Handler: state.Sum[int]()}, modelNumbers, state.Max[int](), state.Min[int](), state.Replace[int]()),
		modelFieldOf(&state.Field[[]string]{Name: "log"}, modelLists, state.Union[[]string](), state.KeepLast[[]string](2), state.Replace[[]string]()),
		modelFieldOf(&state.Field[[]string]{Name: "tags", Handler: state.Union[[]string]()}, modelLists, state.Append[[]string](), state.Replace[[]string]()),
		modelFieldOf(&state.Field[[]string]{Name: "recent", Handler: state.KeepLast[[]string](3)}, modelLists, state.Append[[]string]()),
		modelFieldOf(&state.Field[[]modelItem]{Name: "items", Handler: modelByID},
			rapid.SliceOfN(rapid.Map(modelNumbers, func(n int) modelItem { return modelItem{string(rune('p' + n&1)), n} }), 0, 3),
			state.Append[[]modelItem](), state.Replace[[]modelItem]()),
		modelFieldOf(&state.Field[map[string]string]{Name: "labels", Handler: state.MergeMap[map[string]string]()},
			rapid.Map(modelLists, func(l []string) map[string]string {
				m := map[string]string{}
				for i, k := range l {
					m[k] = strconv.Itoa(i)
				}
				return m
			}), state.Replace[map[string]string]()),
		modelFieldOf(&state.Field[string]{Name: "first", Handler: state.FirstWins[string]()}, modelWords, state.Replace[string]()),
		modelFieldOf(&state.Field[string]{Name: "last", Handler: state.LastWins[string]()}, modelWords, state.Replace[string]()),
		modelFieldOf(&state.Field[any]{Name: "free"}, modelAnything, state.LastWins[any]()),
		modelFieldOf(&state.Field[string]{Name: "secret", Secret: true}, modelWords, modelGlue),
		modelFieldOf(&state.Field[[]string]{Name: "draft", Ephemeral: true}, modelLists),
		modelFieldOf(&state.Field[*modelPoint]{Name: "point"}, rapid.Map(modelNumbers, func(n int) *modelPoint {
			if n < 0 {
				return nil
			}
			return &modelPoint{n, []string{"t"}}
		}), state.FirstWins[*modelPoint]()),
		modelFieldOf(&state.Field[string]{Name: "checked", Handler: modelGlue, Validate: func(s string) error {
			if len(s) > 7 {
				return errModelInvalid
			}
			return nil
		}}, modelWords, state.Replace[string]()),
	}
	modelKeys   = []string{"k1", "k2"} // undeclared
	modelSchema = func() *state.Schema {
		parts := []state.Part{state.AllowUndeclared}
		for _, f := range modelFields[1:] {
			parts = append(parts, f.part)
		}
		return state.MustSchema(parts...)
	}()
)

func modelFieldNamed(name string) *modelField {
	for _, f := range modelFields {
		if f.name == name {
			return f
		}
	}
	return &modelField{name: name}
}

// modelMerge is what the handlers of that name do.
func modelMerge(by string, cur any, set bool, upd any) (any, error) {
	switch by {
	case "append":
		if cur, ok := cur.([]state.Message); ok {
			return slices.Concat(cur, upd.([]state.Message)), nil
		}
		if cur, ok := cur.([]modelItem); ok {
			return slices.Concat(cur, upd.([]modelItem)), nil
		}
		if cur, ok := cur.([]string); ok {
			return slices.Concat(cur, upd.([]string)), nil
		}
		return upd, nil
	case "union":
		old, _ := cur.([]string)
		var out []string
		for _, s := range slices.Concat(old, upd.([]string)) {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return out, nil
	case "keep_last(2)", "keep_last(3)":
		old, _ := cur.([]string)
		out := slices.Concat(old, upd.([]string))
		n, _ := strconv.Atoi(by[10:11])
		return out[max(0, len(out)-n):], nil
	case "merge_by_id":
		old, _ := cur.([]modelItem)
		var out []modelItem
		for _, it := range slices.Concat(old, upd.([]modelItem)) {
			if i := slices.IndexFunc(out, func(o modelItem) bool { return o.ID == it.ID }); i >= 0 {
				out[i] = it
			} else {
				out = append(out, it)
			}
		}
		return out, nil
	case "merge_map":
		out := map[string]string{}
		old, _ := cur.(map[string]string)
		maps.Copy(out, old)
		maps.Copy(out, upd.(map[string]string))
		return out, nil
	case "sum":
		switch upd := upd.(type) {
		case int:
			n, _ := cur.(int)
			return n + upd, nil
		case int64: // an undeclared key
			if n, ok := cur.(int64); ok || !set {
				return n + upd, nil
			}
		}
		return nil, errModelAny
	case "max", "min":
		if !set {
			return upd, nil
		}
		var c int
		if s, ok := cur.(string); ok {
			c = cmp.Compare(upd.(string), s)
		} else {
			c = cmp.Compare(upd.(int), cur.(int))
		}
		if (by == "max") == (c > 0) {
			return upd, nil
		}
		return cur, nil
	case "first_wins":
		if set {
			return cur, nil
		}
		return upd, nil
	case "last_wins":
		return upd, nil
	case "glue":
		switch upd {
		case "bad":
			return nil, errModelAny // of a secret field it is not even errModelHandler
		case "boom":
			return nil, errModelAny
		}
		old, _ := cur.(string)
		return old + "+" + upd.(string), nil
	case "push":
		old, _ := cur.([]state.InferenceResult)
		return append(slices.Clone(old), upd.(state.InferenceResult)), nil
	}
	panic("the model does not know handler " + by)
}

// modelTouch is what the test's Update functions make of a value.
func modelTouch(v any) any {
	switch v := v.(type) {
	case string:
		return v[:min(len(v), 3)] + "u"
	case int:
		return 2*v + 1
	case []string:
		c := slices.Clone(v)
		slices.Reverse(c)
		return c
	case []modelItem:
		return v[:max(0, len(v)-1)]
	case map[string]string:
		c := maps.Clone(v)
		delete(c, "a")
		return c
	case []state.Message:
		return v[min(1, len(v)):]
	case *modelPoint:
		if v == nil {
			return &modelPoint{X: 7}
		}
		return &modelPoint{v.X + 1, v.Tags}
	case int64:
		return v + 1
	}
	return int64(1)
}

// modelLoose returns a value as a caller without types would give it by name.
func modelLoose(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case []string:
		if len(v) == 1 {
			return v[0]
		}
		loose := []any{}
		for _, s := range v {
			loose = append(loose, s)
		}
		return loose
	case []modelItem:
		loose := []any{}
		for _, it := range v {
			loose = append(loose, map[string]any{"id": it.ID, "n": it.N})
		}
		return loose
	case map[string]string:
		loose := map[string]any{}
		for k, s := range v {
			loose[k] = s
		}
		return loose
	case *modelPoint:
		if v != nil {
			return map[string]any{"x": float64(v.X), "tags": []any{"t"}}
		}
	case int64:
		return int32(v)
	}
	return v
}

// modelEqual reports whether two values are the same; nil and empty lists are.
func modelEqual(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string, int, int64, bool, float64:
		return a == b
	case []string:
		b, ok := b.([]string)
		return ok && slices.Equal(a, b)
	case []modelItem:
		b, ok := b.([]modelItem)
		return ok && slices.Equal(a, b)
	case map[string]string:
		b, ok := b.(map[string]string)
		return ok && maps.Equal(a, b)
	case []state.Message:
		b, ok := b.([]state.Message)
		return ok && slices.EqualFunc(a, b, func(x, y state.Message) bool { return x.Raw() == y.Raw() })
	case *modelPoint:
		b, ok := b.(*modelPoint)
		if !ok || a == nil || b == nil {
			return ok && a == b
		}
		return a.X == b.X && slices.Equal(a.Tags, b.Tags)
	case []state.InferenceResult:
		b, ok := b.([]state.InferenceResult)
		return ok && slices.EqualFunc(a, b, func(x, y state.InferenceResult) bool { return modelEqual(x, y) })
	case state.InferenceResult:
		b, ok := b.(state.InferenceResult)
		return ok && a.ID == b.ID && a.Agent == b.Agent && a.Input == b.Input && a.CreatedAt.Equal(b.CreatedAt) &&
			modelEqual(a.Prompt, b.Prompt) && modelEqual(a.Output, b.Output) && len(a.ToolCalls) == len(b.ToolCalls)
	}
	return reflect.DeepEqual(a, b)
}

// modelContent is never changed: every write makes another.
type modelContent struct {
	fields  map[string]any
	results []state.InferenceResult
}

func (c modelContent) get(field string) (any, bool) {
	if field == modelHistory {
		return c.results, true
	}
	v, ok := c.fields[field]
	return v, ok
}

func (c modelContent) put(field string, v any, set bool) modelContent {
	if field == modelHistory {
		c.results = v.([]state.InferenceResult)
		return c
	}
	c.fields = maps.Clone(c.fields)
	delete(c.fields, field)
	if set {
		c.fields[field] = v
	}
	return c
}

// same reports whether a field is the same in two contents.
func (c modelContent) same(o modelContent, field string) bool {
	v, set := c.get(field)
	w, also := o.get(field)
	return set == also && (!set || modelEqual(v, w))
}

func (c modelContent) names() []string {
	return append(slices.Sorted(maps.Keys(c.fields)), modelHistory)
}

// modelWrite is one write to one field.
type modelWrite struct {
	op       state.Op
	field    string
	by       string // the handler; "" if the write overwrites
	value    any    // the update
	gone     bool   // it deletes
	computed bool   // it comes from Update, or like Pop depends on what was there
	version  uint64
}

func (w modelWrite) overwrites() bool { return w.by == "" || w.by == "replace" }

func (w modelWrite) on(c modelContent) (modelContent, error) {
	if w.overwrites() {
		return c.put(w.field, w.value, !w.gone), nil
	}
	cur, set := c.get(w.field)
	v, err := modelMerge(w.by, cur, set, w.value)
	if err != nil {
		return c, err
	}
	return c.put(w.field, v, true), nil
}

// valid is what Validate says about a field.
func (c modelContent) valid(field string) error {
	if s, ok := c.fields[field].(string); ok && field == "checked" && len(s) > 7 {
		return errModelInvalid
	}
	return nil
}

// modelState is a State and what should be in it.
type modelState struct {
	st      *state.State
	content modelContent
	version uint64
	ended   error // what a write gets

	from    uint64 // the version it began with
	past    map[uint64]modelContent
	writes  []modelWrite            // as a later Join sees them
	changes map[uint64][]modelWrite // as Changes shows them

	parent *modelState // of a fork
	base   modelContent
}

func (s *modelState) commit(next modelContent, writes, changes []modelWrite) {
	s.version++
	for _, w := range writes {
		w.version = s.version
		s.writes = append(s.writes, w)
	}
	s.content, s.past[s.version], s.changes[s.version] = next, next, changes
}

// do is a version made of plain writes; nothing changes if one fails.
func (s *modelState) do(writes ...modelWrite) error {
	next := s.content
	for _, w := range writes {
		var err error
		if next, err = w.on(next); err != nil {
			return err
		}
		if err := next.valid(w.field); err != nil {
			return err
		}
	}
	if s.ended != nil {
		return s.ended
	}
	if len(writes) > 0 {
		s.commit(next, writes, writes)
	}
	return nil
}

// frozen returns a state that stays as s is, or was.
func (s *modelState) frozen(st *state.State) *modelState {
	return &modelState{
		st: st, content: s.content, version: s.version, ended: state.ErrReadOnly,
		from: s.from, past: maps.Clone(s.past), changes: maps.Clone(s.changes),
	}
}

func (s *modelState) fork(st *state.State) *modelState {
	return &modelState{
		st: st, content: s.content, version: s.version, from: s.version,
		past: map[uint64]modelContent{s.version: s.content}, changes: map[uint64][]modelWrite{},
		parent: s, base: s.content,
	}
}

// since returns what was written to a field after a version, and whether that
// overwrites it, and comes from Update.
func (s *modelState) since(field string, version uint64) (writes []modelWrite, over, computed bool) {
	for _, w := range s.writes {
		if w.field != field || w.version <= version {
			continue
		}
		if w.overwrites() {
			over, computed = true, w.computed
		}
		writes = append(writes, w)
	}
	return writes, over, computed
}

// parentSince is since for the parent of branches, which remembers nothing of a
// field beyond the last version in which it was unset: not that it became so in
// an Update, and if it was unset at the fork too, nothing at all.
func (s *modelState) parentSince(field string, b *modelState) (writes []modelWrite, over, computed bool) {
	unset := b.from
	for v := unset + 1; v <= s.version; v++ {
		if _, set := s.past[v].get(field); !set {
			unset = v
		}
	}
	latest, latestOver, computed := s.since(field, unset)
	if _, set := b.base.get(field); !set {
		return latest, latestOver, computed
	}
	writes, over, _ = s.since(field, b.from)
	return writes, over, computed
}

// modelSide is the part that the parent or a branch has in a field.
type modelSide struct {
	writes         []modelWrite
	value          any
	set            bool
	over, computed bool
}

// join is design.md 4.4.2: it joins branches into s, or changes nothing.
func (s *modelState) join(branches []*modelState) error {
	for i, b := range branches {
		if b.parent != s || slices.Contains(branches[:i], b) {
			return errModelAny
		}
	}
	for _, b := range branches {
		if b.ended != nil {
			return b.ended
		}
	}
	if s.ended != nil {
		return s.ended
	}
	var fields []string
	for _, b := range branches {
		for _, w := range b.writes {
			if !slices.Contains(fields, w.field) {
				fields = append(fields, w.field)
			}
		}
	}
	next := s.content
	var writes, changes []modelWrite
	var conflicts []string
	var failed error
	for _, field := range fields {
		value, set, net, shown, err := s.joinField(field, branches)
		switch {
		case errors.Is(err, state.ErrConflict):
			conflicts = append(conflicts, field)
			continue
		case err != nil:
			failed = errModelAny
			continue
		}
		next = next.put(field, value, set)
		writes, changes = append(writes, net...), append(changes, shown...)
	}
	if failed != nil {
		return failed
	}
	if len(conflicts) > 0 {
		return state.ErrConflict
	}
	for _, b := range branches {
		b.ended = state.ErrJoined
	}
	if len(changes) > 0 {
		s.commit(next, writes, changes)
	}
	return nil
}

func (s *modelState) joinField(field string, branches []*modelState) (value any, set bool, net, shown []modelWrite, err error) {
	parent := modelSide{}
	parent.value, parent.set = s.content.get(field)
	parentWrote, anyOver := false, false
	var sides []modelSide
	for _, b := range branches {
		side := modelSide{}
		side.writes, side.over, side.computed = b.since(field, b.from)
		side.value, side.set = b.content.get(field)
		if len(side.writes) == 0 || side.over && b.content.same(b.base, field) {
			continue // it has no part, or left what it found
		}
		sides = append(sides, side)
		anyOver = anyOver || side.over
		shown = append(shown, side.writes...)
		if w, over, computed := s.parentSince(field, b); len(w) > 0 && !(over && s.content.same(b.base, field)) {
			parentWrote = true
			parent.over, parent.computed = parent.over || over, parent.computed || computed
			anyOver = anyOver || over
		}
	}
	if len(sides) == 0 {
		return parent.value, parent.set, nil, nil, nil
	}
	if !anyOver {
		c := s.content
		for _, w := range shown {
			if c, err = w.on(c); err != nil {
				return nil, false, nil, nil, err
			}
		}
		value, set = c.get(field)
		return value, set, shown, shown, c.valid(field)
	}
	if parentWrote {
		sides = slices.Insert(sides, 0, parent)
	}
	win := sides[0]
	switch handler := modelFieldNamed(field).handler; {
	case len(sides) == 1, handler == "first_wins":
	case handler == "last_wins":
		win = sides[len(sides)-1]
	default:
		for _, side := range sides {
			if !side.over || side.computed || side.set != win.set || side.set && !modelEqual(side.value, win.value) {
				return nil, false, nil, nil, state.ErrConflict
			}
		}
	}
	return win.value, win.set, shown, shown, nil
}

// modelOp is one step of a program, as data, so that a step can be repeated.
type modelOp struct {
	kind  string
	on    int // which state
	field *modelField
	key   string // an undeclared key, in place of field
	value any
	by    string // for setwith
	loose bool   // by name, with a value of no exact type
	named bool   // by name
	fail  bool
	text  string
	at    int
	with  []int
	patch []modelOp
	inner []modelOp
}

// GoString is what rapid prints for a program that fails.
func (o modelOp) GoString() string { return o.String() }

func (o modelOp) String() string {
	name := o.key
	if o.field != nil {
		name = o.field.name
	}
	s := fmt.Sprintf("%s[%d]", o.kind, o.on)
	switch o.kind {
	case "fork", "snapshot", "reload", "endrun":
	case "append", "pop", "reset", "at", "revert":
		s += fmt.Sprintf(" %q at=%d with=%v", o.text, o.at, o.with)
	case "join":
		s += fmt.Sprint(o.with)
	case "patch":
		s += fmt.Sprint(o.patch)
	case "tx":
		s += fmt.Sprintf(" fail=%v%v", o.fail, o.inner)
	case "race":
		s += fmt.Sprintf(" %d branches%v%v", o.at, o.inner, o.with)
	default:
		s += fmt.Sprintf(" %s=%#v by=%q named=%v loose=%v fail=%v", name, o.value, o.by, o.named, o.loose, o.fail)
	}
	return s
}

var modelKinds = []string{
	"set", "set", "set", "set", "setwith", "setwith", "replace", "replace", "update", "update", "delete", "bad",
	"patch", "endrun", "append", "append", "pop", "reset",
	"fork", "fork", "join", "join", "race", "race", "race", "tx", "tx", "snapshot", "at", "revert", "reload",
}

// modelFieldKinds write one field.
var modelFieldKinds = []string{"set", "setwith", "replace", "update", "delete"}

// modelOps draws steps; depth is how deep transactions may still nest.
func modelOps(depth int) *rapid.Generator[modelOp] {
	return rapid.Custom(func(t *rapid.T) modelOp {
		o := modelOp{
			kind: rapid.SampledFrom(modelKinds).Draw(t, "kind"),
			on:   rapid.IntRange(0, 7).Draw(t, "on"),
		}
		switch o.kind {
		case "set", "setwith", "replace", "update", "delete", "bad":
			o.assign(t, rapid.IntRange(0, modelNames-1).Draw(t, "field"))
			o.fail = rapid.IntRange(0, 5).Draw(t, "fail") == 0
		case "patch":
			for range rapid.IntRange(0, 3).Draw(t, "patched") {
				p := modelOp{kind: "=", fail: rapid.IntRange(0, 5).Draw(t, "gone") == 0}
				p.assign(t, rapid.IntRange(0, modelNames-1).Draw(t, "field"))
				o.patch = append(o.patch, p)
			}
			if rapid.IntRange(0, 4).Draw(t, "bad") == 0 {
				o.patch = append(o.patch, modelOp{kind: "!"})
			}
		case "append", "reset":
			o.text = rapid.SampledFrom([]string{"", "hi", "tool"}).Draw(t, "text")
			o.at = rapid.IntRange(0, 3).Draw(t, "keep")
		case "at":
			o.at = rapid.IntRange(0, 12).Draw(t, "back")
		case "join":
			o.with = rapid.SliceOfN(rapid.IntRange(0, 4), 1, 3).Draw(t, "with")
			o.fail = rapid.IntRange(0, 5).Draw(t, "stranger") == 0
		case "revert":
			o.at = rapid.IntRange(0, 7).Draw(t, "to")
		case "race":
			field := rapid.IntRange(0, modelNames-1).Draw(t, "field")
			o.at = rapid.IntRange(1, 3).Draw(t, "branches")
			for range rapid.IntRange(1, 6).Draw(t, "writes") {
				w := modelOp{kind: rapid.SampledFrom(modelFieldKinds).Draw(t, "kind"), on: rapid.IntRange(0, o.at).Draw(t, "on")}
				w.assign(t, field)
				if rapid.IntRange(0, 5).Draw(t, "tx") == 0 {
					w = modelOp{kind: "tx", on: w.on, inner: []modelOp{w}}
				}
				o.inner = append(o.inner, w)
			}
			o.with = rapid.Permutation([]int{0, 1, 2}[:o.at]).Draw(t, "order")
		case "tx":
			if depth > 0 {
				o.inner = rapid.SliceOfN(modelOps(depth-1), 0, 5).Draw(t, "inner")
			}
			o.fail = rapid.IntRange(0, 4).Draw(t, "fail") == 0
		}
		return o
	})
}

var modelNames = len(modelFields) + len(modelKeys)

// assign draws what is written to one of the modelNames.
func (o *modelOp) assign(t *rapid.T, at int) {
	if at >= len(modelFields) {
		o.key = modelKeys[at-len(modelFields)]
		o.value = modelAnything.Draw(t, "value")
		o.named, o.loose = true, rapid.Bool().Draw(t, "loose")
		if o.kind == "setwith" {
			o.by, o.value = "sum", int64(2)
		}
		return
	}
	o.field = modelFields[at]
	o.value = o.field.values.Draw(t, "value")
	o.named = rapid.Bool().Draw(t, "named")
	o.loose = o.named && rapid.Bool().Draw(t, "loose")
	if o.kind == "setwith" && len(o.field.with) > 0 {
		o.by = rapid.SampledFrom(o.field.with).Draw(t, "by")
	}
}

func (o modelOp) name() string {
	if o.field == nil {
		return o.key
	}
	return o.field.name
}

func (o modelOp) given() any {
	if o.loose {
		return modelLoose(o.value)
	}
	return o.value
}

// model is a program that runs: all states that it has made and still looks at.
type model struct {
	t      *rapid.T
	states []*modelState
	ids    int // of results
}

const modelMost = 9 // states

func newModel(t *rapid.T) *model {
	root := &modelState{
		st: state.New(modelSchema), content: modelContent{fields: map[string]any{}},
		past: map[uint64]modelContent{}, changes: map[uint64][]modelWrite{},
	}
	root.past[0] = root.content
	return &model{t: t, states: []*modelState{root}}
}

// add looks at one more state, and no longer at the oldest that has ended.
func (m *model) add(s *modelState) {
	if len(m.states) >= modelMost {
		at := 1 + slices.IndexFunc(m.states[1:], func(o *modelState) bool { return o.ended != nil })
		at = max(at, 1)
		m.states = slices.Delete(slices.Clone(m.states), at, at+1)
	}
	m.states = append(m.states, s)
}

// agree checks what a call returned against what the model expects.
func (m *model) agree(o modelOp, want, got error) {
	switch {
	case want == nil:
		require.NoError(m.t, got, "%v", o)
	case errors.Is(want, errModelAny):
		require.Error(m.t, got, "%v", o)
	default:
		require.ErrorIs(m.t, got, want, "%v", o)
	}
}

// step does an operation on a state and on its model.
func (m *model) step(s *modelState, o modelOp) {
	before := s.version
	switch o.kind {
	case "set", "setwith":
		w := modelWrite{op: state.OpSet, field: o.name(), value: o.value, by: o.by}
		if o.by == "" && o.field != nil {
			w.by = o.field.handler
		}
		m.agree(o, s.do(w), m.set(s, o))
	case "replace":
		w := modelWrite{op: state.OpReplace, field: o.name(), value: o.value}
		var err error
		if o.named {
			err = s.st.KV().Replace(o.name(), o.given())
		} else {
			err = o.field.replace(s.st, o.value)
		}
		m.agree(o, s.do(w), err)
	case "update":
		m.update(s, o)
	case "delete":
		m.delete(s, o)
	case "bad":
		if o.field == nil || o.field.name == "free" {
			return
		}
		require.ErrorIs(m.t, s.st.KV().Set(o.name(), []bool{true, false}), state.ErrType, "%v", o)
	case "patch":
		m.patch(s, o)
	case "endrun":
		var writes []modelWrite
		for _, f := range modelFields {
			if _, set := s.content.get(f.name); set && f.ephemeral {
				writes = append(writes, modelWrite{op: state.OpDelete, field: f.name, gone: true})
			}
		}
		m.agree(o, s.do(writes...), s.st.EndRun())
	case "append":
		r := m.result(o.text)
		writes := []modelWrite{{op: state.OpAppend, field: modelHistory, value: r, by: "push"}}
		if said := modelSaid(r); len(said) > 0 {
			writes = append(writes, modelWrite{op: state.OpSet, field: "messages", value: said, by: "append"})
		}
		m.agree(o, s.do(writes...), s.st.History().Append(r))
	case "pop":
		m.pop(s, o)
	case "reset":
		results := slices.Clone(s.content.results[:min(o.at, len(s.content.results))])
		if o.text != "" {
			results = append(results, m.result(o.text))
		}
		w := modelWrite{op: state.OpReset, field: modelHistory, value: results}
		m.agree(o, s.do(w), s.st.History().Reset(results))
	case "fork":
		m.add(s.fork(s.st.Fork()))
	case "snapshot":
		m.add(s.frozen(s.st.Snapshot()))
	case "at":
		m.lookBack(s, o)
	case "join":
		m.join(s, o)
	case "race":
		m.race(s, o)
		return
	case "revert":
		m.revert(s, o)
	case "tx":
		m.transaction(s, o)
	case "reload":
		data, err := s.st.Export()
		require.NoError(m.t, err)
		st, err := state.Import(modelSchema, data)
		require.NoError(m.t, err)
		m.add(s.reloaded(st))
	}
	require.LessOrEqual(m.t, s.version, before+1)
}

func (m *model) set(s *modelState, o modelOp) error {
	switch {
	case o.field == nil && o.by != "":
		return s.st.KV().SetWith(o.key, o.given(), state.Sum[int64]())
	case o.named && o.by != "":
		return s.st.KV().SetWith(o.name(), o.given(), o.field.byName(o.by))
	case o.named:
		return s.st.KV().Set(o.name(), o.given())
	case o.by != "":
		return o.field.setWith(s.st, o.value, o.by)
	}
	return o.field.set(s.st.As("bob"), o.value)
}

func (m *model) update(s *modelState, o modelOp) {
	if o.field == nil {
		return // Field.Update has no twin by name
	}
	cur, set := s.content.get(o.field.name)
	if !set {
		cur = o.field.zero
	}
	want := s.ended
	if want == nil && o.fail {
		want = errModelFn
	} else if want == nil {
		want = s.do(modelWrite{op: state.OpUpdate, field: o.field.name, value: modelTouch(cur), computed: true})
	}
	got := o.field.update(s.st, func(v any) (any, error) {
		require.True(m.t, modelEqual(v, cur), "%v: fn got %v, want %v", o, v, cur)
		if o.fail {
			return v, errModelFn
		}
		return modelTouch(v), nil
	})
	m.agree(o, want, got)
}

func (m *model) delete(s *modelState, o modelOp) {
	_, set := s.content.get(o.name())
	want := s.ended
	if want == nil && set {
		want = s.do(modelWrite{op: state.OpDelete, field: o.name(), gone: true})
	}
	var deleted bool
	var err error
	if o.named {
		deleted, err = s.st.KV().Delete(o.name())
	} else {
		deleted, err = o.field.remove(s.st)
	}
	m.agree(o, want, err)
	require.Equal(m.t, set && want == nil, deleted, "%v", o)
}

func (m *model) patch(s *modelState, o modelOp) {
	values := map[string]any{}
	assigned := map[string]modelWrite{}
	bad := false
	for _, p := range o.patch {
		if p.kind == "!" {
			values["total"], bad = "no number", true
			continue
		}
		_, set := s.content.get(p.name())
		values[p.name()] = p.given()
		w := modelWrite{op: state.OpReplace, field: p.name(), value: p.value}
		if p.fail {
			values[p.name()] = nil
		}
		if values[p.name()] == nil {
			w.op, w.gone, w.value = state.OpDelete, true, nil
			if !set {
				delete(assigned, p.name())
				continue
			}
		}
		assigned[p.name()] = w
	}
	if p, ok := values["total"]; bad && ok && p != "no number" {
		bad = false // a later assignment made it good
	}
	want := s.ended
	if want == nil && bad {
		want = state.ErrType
	} else if want == nil {
		want = s.do(slices.Collect(maps.Values(assigned))...)
	}
	m.agree(o, want, s.st.Patch(values))
}

func (m *model) result(text string) state.InferenceResult {
	m.ids++
	r := state.InferenceResult{
		ID: strconv.Itoa(m.ids), Agent: "bob", Input: "go on", CreatedAt: time.Unix(int64(m.ids), 0),
		Prompt: []state.Message{state.SystemText("be kind")},
	}
	call := state.ToolCall{ID: r.ID, Name: "look", Input: `{}`}
	switch text {
	case "tool":
		r.Output = []state.Message{state.ToolCalls(call)}
		r.ToolCalls = []state.ToolResultMessage{state.ToolResult(call, "1")}
	case "hi":
		r.Output = []state.Message{state.AssistantText("hi")}
	}
	return r
}

func modelSaid(r state.InferenceResult) []state.Message {
	said := slices.Clone(r.Output)
	for _, m := range r.ToolCalls {
		said = append(said, m)
	}
	return said
}

func (m *model) pop(s *modelState, o modelOp) {
	results := s.content.results
	want := s.ended
	if want == nil && len(results) > 0 {
		want = s.do(modelWrite{op: state.OpPop, field: modelHistory, value: results[:len(results)-1], computed: true})
	}
	r, ok, err := s.st.History().Pop()
	m.agree(o, want, err)
	require.Equal(m.t, err == nil && len(results) > 0, ok, "%v", o)
	if ok {
		require.True(m.t, modelEqual(results[len(results)-1], r), "%v: %v", o, r)
	}
}

func (m *model) lookBack(s *modelState, o modelOp) {
	version := s.version + 1 - min(uint64(o.at), s.version+1)
	past, err := s.st.At(version)
	switch {
	case version > s.version:
		require.ErrorIs(m.t, err, state.ErrNotFound)
	case version < s.from:
		require.ErrorIs(m.t, err, state.ErrCompacted)
	default:
		require.NoError(m.t, err)
		// Secrets are as they are now.
		now, ok := s.content.get("secret")
		content := s.past[version].put("secret", now, ok)
		m.add(&modelState{
			st: past, content: content, version: version, ended: state.ErrReadOnly, from: version,
			past: map[uint64]modelContent{version: content}, changes: map[uint64][]modelWrite{},
		})
	}
}

// join joins, in any order, some of the state's branches, and sometimes others.
func (m *model) join(s *modelState, o modelOp) {
	var own []*modelState
	for _, b := range m.states {
		if b.parent == s && b.ended == nil || o.fail {
			own = append(own, b)
		}
	}
	var branches []*modelState
	for _, at := range o.with {
		if len(own) > 0 {
			b := own[at%len(own)]
			branches = append(branches, b)
			if !o.fail {
				own = slices.DeleteFunc(own, func(x *modelState) bool { return x == b })
			}
		}
	}
	handles := make([]*state.State, len(branches))
	for i, b := range branches {
		handles[i] = b.st
	}
	m.agree(o, s.join(branches), s.st.Join(handles...))
}

// race writes a field in branches of the state, and in the state itself, and
// joins them.
func (m *model) race(s *modelState, o modelOp) {
	sides := []*modelState{}
	for range o.at {
		sides = append(sides, s.fork(s.st.Fork()))
	}
	sides = append(sides, s)
	for _, w := range o.inner {
		m.step(sides[w.on], w)
	}
	var branches []*modelState
	var handles []*state.State
	for _, i := range o.with {
		m.compare(sides[i])
		branches, handles = append(branches, sides[i]), append(handles, sides[i].st)
	}
	m.agree(o, s.join(branches), s.st.Join(handles...))
	for _, b := range branches { // joined or not, they stay what they were
		m.compare(b)
	}
}

func (m *model) revert(s *modelState, o modelOp) {
	to := m.states[o.at%len(m.states)]
	want := s.ended
	switch {
	case to.ended == nil:
		want = errModelAny
	case want == nil:
		var writes []modelWrite
		for _, field := range append(s.content.names(), to.content.names()...) {
			v, set := to.content.get(field)
			w := modelWrite{op: state.OpRevert, field: field, value: v, gone: !set}
			seen := slices.ContainsFunc(writes, func(w modelWrite) bool { return w.field == field })
			if field != "secret" && !seen && !s.content.same(to.content, field) {
				writes = append(writes, w)
			}
		}
		// Validation was asked when the values were written.
		if len(writes) > 0 {
			next := s.content
			for _, w := range writes {
				next, _ = w.on(next)
			}
			s.commit(next, writes, writes)
		}
	}
	m.agree(o, want, s.st.Revert(to.st))
}

func (m *model) transaction(s *modelState, o modelOp) {
	runs := 0
	var tx *modelState
	got := s.st.Update(func(st *state.State) error {
		runs++
		require.Equal(m.t, 1, runs, "%v: nothing makes fn run again", o)
		tx = s.fork(st)
		tx.parent = nil // it cannot be joined
		m.states = append(m.states, tx)
		for _, in := range o.inner {
			m.step(tx, in)
			m.compare(tx)
		}
		if o.fail {
			return errModelFn
		}
		return nil
	})
	want := s.ended
	if want == nil {
		require.Equal(m.t, 1, runs)
		tx.ended = state.ErrReadOnly
		switch {
		case o.fail:
			want = errModelFn
		case len(tx.writes) > 0 || tx.version > tx.from:
			writes := slices.Clone(tx.writes)
			for i := range writes {
				writes[i].computed = writes[i].computed || writes[i].overwrites()
			}
			var changes []modelWrite
			for v := tx.from + 1; v <= tx.version; v++ {
				changes = append(changes, tx.changes[v]...)
			}
			s.commit(tx.content, writes, changes)
		}
	} else {
		require.Zero(m.t, runs)
	}
	m.agree(o, want, got)
}

// reloaded is what Import makes of the state's Export.
func (s *modelState) reloaded(st *state.State) *modelState {
	c := s.content
	for _, f := range modelFields {
		if f.ephemeral {
			c = c.put(f.name, nil, false)
		}
	}
	return &modelState{
		st: st, content: c, version: s.version, from: s.version,
		past: map[uint64]modelContent{s.version: c}, changes: map[uint64][]modelWrite{},
	}
}

// compare checks that a state is as its model says.
func (m *model) compare(s *modelState) {
	t, kv, want := m.t, s.st.KV(), s.content.fields
	if got := s.st.Version(); got != s.version {
		t.Fatalf("version is %d, want %d", got, s.version)
	}
	all := kv.All()
	for name, v := range want {
		got, ok := all[name]
		if name == "secret" {
			v = state.Masked{}
		}
		if !ok || !modelEqual(v, got) {
			t.Fatalf("All has %q = %#v %v, want %#v", name, got, ok, v)
		}
	}
	if len(all) != len(want) || kv.Len() != len(want) {
		t.Fatalf("All has %v, Len is %d, want %v", all, kv.Len(), want)
	}
	if got := kv.Keys(); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("Keys are %v, want %v", got, want)
	}
	for _, f := range modelFields {
		v, set := want[f.name]
		got, err := f.get(s.st)
		if set && (err != nil || !modelEqual(v, got)) || !set && !errors.Is(err, state.ErrNotFound) {
			t.Fatalf("field %q is %#v %v, want %#v %v", f.name, got, err, v, set)
		}
	}
	if got := s.st.History().Results(); !modelEqual(s.content.results, got) || s.st.History().Len() != len(got) {
		t.Fatalf("results are %v, want %v", got, s.content.results)
	}
}

// replay checks the journal: every version since the first is there, with the
// last write to each of its fields.
func (m *model) replay(s *modelState, since uint64) {
	t := m.t
	if since < s.from {
		for _, err := range s.st.Changes(since) {
			require.ErrorIs(t, err, state.ErrCompacted)
		}
		return
	}
	got := map[uint64]map[string]state.Change{}
	last := since
	for c, err := range s.st.Changes(since) {
		require.NoError(t, err)
		if c.Version != last {
			require.Equal(t, last+1, c.Version, "the journal has a gap")
			last, got[c.Version] = c.Version, map[string]state.Change{}
		}
		if c.Field == "" {
			c.Field = modelHistory
		}
		got[c.Version][c.Field] = c
	}
	require.Equal(t, s.version, max(last, since), "the journal ends early")
	for v := since + 1; v <= s.version; v++ {
		want := map[string]modelWrite{}
		for _, w := range s.changes[v] {
			want[w.field] = w
		}
		require.Len(t, got[v], len(want), "version %d: %v, want %v", v, got[v], want)
		for field, w := range want {
			c, ok := got[v][field]
			require.True(t, ok && c.Op == w.op, "version %d, field %q: %v, want %v", v, field, c, w)
			switch {
			case w.gone:
				require.Nil(t, c.Value)
			case w.op == state.OpPop, c.Value == nil && field == modelHistory: // what was popped; no results
			case field == "secret":
				require.Equal(t, any(state.Masked{}), c.Value)
			default:
				require.True(t, modelEqual(w.value, c.Value), "version %d, field %q: %#v, want %#v", v, field, c.Value, w.value)
			}
		}
	}
}

// reload checks that what Export writes, Import reads.
func (m *model) reload(s *modelState) {
	data, err := s.st.Export()
	require.NoError(m.t, err)
	st, err := state.Import(modelSchema, data)
	require.NoError(m.t, err)
	again, err := st.Export()
	require.NoError(m.t, err)
	if string(data) != string(again) {
		m.t.Fatalf("exported again: %s, want %s", again, data)
	}
	m.compare(s.reloaded(st))
}

// pick returns the state that a step is for: mostly one that can be written.
func (m *model) pick(o modelOp) *modelState {
	var live []*modelState
	for _, s := range m.states {
		forked := func(b *modelState) bool { return b.parent == s && b.ended == nil }
		if s.ended == nil && (o.kind != "join" || slices.ContainsFunc(m.states, forked)) {
			live = append(live, s)
		}
	}
	if o.on < 7 && len(live) > 0 {
		return live[o.on%len(live)]
	}
	return m.states[o.on%len(m.states)]
}

func modelProgram(t *rapid.T) {
	m := newModel(t)
	var program []modelOp
	for range 5 { // one slice would be short most of the time
		program = append(program, rapid.SliceOfN(modelOps(2), 0, 16).Draw(t, "program")...)
	}
	for _, o := range program {
		s := m.pick(o)
		before := s.version
		m.step(s, o)
		for _, s := range m.states {
			m.compare(s)
		}
		m.replay(s, before)
		if s.version != before || o.kind == "revert" {
			m.reload(s)
		}
	}
	for _, s := range m.states {
		m.replay(s, s.from)
		if s.from > 0 {
			m.replay(s, s.from-1)
		}
	}
}

// TestModel runs STATE_PROGRAMS random programs, or some. What fails is printed
// with its seed.
func TestModel(t *testing.T) {
	programs := 1500
	if n, err := strconv.Atoi(os.Getenv("STATE_PROGRAMS")); err == nil {
		programs = n
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // there is little to keep, and much garbage
	// A generator finds its name when it is first used, without a lock.
	for _, f := range modelFields {
		_ = f.values.String()
	}
	_ = modelAnything.String()
	workers := runtime.GOMAXPROCS(0)
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	defer func() { require.NoError(t, checks.Value.Set(before)) }()
	require.NoError(t, checks.Value.Set(strconv.Itoa((programs+workers-1)/workers)))
	t.Run("programs", func(t *testing.T) {
		for i := range workers {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, modelProgram)
			})
		}
	})
}

// What the model found, each in few words.

func TestModelAppendOfNothing(t *testing.T) {
	st := state.New(concSchema)
	b := st.Fork()
	require.NoError(t, concLog.Set(b, []string{"a"}))
	require.NoError(t, concLog.Set(b, nil))
	var last any
	for c, err := range b.Changes(0) {
		require.NoError(t, err)
		last = c.Value
	}
	require.Empty(t, last)
	require.NoError(t, concLog.Set(st, []string{"z"}))
	require.NoError(t, st.Join(b))
	require.Equal(t, []string{"z", "a"}, concLog.Or(st, nil))
}

func TestModelHistoryEcho(t *testing.T) {
	st := state.New(concSchema)
	require.NoError(t, st.History().Append(concSaid("one")))
	b := st.Fork()
	require.NoError(t, b.History().Append(state.InferenceResult{ID: "taken back"}))
	_, ok, err := b.History().Pop()
	require.True(t, ok)
	require.NoError(t, err)
	require.NoError(t, b.History().Reset(b.History().Results()))
	require.NoError(t, st.History().Append(concSaid("two")))
	require.NoError(t, st.Join(b), "the branch left the results as it found them")
	require.Equal(t, 2, st.History().Len())
}

func TestModelSetInUpdateOfABranchIsComputed(t *testing.T) {
	st := state.New(concSchema)
	a, b := st.Fork(), st.Fork()
	for _, s := range []*state.State{a, b} {
		require.NoError(t, s.Update(func(tx *state.State) error { return concFirst.Set(tx, concFirst.Or(tx, 0)+1) }))
	}
	require.ErrorIs(t, st.Join(a, b), state.ErrConflict, "one of two increments would be lost")
}
