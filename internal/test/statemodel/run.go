package statemodel

import (
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// programRun is a program that runs: the states that it has made and still
// compares.
type programRun struct {
	t      *rapid.T
	states []*stateModel
	ids    int               // of results
	keys   map[string]string // of calls, by their ids
}

const maxStates = 9 // states

func newRun(t *rapid.T) *programRun {
	root := &stateModel{
		st: state.New(Schema), content: stateContent{fields: map[string]any{}},
		past: map[uint64]stateContent{}, changes: map[uint64][]fieldWrite{},
	}
	root.past[0] = root.content
	return &programRun{t: t, states: []*stateModel{root}, keys: map[string]string{}}
}

// add looks at one more state, and no longer at the oldest that has ended.
func (m *programRun) add(s *stateModel) {
	if len(m.states) >= maxStates {
		at := 1 + slices.IndexFunc(m.states[1:], func(o *stateModel) bool { return o.ended != nil })
		at = max(at, 1)
		m.states = slices.Delete(slices.Clone(m.states), at, at+1)
	}
	m.states = append(m.states, s)
}

// agree checks what a call returned against what the model expects.
func (m *programRun) agree(o programStep, want, got error) {
	switch {
	case want == nil:
		require.NoError(m.t, got, "%v", o)
	case errors.Is(want, errAny):
		require.Error(m.t, got, "%v", o)
	default:
		require.ErrorIs(m.t, got, want, "%v", o)
	}
}

// step does an operation on a state and on its model.
func (m *programRun) step(s *stateModel, o programStep) {
	before := s.version
	switch o.kind {
	case "set", "setwith":
		w := fieldWrite{op: state.OpSet, field: o.name(), value: o.value, by: o.by}
		if o.by == "" && o.field != nil {
			w.by = o.field.handler
		}
		m.agree(o, s.do(w), m.set(s, o))
	case "replace":
		w := fieldWrite{op: state.OpReplace, field: o.name(), value: o.value}
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
		var writes []fieldWrite
		for _, f := range allFields {
			if _, set := s.content.get(f.name); set && f.ephemeral {
				writes = append(writes, fieldWrite{op: state.OpDelete, field: f.name, gone: true})
			}
		}
		m.agree(o, s.do(writes...), s.st.EndRun())
	case "append", "push":
		r := m.result(o.text)
		writes := []fieldWrite{{op: state.OpAppend, field: historyName, value: r, by: "push"}}
		if said := saidIn(r); len(said) > 0 && o.kind == "append" {
			writes = append(writes, fieldWrite{op: state.OpSet, field: "messages", value: said, by: "append"})
		}
		if o.kind == "append" {
			m.agree(o, s.do(writes...), s.st.History().Append(r))
		} else {
			m.agree(o, s.do(writes...), s.st.History().AppendOutside(r))
		}
	case "answer":
		m.answer(s, o)
	case "pop":
		m.pop(s, o)
	case "reset", "load":
		results := append([]state.InferenceResult{}, s.st.History().Results()[:min(o.at, len(s.content.results))]...)
		if o.text != "" {
			results = append(results, m.result(o.text))
		}
		w := fieldWrite{op: state.OpReset, field: historyName, value: results}
		if o.kind == "reset" {
			m.agree(o, s.do(w), s.st.History().Reset(results))
			break
		}
		said := []state.Message{}
		for _, r := range results {
			said = append(said, saidIn(r)...)
		}
		both := fieldWrite{op: state.OpReplace, field: "messages", value: said}
		m.agree(o, s.do(w, both), s.st.History().Load(results, said))
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
		st, err := state.Import(Schema, data)
		require.NoError(m.t, err)
		m.add(s.reloaded(st))
	}
	require.LessOrEqual(m.t, s.version, before+1)
}

func (m *programRun) set(s *stateModel, o programStep) error {
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

func (m *programRun) update(s *stateModel, o programStep) {
	if o.field == nil {
		return // Field.Update has no twin by name
	}
	cur, set := s.content.get(o.field.name)
	if !set {
		cur = o.field.zero
	}
	want := s.ended
	if want == nil && o.fail {
		want = errUpdate
	} else if want == nil {
		want = s.do(fieldWrite{op: state.OpUpdate, field: o.field.name, value: touchValue(cur), computed: true})
	}
	got := o.field.update(s.st, func(v any) (any, error) {
		require.True(m.t, equalValues(v, cur), "%v: fn got %v, want %v", o, v, cur)
		if o.fail {
			return v, errUpdate
		}
		return touchValue(v), nil
	})
	m.agree(o, want, got)
}

func (m *programRun) delete(s *stateModel, o programStep) {
	_, set := s.content.get(o.name())
	want := s.ended
	if want == nil && set {
		want = s.do(fieldWrite{op: state.OpDelete, field: o.name(), gone: true})
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

func (m *programRun) patch(s *stateModel, o programStep) {
	values := map[string]any{}
	assigned := map[string]fieldWrite{}
	bad := false
	for _, p := range o.patch {
		if p.kind == "!" {
			values["total"], bad = "no number", true
			continue
		}
		_, set := s.content.get(p.name())
		values[p.name()] = p.given()
		w := fieldWrite{op: state.OpReplace, field: p.name(), value: p.value}
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

func (m *programRun) result(text string) state.InferenceResult {
	m.ids++
	r := state.InferenceResult{
		ID: strconv.Itoa(m.ids), Agent: "bob", Input: "go on", CreatedAt: time.Unix(int64(m.ids), 0),
		Prompt: []state.Message{state.SystemText("be kind")},
	}
	if m.ids%2 == 0 {
		r.StartedAt = r.CreatedAt.Add(-time.Second)
		r.Usage = state.Usage{Input: m.ids, Output: 1}
		r.Stop, r.StopWord = state.StopEnd, "stop"
	}
	call := state.ToolCall{ID: r.ID, Name: "look", Input: `{}`}
	switch text {
	case "open":
		more := call
		more.ID += " again"
		r.Output = []state.Message{state.AssistantText("hi"), state.ToolCalls(call, more)}
	case "tool":
		r.Output = []state.Message{state.ToolCalls(call)}
		r.ToolCalls = []state.ToolResultMessage{state.ToolResult(call, "1")}
	case "hi":
		r.Output = []state.Message{state.AssistantText("hi")}
	}
	return r
}

// answer answers some calls: open ones, answered ones and one that is not
// there.
func (m *programRun) answer(s *stateModel, o programStep) {
	var calls []state.ToolCall // the latest first
	for _, r := range slices.Backward(s.content.results) {
		calls = append(calls, callsIn(r)...)
	}
	calls = append(calls, state.ToolCall{ID: "nowhere", Name: "look"})
	want, now := s.ended, s.content
	var results []state.ToolResultMessage
	writes := map[string][]fieldWrite{} // by result, whose id is that of its first call
	var order []string
	for _, at := range o.with {
		at %= len(calls)
		given := callAnswer{state.ToolResult(calls[at], state.JSON(strconv.Itoa(at)))}
		if call := calls[at]; o.named { // by its key, whatever the id is
			if call.Key = keyIn(s.st, call.ID); call.Key == "" {
				call.Key = "cnowhere"
			}
			call.ID, call.Input = "another", ""
			results = append(results, state.ToolResult(call, given.Content()))
			given.ToolResultMessage = state.ToolResult(state.ToolCall{ID: calls[at].ID, Name: call.Name}, given.Content())
		} else {
			results = append(results, given.ToolResultMessage)
		}
		if want != nil {
			continue
		}
		w := fieldWrite{op: state.OpAnswer, field: historyName, by: "answer", value: given}
		var err error
		if now, err = w.on(now); err != nil {
			want = state.ErrAnswered
			if at == len(calls)-1 {
				want = state.ErrUnknownCall
			}
		}
		id, _, _ := strings.Cut(calls[at].ID, " ")
		if !slices.Contains(order, id) {
			order = append(order, id)
		}
		writes[id] = append(writes[id], w)
		if _, placed := given.placedIn(s.content.fields["messages"]); placed {
			w.field = "messages"
			writes[id] = append(writes[id], w)
		}
	}
	if want == nil {
		var all []fieldWrite
		for _, id := range order {
			all = append(all, writes[id]...)
		}
		want = s.do(all...)
	}
	m.agree(o, want, s.st.History().Answer(results...))
}

func saidIn(r state.InferenceResult) []state.Message {
	said := slices.Clone(r.Output)
	for _, m := range r.ToolCalls {
		said = append(said, m)
	}
	return said
}

func (m *programRun) pop(s *stateModel, o programStep) {
	results := s.content.results
	want := s.ended
	if want == nil && len(results) > 0 {
		want = s.do(fieldWrite{op: state.OpPop, field: historyName, value: results[:len(results)-1], computed: true})
	}
	r, ok, err := s.st.History().Pop()
	m.agree(o, want, err)
	require.Equal(m.t, err == nil && len(results) > 0, ok, "%v", o)
	if ok {
		require.True(m.t, equalValues(results[len(results)-1], r), "%v: %v", o, r)
	}
}

// pick returns the state that a step is for: mostly one that can be written.
func (m *programRun) pick(o programStep) *stateModel {
	var live []*stateModel
	for _, s := range m.states {
		forked := func(b *stateModel) bool { return b.parent == s && b.ended == nil }
		if s.ended == nil && (o.kind != "join" || slices.ContainsFunc(m.states, forked)) {
			live = append(live, s)
		}
	}
	if o.on < 7 && len(live) > 0 {
		return live[o.on%len(live)]
	}
	return m.states[o.on%len(m.states)]
}

// Check runs 500 random programs, multiplied by STATE_EFFORT, in ten checks at
// the same time. A failure prints the program and its seed.
func Check(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // there is little to keep, and much garbage
	// A generator computes its name when it is first used, without a lock.
	for _, f := range allFields {
		_ = f.values.String()
	}
	_ = anyValues.String()
	t.Run("programs", func(t *testing.T) {
		for i := range 10 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				property.Check(t, checkProgram)
			})
		}
	})
}

// Walk draws a program and calls visit for each of its steps, with the State
// that the step is for and a function that does the step.
func Walk(t *rapid.T, visit func(st *state.State, step func())) {
	m := newRun(t)
	for _, o := range rapid.SliceOfN(drawStep(2), 0, 40).Draw(t, "program") {
		s := m.pick(o)
		visit(s.st, func() { m.step(s, o) })
	}
}

// checkProgram draws a program and compares all states after each of its steps.
func checkProgram(t *rapid.T) {
	m := newRun(t)
	var program []programStep
	for range 5 { // one slice would be short most of the time
		program = append(program, rapid.SliceOfN(drawStep(2), 0, 16).Draw(t, "program")...)
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
