package state_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// The test of this file proves that Join does what its doc says, for random
// trees of branches. They are compared with the model of joins_model_test.go.

func TestJoinsOfRandomBranches(t *testing.T) {
	seed := effort.LogSeed(t)
	joined, refused := 0, map[error]int{}
	for i := range effort.Runs(500) {
		p := &joinsProgram{t: t, rng: rand.New(rand.NewPCG(seed, uint64(i))), refused: refused}
		p.run()
		joined += p.joined
		if t.Failed() {
			t.Fatalf("program %d:\n%s", i, strings.Join(p.steps, "\n"))
		}
	}
	t.Logf("%d branches were joined; errors: %v", joined, refused)
	for _, err := range []error{state.ErrConflict, state.ErrRefused, state.ErrDenied, state.ErrReadOnly, state.ErrInvalid} {
		require.NotZero(t, refused[err], err)
	}
}

// joinsProgram is a random program on a tree of branches.
type joinsProgram struct {
	t        *testing.T
	rng      *rand.Rand
	fields   []*joinsField
	branches []*joinsBranch
	steps    []string
	joined   int
	refused  map[error]int
}

func (p *joinsProgram) run() {
	schema, fields := joinsOf()
	p.fields = fields
	root := &joinsBranch{st: state.New(schema), now: map[*joinsField]any{}, log: map[*joinsField][]joinsVersion{}}
	p.branches = []*joinsBranch{root}
	for range 6 {
		p.write(root)
	}
	for range 10 + p.rng.IntN(40) {
		b := p.branches[p.rng.IntN(len(p.branches))]
		switch p.rng.IntN(10) {
		case 0, 1, 2:
			p.fork(b)
		case 3, 4:
			p.join(b)
		default:
			p.write(b)
		}
		if p.t.Failed() {
			return
		}
	}
	for _, b := range slices.Backward(p.branches) { // all that is left, from the leaves
		p.join(b)
	}
}

func (p *joinsProgram) step(format string, args ...any) {
	p.steps = append(p.steps, fmt.Sprintf(format, args...))
}

func (p *joinsProgram) index(b *joinsBranch) int { return slices.Index(p.branches, b) }

func (p *joinsProgram) fork(b *joinsBranch) {
	st, agent := b.st, b.agent
	if agent == "" && p.rng.IntN(3) == 0 {
		agent = []string{"a", "b"}[p.rng.IntN(2)]
		st = st.As(agent)
	}
	var given map[string]any
	if p.rng.IntN(6) == 0 {
		given = map[string]any{"text": "given", "total": 99}
		var err error
		st, err = st.With(given)
		require.NoError(p.t, err)
	}
	child := b.fork(st.Fork())
	child.agent, child.opened = agent, agent
	if given != nil {
		child.given = given
	}
	if agent == "" && p.rng.IntN(4) == 0 { // narrowed after the fork
		child.agent = []string{"a", "b"}[p.rng.IntN(2)]
		child.st = child.st.As(child.agent)
	}
	p.branches = append(p.branches, child)
	p.step("%d: fork of %d, opened by %q, agent %q, given %v", len(p.branches)-1, p.index(b), child.opened, child.agent, child.given)
}

// write makes some writes, alone or in a transaction.
func (p *joinsProgram) write(b *joinsBranch) {
	writes := []joinsWrite{p.fields[p.rng.IntN(len(p.fields))].write(p.rng)}
	transaction := p.rng.IntN(6) == 0
	if b.joined { // a handler could refuse it first
		writes[0], transaction = p.fields[1].write(p.rng), false
	}
	if transaction {
		for _, i := range p.rng.Perm(len(p.fields))[:p.rng.IntN(3)] {
			if f := p.fields[i]; f != writes[0].field {
				writes = append(writes, f.write(p.rng))
			}
		}
	}
	do := func(st *state.State) error {
		for _, w := range writes {
			if err := w.do(st); err != nil {
				return err
			}
		}
		return nil
	}
	if !b.joined && p.rng.IntN(20) == 0 { // all ephemeral fields at once
		writes, transaction, do = nil, false, (*state.State).EndRun
		for _, f := range p.fields {
			if f.ephemeral {
				writes = append(writes, joinsWrite{field: f, text: "end run", over: true, deletes: true,
					apply: func(any) (any, error) { return nil, nil }})
			}
		}
	}
	var texts []string
	for _, w := range writes {
		texts = append(texts, w.text)
	}
	p.step("%d: %s, transaction: %v", p.index(b), strings.Join(texts, ", "), transaction)
	now, want := b.do(writes)
	var err error
	if transaction {
		err = b.st.Update(do)
	} else {
		err = do(b.st)
	}
	if p.agree(want, err); want == nil {
		b.note(now, writes, transaction)
	}
	p.compare(b)
}

// join joins some of the branches of b in some order, and sometimes others.
func (p *joinsProgram) join(b *joinsBranch) {
	if b.joined {
		return
	}
	var sides []*joinsBranch
	for _, i := range p.rng.Perm(len(p.branches)) {
		side := p.branches[i]
		if side.parent == b && (!side.joined || p.rng.IntN(20) == 0) && p.rng.IntN(4) > 0 {
			sides = append(sides, side)
		}
	}
	if p.rng.IntN(20) == 0 {
		sides = append(sides, p.branches[p.rng.IntN(len(p.branches))])
	}
	st, as := b.st, b.agent
	if as == "" && p.rng.IntN(6) == 0 {
		as = []string{"a", "b"}[p.rng.IntN(2)]
		st = st.As(as)
	}
	var handles []*state.State
	var numbers []int
	for _, side := range sides {
		handles, numbers = append(handles, side.st), append(numbers, p.index(side))
	}
	p.step("%d: join %v as %q", p.index(b), numbers, as)
	want := b.join(as, sides, p.fields)
	err := st.Join(handles...)
	if p.agree(want, err); err == nil {
		p.joined += len(sides)
	}
	p.compare(b)
	for _, side := range sides {
		p.compare(side)
	}
}

// agree compares an error with that of the model.
func (p *joinsProgram) agree(want, got error) {
	var conflict, wanted *state.ConflictError
	if errors.As(want, &wanted) {
		if errors.As(got, &conflict) {
			require.ElementsMatch(p.t, wanted.Fields, conflict.Fields, p.steps)
		}
		want = state.ErrConflict
	}
	if !errors.Is(got, want) {
		p.t.Errorf("the error is %v, want %v", got, want)
	}
	p.refused[want]++
}

// compare compares what the handle of a branch may read with the model.
func (p *joinsProgram) compare(b *joinsBranch) {
	set := 0
	for _, f := range p.fields {
		if !b.reads(f) {
			continue
		}
		want, got := b.now[f], f.read(b.st)
		if want != nil && f.name != "history" {
			set++
		}
		if v, given := b.given[f.name]; given {
			want = v
		}
		if !joinsSame(want, got) {
			p.t.Errorf("%d has %s = %v, want %v", p.index(b), f.name, got, want)
		}
	}
	if got := b.st.KV().Len(); got != set && b.given == nil {
		p.t.Errorf("%d has %d fields, want %d", p.index(b), got, set)
	}
	if got := b.st.Version(); got != b.version {
		p.t.Errorf("%d has version %d, want %d", p.index(b), got, b.version)
	}
}
