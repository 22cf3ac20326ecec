package state_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state"
)

// The operations of which the programs of the test of non-interference consist.

// Hidden operations.

// disturb does what the observer does not see, in one world.
func (p *spyProgram) disturb(pl spyPlace, world int) {
	if pl.spy {
		return
	}
	w := p.worlds[world]
	n := 0
	switch w.rng.IntN(8) {
	case 0, 1, 2:
		n = 1 + w.rng.IntN(4)
	case 3:
		n = 10 + w.rng.IntN(30)
	}
	for range n {
		p.hidden(pl, world, pl.at[world], 2)
	}
}

// hidden does one operation that the observer does not see, if it draws one
// that is possible.
func (p *spyProgram) hidden(pl spyPlace, world int, st *state.State, depth int) {
	w := p.worlds[world]
	rng := w.rng
	if rng.IntN(3) == 0 {
		st = st.WithCause(fmt.Sprint("hidden ", rng.IntN(100)))
	}
	if rng.IntN(8) == 0 {
		if f := spyFields[rng.IntN(len(spyFields))]; !p.sees(f) {
			if given, err := st.With(map[string]any{f.name: p.hiddenValue(w, f.kind)}); err == nil {
				st = given
			}
		}
	}
	if rng.IntN(4) == 0 && depth > 0 {
		p.hiddenMany(pl, world, st, depth)
		return
	}
	if rng.IntN(3) == 0 {
		if pl.may(world, spyHistory) {
			p.hiddenHistory(world, st)
		}
		return
	}
	f := spyFields[rng.IntN(len(spyFields))]
	if p.sees(f) || !pl.may(world, f.name) {
		if name := fmt.Sprint("hidden key ", rng.IntN(4)); !p.isMember() && pl.may(world, name) {
			_ = st.KV().Set(name, p.hiddenValue(w, "any"))
		}
		return
	}
	if f.readers != nil && rng.IntN(3) == 0 {
		st = st.As(append(f.readers, "mallory")[rng.IntN(len(f.readers)+1)])
	}
	v := p.hiddenValue(w, f.kind)
	switch rng.IntN(8) {
	case 0, 1:
		_ = st.KV().Set(f.name, v)
	case 2:
		_ = st.KV().Replace(f.name, v)
	case 3:
		_ = f.update(st, v)
	case 4:
		_, _ = st.KV().Delete(f.name)
	case 5:
		_ = st.Patch(map[string]any{f.name: v})
	case 6:
		for range rng.IntN(20) {
			_ = st.KV().Replace(f.name, p.hiddenValue(w, f.kind))
		}
	case 7:
		_ = st.KV().Set(f.name, make(chan int))
	}
}

// hiddenMany does hidden operations in a transaction, in branches, or such that
// they are taken back.
func (p *spyProgram) hiddenMany(pl spyPlace, world int, st *state.State, depth int) {
	rng := p.worlds[world].rng
	some := func(st *state.State) {
		for range 1 + rng.IntN(5) {
			p.hidden(pl, world, st, depth-1)
		}
	}
	switch rng.IntN(6) {
	case 0, 1:
		failed := errors.New("failed")
		_ = st.Update(func(tx *state.State) error {
			some(tx)
			return []error{nil, nil, failed}[rng.IntN(3)]
		})
	case 2, 3:
		branches := []*state.State{st.Fork(), st.Fork()}
		some(branches[0])
		some(branches[rng.IntN(2)])
		_ = st.Join(branches[:rng.IntN(3)]...)
	case 4:
		past := st.Snapshot()
		some(st)
		if !pl.branch {
			_ = st.Revert(past)
		}
	case 5:
		if f := spyFields[4]; !pl.branch && (!p.sees(f) || !st.KV().Has(f.name)) {
			_ = st.EndRun()
		}
	}
}

