package state_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/effort/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

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
		require.ErrorIs(m.t, s.st.KV().Set(o.name(), []bool{true, false}), state.ErrWrongType, "%v", o)
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
		want = state.ErrWrongType
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

// TestModel runs 500 random programs, multiplied by STATE_EFFORT, in ten checks
// that run at the same time. A failure is printed with its seed.
func TestModel(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // there is little to keep, and much garbage
	// A generator finds its name when it is first used, without a lock.
	for _, f := range modelFields {
		_ = f.values.String()
	}
	_ = modelAnything.String()
	t.Run("programs", func(t *testing.T) {
		for i := range 10 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				property.Check(t, modelProgram)
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
