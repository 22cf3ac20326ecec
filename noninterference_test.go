package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// The test of this file proves non-interference. Two worlds go through the same
// random program. In each, other things happen that the observer may not see:
// any operation, on what is hidden from it, in runs that are long enough to
// overflow journals and to let the state rebuild what it stores. After each
// step the observer must see the same in both worlds, byte by byte.
//
// What a writer does may depend on all that the writer sees. A program ends if
// a visible operation of another succeeds in one world only: that is not a leak
// of the state. This is seldom, because hidden writes keep out of each other's
// way.

// spyField is a field of the schema that the programs run on.
type spyField struct {
	name string
	part state.Part
	// kind is what value makes for it.
	kind    string
	readers []string // who may read it; nil is the whole team
	update  func(st *state.State, v any) error
}

func spyOf[T any](kind string, readers []string, f *state.Field[T]) spyField {
	return spyField{name: f.Name, part: f, kind: kind, readers: readers, update: func(st *state.State, v any) error {
		return f.Update(st, func(T) (T, error) { return v.(T), nil })
	}}
}

var spyFields = []spyField{
	spyOf("string", nil, &state.Field[string]{Name: "pub", Read: state.Public, Write: state.Public}),
	spyOf("list", nil, &state.Field[[]string]{Name: "log", Read: state.Public, Write: state.Public}),
	spyOf("int", nil, &state.Field[int]{Name: "sum", Read: state.Public, Write: state.Public, Handler: state.Sum[int]()}),
	spyOf("any", nil, &state.Field[any]{Name: "notice", Owner: "ann", Read: state.Public}),
	spyOf("string", nil, &state.Field[string]{Name: "temp", Read: state.Public, Write: state.Public, Ephemeral: true}),
	spyOf("string", []string{"ann"}, &state.Field[string]{Name: "ann", Owner: "ann"}),
	spyOf("list", []string{"ann", "ben"}, &state.Field[[]string]{Name: "pair", Owner: "ann", Read: state.Only("ben"), Write: state.Only("ben")}),
	spyOf("string", []string{"ben"}, &state.Field[string]{Name: "ben", Owner: "ben", Handler: state.Max[string]()}),
	spyOf("string", []string{"ben", "cyd"}, &state.Field[string]{Name: "token", Owner: "cyd", Read: state.Only("ben"), Secret: true}),
	spyOf("any", []string{}, &state.Field[any]{Name: "host"}),
	spyOf("list", []string{}, &state.Field[[]string]{Name: "vault", Handler: state.KeepLast[[]string](2)}),
	spyOf("map", []string{"cyd", "lead"}, &state.Field[map[string]string]{Name: "map", Owner: "cyd", Read: state.Only("lead"), Handler: state.MergeMap[map[string]string]()}),
	spyOf("int", []string{}, &state.Field[int]{Name: "run", Ephemeral: true}),
}

// spyWorld is one of the two worlds.
type spyWorld struct {
	st     *state.State
	rng    *rand.Rand // draws what the observer does not see
	unique int
	seen   bytes.Buffer // by the observer since the last comparison
}

// spyProgram is a program that is drawn while it runs.
type spyProgram struct {
	t         *testing.T
	seed      uint64
	rng       *rand.Rand // draws what the observer sees
	as        []string   // the observer
	talks     bool       // the observer reads messages
	worlds    [2]*spyWorld
	snapshots [][2]*state.State
	steps     int // that are left
	over      bool
}

// spyPlace is the handles on which both worlds are at work: a state, a
// transaction or a branch.
type spyPlace struct {
	at     [2]*state.State
	spy    bool // the handles are the observer's, so nothing hidden happens here
	branch bool // it will be joined, or has branches that will be
	// may reports whether hidden operations of a world may write a field here.
	may func(world int, field string) bool
}

func (p *spyProgram) sees(f spyField) bool {
	return p.isMember() && (f.readers == nil || p.role().among(f.readers))
}

func (p *spyProgram) role() aclRole  { return aclRole{as: p.as} }
func (p *spyProgram) isMember() bool { return p.role().among(aclMembers) }

