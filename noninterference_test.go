package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	a, b := &p.worlds[0].seen, &p.worlds[1].seen
	if !p.over && !bytes.Equal(a.Bytes(), b.Bytes()) {
		x, y := strings.Split(a.String(), "\n"), strings.Split(b.String(), "\n")
		i := 0
		for i < min(len(x), len(y))-1 && x[i] == y[i] {
			i++
		}
		require.Failf(p.t, "seen", "program %d: %q sees\n%s\nor, with other hidden things,\n%s", p.seed, p.as, x[i], y[i])
	}
	a.Reset()
	b.Reset()
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
