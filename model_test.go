package state_test

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/agentstate/state"
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