// hiddenHistory changes results and messages that the observer does not see.
func (p *spyProgram) hiddenHistory(world int, st *state.State) {
	w := p.worlds[world]
	hs := st.History()
	var agents []string
	for _, agent := range aclMembers {
		if !p.seesResult(agent) {
			agents = append(agents, agent)
		}
	}
	if len(agents) == 0 {
		return
	}
	result := func() state.InferenceResult {
		r := p.result(agents[w.rng.IntN(len(agents))], p.hiddenValue(w, "string").(string))
		if w.rng.IntN(2) == 0 {
			r.Output = append(r.Output, state.ToolCalls(spyCall(w.rng, fmt.Sprint("h", w.unique))))
		}
		return r
	}
	message := func() state.Message { return state.UserText(p.hiddenValue(w, "string").(string)) }
	switch w.rng.IntN(9) {
	case 0:
		_ = hs.Append(result())
	case 6:
		_ = hs.Push(result())
	case 7, 8:
		p.answerHidden(w, st)
	case 1:
		p.popHidden(hs)
	case 2: // so many that what remains is stored anew
		for range w.rng.IntN(12) {
			if hs.Append(result()) == nil {
				_, _, _ = hs.Pop()
			}
		}
	case 3:
		var results []state.InferenceResult
		for _, r := range hs.All() {
			for range w.rng.IntN(3) / 2 {
				results = append(results, result())
			}
			if p.seesResult(r.Agent) || w.rng.IntN(3) > 0 {
				results = append(results, r)
			}
		}
		if w.rng.IntN(2) == 0 {
			_ = hs.Reset(results)
		} else {
			_ = hs.Load(results, []state.Message{message()})
		}
	case 4, 5:
		_ = state.Messages.Set(st, []state.Message{message()})
	}
}

// answerHidden answers a call of a result that the observer does not see, as
// the host or as the agent of the result. A call that has no id of its own is
// answered by the agent: to the host, it may be one of a result that the
// observer sees.
func (p *spyProgram) answerHidden(w *spyWorld, st *state.State) {
	r, ok := st.History().At(w.rng.IntN(1 + st.History().Len()))
	if !ok || p.seesResult(r.Agent) || len(r.Output) < 2 {
		return
	}
	call := r.Output[1].(state.ToolCallMessage).Calls()[0]
	if !strings.HasPrefix(call.ID, "h") || w.rng.IntN(2) == 0 {
		st = st.As(r.Agent)
	}
	_ = st.History().Answer(state.ToolError(call, p.hiddenValue(w, "string").(string)))
}

// spyCall draws a call: with an id of its own, or such that calls of others are
// like it.
func spyCall(rng *rand.Rand, id string) state.ToolCall {
	switch rng.IntN(4) {
	case 0:
		return state.ToolCall{Name: "shared", Input: "{}"}
	case 1:
		return state.ToolCall{ID: fmt.Sprint("s", rng.IntN(2)), Name: "tool", Input: "{}"}
	}
	return state.ToolCall{ID: id, Name: "tool", Input: "{}"}
}

// popHidden pops the latest result if the observer does not see it, and reports
// whether it did.
func (p *spyProgram) popHidden(hs *state.History) bool {
	last, ok := hs.Last()
	if !ok || p.seesResult(last.Agent) {
		return false
	}
	_, _, err := hs.Pop()
	return err == nil
}

// hiddenValue draws a value that occurs once: whether two overwrites are equal
// decides on a join.
func (p *spyProgram) hiddenValue(w *spyWorld, kind string) any {
	w.unique++
	return spyValue(w.rng, kind, w.unique)
}

func (p *spyProgram) result(agent, text string) state.InferenceResult {
	return state.InferenceResult{
		Agent: agent, Input: text, Raw: text, Output: []state.Message{state.AssistantText(text)},
		CreatedAt: time.Unix(int64(len(text)), 0),
	}
}

// Visible operations.

// act does one visible operation. Those that a field or result is hidden from
// are left to disturb.
func (p *spyProgram) act(pl, actor spyPlace, depth int) {
	rng := p.rng
	switch rng.IntN(14) {
	case 0, 1, 2, 3:
		p.actOnField(actor)
	case 4:
		p.actPatch(actor)
	case 5:
		if name := fmt.Sprint("key ", rng.IntN(4)); p.isMember() {
			v := spyValue(rng, "any", 0)
			p.both(actor, "key", func(_ int, st *state.State) error { return st.KV().Set(name, v) })
		}
	case 6:
		if name := fmt.Sprint("key ", rng.IntN(4)); p.isMember() {
			p.both(actor, "drop", func(_ int, st *state.State) error { _, err := st.KV().Delete(name); return err })
		}
	case 7, 8:
		p.actOnHistory(pl, actor)
	case 9:
		if depth > 0 {
			p.actTransact(actor, depth)
		}
	case 10, 11:
		if depth > 0 {
			p.actJoin(actor, depth)
		}
	case 12:
		if !pl.branch {
			p.both(actor, "end", func(_ int, st *state.State) error { return st.EndRun() })
		}
	case 13:
		p.actRevert(pl)
	}
}