// seesResult reports whether the observer sees the results of an agent.
func (p *spyProgram) seesResult(agent string) bool {
	return p.talks || p.isMember() && !slices.ContainsFunc(p.as, func(a string) bool { return a != agent && a != "ben" })
}

const spyHistory = "(history)"

// both does an operation in both worlds. It reports whether it succeeded.
func (p *spyProgram) both(pl spyPlace, what string, do func(world int, st *state.State) error) bool {
	var errs [2]error
	for world, st := range pl.at {
		if !p.over {
			errs[world] = do(world, st)
		}
	}
	return p.outcome(pl, what, errs)
}

// outcome notes how an operation ended. The program is over if it succeeded in
// one world only, unless the observer did it.
func (p *spyProgram) outcome(pl spyPlace, what string, errs [2]error) bool {
	if pl.spy {
		for world, err := range errs {
			fmt.Fprintln(&p.worlds[world].seen, what, err)
		}
	}
	if !pl.spy && (errs[0] == nil) != (errs[1] == nil) {
		p.over = true
	}
	return errs[0] == nil
}

// step does one operation that both worlds have in common, and before it, in
// each world, what the observer does not see.
func (p *spyProgram) step(pl spyPlace, depth int) {
	if p.over || p.steps <= 0 {
		return
	}
	p.steps--
	for world := range p.worlds {
		p.disturb(pl, world)
	}
	actor := pl
	switch {
	case pl.spy:
	case p.rng.IntN(4) == 0:
		actor.spy = true
		for world := range actor.at {
			actor.at[world] = p.role().of(actor.at[world])
		}
	case p.rng.IntN(2) == 0:
		agent := aclMembers[p.rng.IntN(len(aclMembers))]
		for world := range actor.at {
			actor.at[world] = actor.at[world].As(agent)
		}
	}
	if p.rng.IntN(3) == 0 {
		cause := fmt.Sprint("call ", p.rng.IntN(100))
		for world := range actor.at {
			actor.at[world] = actor.at[world].WithCause(cause)
		}
	}
	if p.rng.IntN(12) == 0 {
		p.give(&actor)
	}
	p.act(pl, actor, depth)
	all := p.steps == 0 || p.rng.IntN(60) == 0
	for world, st := range pl.at {
		st = p.role().of(st)
		fmt.Fprintln(&p.worlds[world].seen, st.KV().Len(), st.History().Len())
		if all {
			observeSpy(&p.worlds[world].seen, st)
			for _, past := range p.snapshots {
				effects, err := st.Effects(p.role().of(past[world]))
				fmt.Fprintln(&p.worlds[world].seen, effects, err)
			}
		}
	}
	p.compare()
}

// give lets an actor work with values for one request, which in each world also
// hide hidden fields.
func (p *spyProgram) give(actor *spyPlace) {
	f := spyFields[p.rng.IntN(len(spyFields))]
	v := spyValue(p.rng, f.kind, 0)
	var given [2]*state.State
	ok := p.both(*actor, "with", func(world int, st *state.State) (err error) {
		values := map[string]any{f.name: v}
		if !p.sees(f) && !actor.spy {
			values = map[string]any{}
		}
		w := p.worlds[world]
		if hide := spyFields[w.rng.IntN(len(spyFields))]; !actor.spy && !p.sees(hide) && st.Agent() == "" {
			values[hide.name] = p.hiddenValue(w, hide.kind)
		}
		given[world], err = st.With(values)
		return err
	})
	if ok && !p.over {
		actor.at = given
	}
}

// compare fails the test if the observer has seen different things.
func (p *spyProgram) compare() {
	a, b := spyWithoutKeys(p.worlds[0].seen.Bytes()), spyWithoutKeys(p.worlds[1].seen.Bytes())
	if !p.over && !bytes.Equal(a, b) {
		x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
		i := 0
		for i < min(len(x), len(y))-1 && x[i] == y[i] {
			i++
		}
		require.Failf(p.t, "seen", "program %d: %q sees\n%s\nor, with other hidden things,\n%s", p.seed, p.as, x[i], y[i])
	}
	for _, w := range p.worlds {
		w.seen.Reset()
	}
}

