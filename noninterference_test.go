package state_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/effort"
	"github.com/stretchr/testify/require"
)

// The test of this file proves non-interference. A random program runs twice, on
// states that differ only in values that the observer may not read. Everything
// that the observer sees must be the same, byte by byte.

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

// spyOp is one operation. It is drawn before the program runs. Only the values
// of fields that the observer cannot read are drawn while it runs.
type spyOp struct {
	kind   string
	actor  []string // given to As; none is the host
	spy    bool     // the observer does it
	fields []spyField
	key    string
	values []any // for each of fields, or for key
	result state.InferenceResult
	n      int
	sub    []spyOp
}

// spyRun is one run of a program.
type spyRun struct {
	st        *state.State
	as        []string
	talks     bool       // the observer reads messages
	secret    *rand.Rand // draws what the observer cannot read
	presence  bool       // also draws whether it is written at all
	unique    int
	snapshots []*state.State
	seen      bytes.Buffer // by the observer
	done      []bool       // which operations succeeded
}

func (r *spyRun) sees(f spyField) bool {
	return aclRole{as: r.as}.among(aclMembers) && (f.readers == nil || aclRole{as: r.as}.among(f.readers))
}

func (r *spyRun) seesResult(agent string) bool {
	return r.talks || aclRole{as: r.as}.among(aclMembers) && !slices.ContainsFunc(r.as, func(a string) bool { return a != agent && a != "ben" })
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

// value returns the value of a field in this run: the one of the program, unless
// it is another's and hidden.
func (r *spyRun) value(op *spyOp, i int) any {
	if op.spy || r.sees(op.fields[i]) {
		return op.values[i]
	}
	r.unique++ // whether two overwrites are equal decides on a join
	return spyValue(r.secret, op.fields[i].kind, r.unique)
}

// text returns what is said in a result, or in a message, in this run.
func (r *spyRun) text(op *spyOp, seen bool) string {
	if op.spy || seen {
		return op.result.Input
	}
	r.unique++
	return spyValue(r.secret, "string", r.unique).(string)
}

func (r *spyRun) do(st *state.State, op spyOp) error {
	for _, agent := range op.actor {
		st = st.As(agent)
	}
	if op.n%3 == 0 {
		st = st.WithCause(fmt.Sprint("call ", op.n))
	}
	hidden := !op.spy && !slices.ContainsFunc(op.fields, r.sees) && len(op.fields) > 0
	if r.presence && hidden && r.secret.IntN(2) == 0 {
		return nil
	}
	err := r.apply(st, op)
	if op.spy {
		fmt.Fprintf(&r.seen, "%s: %v\n", op.kind, err)
	}
	if !r.presence || !hidden {
		r.done = append(r.done, err == nil)
	}
	return err
}

func (r *spyRun) apply(st *state.State, op spyOp) error {
	switch op.kind {
	case "set":
		return st.KV().Set(op.fields[0].name, r.value(&op, 0))
	case "flood":
		var err error
		for range op.n % 20 {
			err = errors.Join(err, st.KV().Replace(op.fields[0].name, r.value(&op, 0)))
		}
		return err
	case "replace":
		return st.KV().Replace(op.fields[0].name, r.value(&op, 0))
	case "update":
		return op.fields[0].update(st, r.value(&op, 0))
	case "bad":
		return st.KV().Set(op.fields[0].name, make(chan int))
	case "delete":
		deleted, err := st.KV().Delete(op.fields[0].name)
		if op.spy {
			fmt.Fprintln(&r.seen, deleted)
		}
		return err
	case "patch":
		values := map[string]any{}
		for i, f := range op.fields {
			values[f.name] = r.value(&op, i)
			if r.presence && !op.spy && !r.sees(f) && r.secret.IntN(4) == 0 {
				values[f.name] = nil
			}
		}
		return st.Patch(values)
	case "key":
		return st.KV().Set(op.key, op.values[0])
	case "drop":
		_, err := st.KV().Delete(op.key)
		return err
	case "say":
		return state.Messages.Set(st, []state.Message{state.UserText(r.text(&op, r.talks))})
	case "append":
		result := op.result
		signer := st.Agent()
		if signer == "" {
			signer = result.Agent
		} else {
			result.Agent = ""
		}
		result.Input = r.text(&op, r.seesResult(signer))
		result.Raw = result.Input
		result.Output = []state.Message{state.AssistantText(result.Input)}
		return st.History().Append(result)
	case "pop":
		_, _, err := st.History().Pop()
		return err
	case "reset":
		results := st.History().Results()
		return st.History().Reset(results[:op.n%(len(results)+1)])
	case "end":
		return st.EndRun()
	case "snapshot":
		r.snapshots = append(r.snapshots, st.Snapshot())
		return nil
	case "revert":
		if len(r.snapshots) == 0 {
			return nil
		}
		return st.Revert(r.snapshots[op.n%len(r.snapshots)])
	case "transact":
		return st.Update(func(tx *state.State) error {
			for _, sub := range op.sub {
				_ = r.do(tx, sub)
			}
			if op.spy {
				r.observe(tx)
			}
			return nil
		})
	case "join":
		branches := []*state.State{st.Fork(), st.Fork()}
		for i, sub := range op.sub {
			to := append(branches, st)[i%3]
			_ = r.do(to, sub)
		}
		if op.spy {
			r.observe(branches[0])
		}
		return st.Join(branches...)
	}
	panic(op.kind)
}

// observe notes all that the observer sees through a handle.
func (r *spyRun) observe(st *state.State) {
	w := &r.seen
	for _, f := range spyFields {
		v, ok := st.KV().Get(f.name)
		got, err := state.Get[any](st, f.name)
		fmt.Fprintln(w, v, ok, got, err, st.KV().Has(f.name))
	}
	fmt.Fprintf(w, "%v\n%q\n%d\n%+v\n%s\n%#v\n", st.KV().All(), st.KV().Keys(), st.KV().Len(), st, st, st)
	fmt.Fprintf(w, "%+v\n%s\n%d\n", st.Fields(), st.Describe(), st.Version())
	fmt.Fprintln(w, state.Len(st, state.Messages), st.LogValue(), st.Redact("a Zz 0 #1 x#2 token"))
	spyJSON(w, st)
	version := st.Version()
	for since := range version + 2 {
		n := 0
		for c, err := range st.Changes(since) {
			n++
			c.Time = time.Time{}
			fmt.Fprintf(w, "%d %s %s %s %s %v ", c.Version, c.Agent, c.Cause, c.Op, c.Field, err)
			spyJSON(w, c.Value)
		}
		if since+2 < version || n == 0 {
			continue
		}
		for c, err := range st.Watch(context.Background(), since) {
			fmt.Fprintf(w, "%d %s %s %v ", c.Version, c.Op, c.Field, err)
			if n--; n == 0 {
				break
			}
		}
	}
	h := st.History()
	spyJSON(w, h.Results())
	last, ok := h.Last()
	spyJSON(w, last)
	_, at := h.At(1)
	fmt.Fprintln(w, h.Len(), ok, at, len(h.From(1)), len(h.Format(nil)))
	for _, agent := range aclMembers {
		for result := range h.By(agent) {
			fmt.Fprintf(w, "%s %q\n", agent, result.Input)
		}
	}
	_, err := st.Export()
	_, err2 := st.At(version)
	fmt.Fprintln(w, err, err2, st.Revert(st.Snapshot()))
}

func spyJSON(w *bytes.Buffer, v any) {
	data, err := json.Marshal(v)
	fmt.Fprintf(w, "%s %v\n", data, err)
}

// spyProgram is a program with its setting.
type spyProgram struct {
	as       []string
	talk     bool // messages are public
	limits   state.Limits
	presence bool
	ops      []spyOp
}

func spyDraw(rng *rand.Rand) spyProgram {
	observers := [][]string{{"ann"}, {"ann"}, {"cyd"}, {"lead"}, {"ben"}, {"ann", "ben"}, {"cyd", "lead"}, {"mallory"}, {""}}
	p := spyProgram{
		as:       observers[rng.IntN(len(observers))],
		talk:     rng.IntN(3) > 0,
		presence: rng.IntN(3) == 0,
		limits:   state.Limits{Journal: 1 + rng.IntN(6), Keys: 3 + rng.IntN(6), Results: 1 + rng.IntN(4), ValueBytes: 4096},
	}
	for range 4 + rng.IntN(12) {
		p.ops = append(p.ops, p.draw(rng, nil, 0))
	}
	return p
}

func (p *spyProgram) draw(rng *rand.Rand, within *spyOp, depth int) spyOp {
	kinds := []string{
		"set", "set", "set", "set", "flood", "replace", "replace", "update", "update", "delete", "patch", "patch", "bad",
		"key", "drop", "append", "append", "say", "transact", "join", "end", "pop", "reset", "snapshot", "revert",
	}
	op := spyOp{kind: kinds[rng.IntN(len(kinds))], n: rng.IntN(100)}
	if depth > 0 && slices.Contains([]string{"transact", "join", "snapshot", "revert", "end"}, op.kind) {
		op.kind = "patch"
	}
	if p.presence && slices.Contains([]string{"join", "pop", "reset"}, op.kind) {
		op.kind = "set" // their outcome depends on the content that the actor sees
	}
	switch {
	case within != nil:
		op.spy = within.spy // it acts with the handle of the whole
	case rng.IntN(4) == 0:
		op.actor, op.spy = p.as, true
	case rng.IntN(2) == 0:
		op.actor = []string{aclMembers[rng.IntN(len(aclMembers))]}
	}
	n := 0
	switch op.kind {
	case "set", "flood", "replace", "update", "delete", "bad":
		n = 1
	case "patch":
		n = 1 + rng.IntN(4)
	case "key", "drop":
		op.key = fmt.Sprint("key ", rng.IntN(4))
		op.values = []any{spyValue(rng, "any", 0)}
	case "append", "say":
		op.result = state.InferenceResult{
			Agent:     aclMembers[rng.IntN(len(aclMembers))],
			Input:     spyValue(rng, "string", 0).(string),
			CreatedAt: time.Unix(int64(rng.IntN(1000)), 0),
		}
	case "transact", "join":
		for range 1 + rng.IntN(6) {
			op.sub = append(op.sub, p.draw(rng, &op, depth+1))
		}
	}
	for range n {
		f := spyFields[rng.IntN(len(spyFields))]
		op.fields = append(op.fields, f)
		op.values = append(op.values, spyValue(rng, f.kind, 0))
	}
	return op
}

func (p *spyProgram) run(t *testing.T, seed uint64) *spyRun {
	parts := []state.Part{aclTeam, p.limits, state.AllowUndeclared}
	for _, f := range spyFields {
		parts = append(parts, f.part)
	}
	if !p.talk {
		parts = append(parts, &state.Field[[]state.Message]{Name: "messages", Owner: "ben", Read: state.Private})
	}
	schema, err := state.NewSchema(parts...)
	require.NoError(t, err)
	role := aclRole{as: p.as}
	r := &spyRun{
		st: state.New(schema), as: p.as, presence: p.presence, secret: rand.New(rand.NewPCG(seed, 2)),
		talks: role.among(aclMembers) && (p.talk || role.among([]string{"ben"})),
	}
	for i, op := range p.ops {
		_ = r.do(r.st, op)
		if i%5 == 4 {
			r.observe(role.of(r.st))
		}
	}
	r.observe(role.of(r.st))
	return r
}

func TestACLWhatAnAgentObservesDoesNotDependOnWhatItCannotRead(t *testing.T) {
	programs, incomparable := effort.Runs(300), 0
	for seed := range uint64(programs) {
		p := spyDraw(rand.New(rand.NewPCG(seed, 3)))
		a, b := p.run(t, 2*seed), p.run(t, 2*seed+1)
		if !slices.Equal(a.done, b.done) {
			// A writer that sees more may reach its limits in one run only.
			require.True(t, p.presence, "program %d: other operations succeed", seed)
			incomparable++
			continue
		}
		if !bytes.Equal(a.seen.Bytes(), b.seen.Bytes()) {
			x, y := strings.Split(a.seen.String(), "\n"), strings.Split(b.seen.String(), "\n")
			i := 0
			for i < min(len(x), len(y))-1 && x[i] == y[i] {
				i++
			}
			require.Failf(t, "seen", "program %d: %q sees\n%s\nor, with other hidden values,\n%s", seed, p.as, x[i], y[i])
		}
	}
	require.Less(t, incomparable, programs/5)
}