func (p *spyProgram) actOnField(actor spyPlace) {
	f := spyFields[p.rng.IntN(len(spyFields))]
	if !p.sees(f) && !actor.spy {
		return
	}
	v, n := spyValue(p.rng, f.kind, 0), 1
	kind := p.rng.IntN(7)
	if kind == 6 {
		n = p.rng.IntN(20)
	}
	p.both(actor, f.name, func(_ int, st *state.State) error {
		switch kind {
		case 0, 1:
			return st.KV().Set(f.name, v)
		case 2:
			return f.update(st, v)
		case 3:
			_, err := st.KV().Delete(f.name)
			return err
		case 4:
			return st.KV().Set(f.name, make(chan int))
		}
		var err error
		for range n {
			err = errors.Join(err, st.KV().Replace(f.name, v))
		}
		return err
	})
}

// actPatch writes visible fields, and in each world other hidden ones with
// them.
func (p *spyProgram) actPatch(actor spyPlace) {
	shown := map[string]any{}
	for range 1 + p.rng.IntN(4) {
		if f := spyFields[p.rng.IntN(len(spyFields))]; p.sees(f) || actor.spy {
			shown[f.name] = spyValue(p.rng, f.kind, 0)
			if p.rng.IntN(4) == 0 {
				shown[f.name] = nil
			}
		}
	}
	if len(shown) == 0 {
		return
	}
	p.both(actor, "patch", func(world int, st *state.State) error {
		values := maps.Clone(shown)
		for w := p.worlds[world]; !actor.spy && w.rng.IntN(2) == 0; {
			f := spyFields[w.rng.IntN(len(spyFields))]
			if _, err := state.GetAs[any](st, f.name); p.sees(f) || errors.Is(err, state.ErrDenied) || !actor.may(world, f.name) {
				continue
			}
			values[f.name] = p.hiddenValue(w, f.kind)
			if w.rng.IntN(4) == 0 {
				values[f.name] = nil
			}
		}
		return st.Patch(values)
	})
}

func (p *spyProgram) actOnHistory(pl, actor spyPlace) {
	if pl.branch && !(pl.may(0, spyHistory) && pl.may(1, spyHistory)) {
		return
	}
	switch kind := p.rng.IntN(8); kind {
	case 0, 1, 2:
		agent := actor.at[0].Agent()
		r := p.result(aclMembers[p.rng.IntN(len(aclMembers))], spyValue(p.rng, "string", 0).(string))
		if agent != "" {
			r.Agent = ""
		} else {
			agent = r.Agent
		}
		if p.rng.IntN(2) == 0 {
			r.Output = append(r.Output, state.ToolCalls(p.sharedCall()))
		}
		if !p.seesResult(agent) {
			break
		}
		if kind == 0 {
			p.both(actor, "push", func(_ int, st *state.State) error { return st.History().Push(r) })
		} else {
			p.both(actor, "append", func(_ int, st *state.State) error { return st.History().Append(r) })
		}
	case 3:
		if text := spyValue(p.rng, "string", 0).(string); p.talks || actor.spy {
			p.both(actor, "say", func(_ int, st *state.State) error {
				return state.Messages.Set(st, []state.Message{state.UserText(text)})
			})
		}
	case 4:
		if !pl.spy && !actor.spy { // pops what the observer sees
			p.both(pl, "pop", func(_ int, st *state.State) error {
				for p.popHidden(st.History()) {
				}
				_, _, err := st.History().Pop()
				return err
			})
		} else {
			p.both(actor, "pop", func(_ int, st *state.State) error {
				if st.History().Len() == 0 || !p.talks {
					return st.History().Reset(nil)
				}
				_, _, err := st.History().Pop()
				return err
			})
		}
	case 5:
		keep, load := p.rng.IntN(4), p.rng.IntN(2) == 0
		text := spyValue(p.rng, "string", 0).(string)
		p.both(actor, "reset", func(world int, st *state.State) error {
			n := 0
			results := slices.DeleteFunc(st.History().Results(), func(r state.InferenceResult) bool {
				if p.seesResult(r.Agent) {
					n++
				}
				return n > keep
			})
			if !load {
				return st.History().Reset(results)
			}
			if !p.talks && !actor.spy {
				text = p.hiddenValue(p.worlds[world], "string").(string)
			}
			return st.History().Load(results, []state.Message{state.UserText(text)})
		})
	case 6, 7:
		p.actAnswer(actor)
	}
}