var spyWords = []string{"", "a", "Zz", "0", "null", "[SECRET]", "\"quoted\"", "two\nlines", "<b>&", "naïve", "日本語", "\u202eabc", "\x00\x1b", `{"a":1}`, "- pub (string) = \"x\"\n"}

func spyValue(rng *rand.Rand, kind string, unique int) any {
	word := func() string {
		s := spyWords[rng.IntN(len(spyWords))]
		if rng.IntN(20) == 0 {
			s = strings.Repeat(s+"x", rng.IntN(60))
		}
		if unique > 0 {
			s += fmt.Sprint("#", unique)
		}
		return s
	}
	switch kind {
	case "string":
		return word()
	case "list":
		list := make([]string, 1+rng.IntN(3))
		for i := range list {
			list[i] = word()
		}
		return list
	case "int":
		return rng.IntN(1000)*1000 + unique
	case "map":
		return map[string]string{word(): word(), "k": word()}
	}
	kinds := []string{"string", "list", "int", "map"}
	return spyValue(rng, kinds[rng.IntN(len(kinds))], unique)
}

// spyKey is where a key of a call begins in JSON.
var spyKey = regexp.MustCompile(`"key":"([a-z](?:[A-Za-z0-9_-]|\[SECRET\])+)"`) // a secret of one character may be in it

// spyWithoutKeys returns what was seen with the keys of calls, which are random,
// numbered behind their first letters, in the order in which they appear.
func spyWithoutKeys(seen []byte) []byte {
	names := map[string]string{}
	for _, found := range spyKey.FindAllSubmatch(seen, -1) {
		key := string(found[1])
		if names[key] == "" {
			names[key] = fmt.Sprintf("%c-key-%d", key[0], len(names)+1)
			seen = bytes.ReplaceAll(seen, found[1], []byte(names[key]))
		}
	}
	return seen
}

// spyVersion is where a state prints its version, which is the same on all
// handles.
var spyVersion = regexp.MustCompile(`(version\W+)\d+`)

// observeSpy notes all that the observer sees through a handle, but versions.
func observeSpy(w *bytes.Buffer, st *state.State) {
	for _, f := range spyFields {
		v, ok := st.KV().Get(f.name)
		got, err := state.GetAs[any](st, f.name)
		fmt.Fprintln(w, v, ok, got, err, st.KV().Has(f.name))
	}
	fmt.Fprintf(w, "%v\n%q\n%d\n", st.KV().All(), st.KV().Keys(), st.KV().Len())
	fmt.Fprintf(w, "%+v\n%s\n", st.Fields(), st.Describe())
	fmt.Fprintln(w, state.ListLen(st, state.Messages), st.Redact("a Zz 0 #1 x#2 token"))
	var printed bytes.Buffer
	fmt.Fprintf(&printed, "%+v\n%s\n%#v\n%v\n", st, st, st, st.LogValue())
	spyJSON(&printed, st)
	w.Write(spyVersion.ReplaceAll(printed.Bytes(), []byte("$1")))
	begin := spyBegin(st)
	n, last := 0, uint64(0)
	for c, err := range st.Changes(begin) {
		fmt.Fprintf(w, "%v %s %s %s %s %v ", c.Version > last, c.Agent, c.Cause, c.Op, c.Field, err)
		spyJSON(w, c.Value)
		if n, last = n+1, c.Version; last > 0 && n%4 == 0 {
			for later := range st.Changes(last) {
				fmt.Fprintln(w, later.Op, later.Field)
			}
		}
	}
	if n > 0 {
		for c, err := range st.Watch(context.Background(), begin) {
			fmt.Fprintf(w, "%s %s %v ", c.Op, c.Field, err)
			if n--; n == 0 {
				break
			}
		}
	}
	h := st.History()
	spyJSON(w, h.Results())
	result, ok := h.Last()
	spyJSON(w, result)
	_, at := h.At(1)
	fmt.Fprintln(w, h.Len(), ok, at, len(h.Format(nil)))
	given, err := st.With(map[string]any{"pub": "given"})
	fmt.Fprintln(w, err)
	if err == nil {
		fmt.Fprintln(w, given.KV().All(), given.KV().Set("pub", "x"), given.Describe())
	}
	_, err = st.Export()
	_, err2 := st.At(st.Version())
	fmt.Fprintln(w, err, err2, st.Revert(st.Snapshot()))
}