// actAnswer answers a call of a result that the observer sees. A call without
// an id of its own is answered by the agent of the result, as in answerHidden.
func (p *spyProgram) actAnswer(actor spyPlace) {
	call, agent := p.sharedCall(), aclMembers[p.rng.IntN(len(aclMembers))]
	var seen []state.InferenceResult
	for _, r := range actor.at[0].History().All() {
		if p.seesResult(r.Agent) && len(r.Output) > 1 {
			seen = append(seen, r)
		}
	}
	if len(seen) > 0 && p.rng.IntN(4) > 0 {
		r := seen[p.rng.IntN(len(seen))]
		call, agent = r.Output[1].(state.ToolCallMessage).Calls()[0], r.Agent
	} else if !p.seesResult(agent) && !actor.spy {
		return
	}
	result := state.ToolError(call, spyValue(p.rng, "string", 0).(string))
	p.both(actor, "answer", func(_ int, st *state.State) error {
		if !actor.spy && !strings.HasPrefix(call.ID, "c") {
			st = st.As(agent)
		}
		return st.History().Answer(result)
	})
}

// sharedCall draws a call that both worlds have in common.
func (p *spyProgram) sharedCall() state.ToolCall {
	return spyCall(p.rng, fmt.Sprint("c", p.rng.IntN(3)))
}

func (p *spyProgram) actTransact(actor spyPlace, depth int) {
	n, fail := 1+p.rng.IntN(5), p.rng.IntN(5) == 0
	var errs [2]error
	failed := errors.New("failed")
	errs[0] = actor.at[0].Update(func(a *state.State) error {
		errs[1] = actor.at[1].Update(func(b *state.State) error {
			inside := actor
			inside.at = [2]*state.State{a, b}
			for range n {
				p.step(inside, depth-1)
			}
			if fail {
				return failed
			}
			return nil
		})
		if fail {
			return failed
		}
		return nil
	})
	p.outcome(actor, "transact", errs)
}

// actJoin makes branches, lets things happen on them and on their parent, and
// joins them. The observer also tries to join branches that are not its own.
func (p *spyProgram) actJoin(actor spyPlace, depth int) {
	n := 1 + p.rng.IntN(3)
	var salts [2]int
	for world := range salts {
		salts[world] = p.worlds[world].rng.IntN(100)
	}
	talk := p.rng.IntN(n + 1)
	// A hidden field is written by one branch, or by the parent.
	place := func(i int) spyPlace {
		pl := actor
		pl.branch = true
		pl.may = func(world int, field string) bool {
			at := talk
			if field != spyHistory {
				at = (salts[world] + spyNumber(field)) % (n + 1)
			}
			return at == i && actor.may(world, field)
		}
		return pl
	}
	places := make([]spyPlace, n+1)
	for i := range places {
		places[i] = place(i)
		for world := range p.worlds {
			if i < n {
				places[i].at[world] = actor.at[world].Fork()
			}
		}
	}
	for range 1 + p.rng.IntN(6) {
		p.step(places[p.rng.IntN(n+1)], depth-1)
	}
	for i := range places {
		for world := range p.worlds {
			p.disturb(places[i], world)
		}
	}
	order := p.rng.Perm(n)[:1+p.rng.IntN(n)]
	branches := func(world int, narrow bool) []*state.State {
		var list []*state.State
		for _, i := range order {
			st := places[i].at[world]
			if narrow {
				st = p.role().of(st)
			}
			list = append(list, st)
		}
		return list
	}
	if !actor.spy {
		spy := actor
		spy.spy = true
		if p.rng.IntN(2) == 0 {
			p.both(spy, "join of another's", func(world int, st *state.State) error {
				return p.role().of(st).Join(branches(world, true)...)
			})
		}
	}
	p.both(actor, "join", func(world int, st *state.State) error { return st.Join(branches(world, false)...) })
}

func (p *spyProgram) actRevert(pl spyPlace) {
	if pl.spy || pl.branch {
		return
	}
	if len(p.snapshots) == 0 || p.rng.IntN(2) == 0 {
		p.snapshots = append(p.snapshots, [2]*state.State{pl.at[0].Snapshot(), pl.at[1].Snapshot()})
		return
	}
	past := p.snapshots[p.rng.IntN(len(p.snapshots))]
	p.both(pl, "revert", func(world int, st *state.State) error { return st.Revert(past[world]) })
}