// spyBegin returns the first version after which the journal has all changes: a
// branch has those since it was forked.
func spyBegin(st *state.State) uint64 {
	for since := range st.Version() {
		whole := true
		for _, err := range st.Changes(since) {
			whole = err == nil
			break
		}
		if whole {
			return since
		}
	}
	return st.Version()
}

func spyJSON(w *bytes.Buffer, v any) {
	data, err := json.Marshal(v)
	fmt.Fprintf(w, "%s %v\n", data, err)
}

func TestACLWhatAnAgentObservesDoesNotDependOnWhatItCannotRead(t *testing.T) {
	programs, incomparable := effort.Runs(500), 0
	base := effort.Seed(0)
	for i := range uint64(programs) {
		if runSpyProgram(t, base+i) {
			incomparable++
		}
	}
	require.Less(t, incomparable, 1+programs/5)
}

// spyNumber returns a number for a name.
func spyNumber(name string) int {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() % 100)
}

// runSpyProgram reports whether the program ended early.
func runSpyProgram(t *testing.T, seed uint64) bool {
	rng := rand.New(rand.NewPCG(seed, 3))
	observers := [][]string{{"ann"}, {"ann"}, {"cyd"}, {"lead"}, {"ben"}, {"ann", "ben"}, {"cyd", "lead"}, {"mallory"}, {""}}
	p := &spyProgram{t: t, seed: seed, rng: rng, as: observers[rng.IntN(len(observers))], steps: 10 + rng.IntN(40)}
	limits := state.Limits{ValueBytes: 4096}
	if rng.IntN(3) == 0 {
		limits.Keys, limits.Results = 3+rng.IntN(6), 1+rng.IntN(4)
	}
	parts := []state.Part{aclTeam, limits, state.AllowUndeclared}
	for _, f := range spyFields {
		parts = append(parts, f.part)
	}
	public := rng.IntN(3) == 0
	if !public {
		parts = append(parts, &state.Field[[]state.Message]{Name: "messages", Owner: "ben", Read: state.Private})
	}
	schema, err := state.NewSchema(parts...)
	require.NoError(t, err)
	p.talks = p.isMember() && (public || p.role().among([]string{"ben"}))
	root := spyPlace{may: func(int, string) bool { return true }}
	for world := range p.worlds {
		st := state.New(schema)
		root.at[world] = st
		p.worlds[world] = &spyWorld{st: st, rng: rand.New(rand.NewPCG(2*seed+uint64(world), 2))}
	}
	for p.steps > 0 && !p.over {
		p.step(root, 3)
	}
	return p.over
}

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
		_ = hs.AppendOutside(result())
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
	if w.rng.IntN(2) == 0 {
		call.Key = ""
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
			p.both(actor, "push", func(_ int, st *state.State) error { return st.History().AppendOutside(r) })
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
	calls := [2]state.ToolCall{call, call}
	var seen [2][]state.InferenceResult
	for world, st := range actor.at {
		for _, r := range st.History().All() {
			if p.seesResult(r.Agent) && len(r.Output) > 1 {
				seen[world] = append(seen[world], r)
			}
		}
	}
	if n := len(seen[0]); n > 0 && n == len(seen[1]) && p.rng.IntN(4) > 0 {
		i, keyed := p.rng.IntN(n), p.rng.IntN(2) == 0
		for world := range calls {
			calls[world], agent = seen[world][i].Output[1].(state.ToolCallMessage).Calls()[0], seen[world][i].Agent
			if !keyed {
				calls[world].Key = ""
			}
		}
	} else if !p.seesResult(agent) && !actor.spy {
		return
	}
	text := spyValue(p.rng, "string", 0).(string)
	p.both(actor, "answer", func(world int, st *state.State) error {
		if !actor.spy && !strings.HasPrefix(calls[world].ID, "c") {
			st = st.As(agent)
		}
		return st.History().Answer(state.ToolError(calls[world], text))
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
