package crash

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Test kills the processes that handle Messages before and after each thing
// that they do outside of themselves, has others go on, and compares what is
// left with a run that nothing disturbed. Each fault at each point is a subtest,
// such as write_3/crash_after. It runs in a bubble of [testing/synctest], so that
// time costs nothing.
//
// Each case requires that all messages are handled, that the effects and fields
// are those of the undisturbed case, that each message of the user is in the
// conversation once, that its sender gets the same reply, that the provider
// accepts the conversation and each request, and that no goroutine is left. What
// a loop of package tool asks has to be what it asks undisturbed: a request comes
// again only if its answer was not committed, and none comes after the last word.
// A fault in a process that lives may
// let a run fail that has made no effect. The message is sent again then, and
// the effects and fields of the case are not compared.
//
// Variables of packages outlive a process. What a program does outside of Model,
// Effect and Store is neither cut off nor counted.
type Test struct {
	// Open makes the options of a process, and what else lives in it. Its
	// Options.Name is ignored.
	Open func(p *Process) *workspace.Options

	// Messages are sent one by one, with their IDs, and again after a crash, as
	// platforms do. Their user is ann. The Key of a decision is the id of its call,
	// because the key is random: it goes to the call with this id that waits, or to
	// the one at its place if that was made again after a crash.
	Messages []workspace.Message

	// OpenStore makes an empty store for the workspaces of a case, and returns a
	// function that opens a handle to it: the first for the test itself, and one
	// for each process. It lets the cleanup of t close them. nil stands for a store
	// in memory.
	OpenStore func(t testing.TB) func() store.Store

	// Setup makes what is there before.
	Setup func(w *workspace.Workspace) error

	// Ignore has the names of fields that may differ.
	Ignore []string

	// Check checks what else has to hold at the end of each case.
	Check func(t testing.TB, v *workspace.View)

	// Pairs is the number of cases with two faults, drawn with a fixed seed. 0
	// stands for 100, with -short for 20, and a negative number for none.
	Pairs int

	// Save is a directory in which files for [Resume] are written on update: what
	// is stored after each write of the undisturbed case, and the effects made so
	// far. Name it after the version. Files of a directory that exists stay as
	// they are. Nothing is written if a Secret field has a value in a store that
	// is not sealed, or if an effect has a secret.
	Save string
}

const (
	defaultPairs = 100
	shortPairs   = 20
	maxHung      = 3 // after as many cases that hang, the others are left out
)

// Run runs all cases as subtests of t.
func (c Test) Run(t *testing.T) {
	t.Helper()
	if err := checkMessages(c.Messages); err != nil || len(c.Messages) == 0 {
		t.Fatalf("crash: a Test needs Messages: %v", err)
	}
	saving := c.Save != "" && kit.Updating()
	first := c.undisturbed(t, saving)
	if first.failed() {
		t.Errorf("the undisturbed case fails: %s", first.text())
		return
	}
	if saving {
		first.saveFiles(t, c.Save)
	}
	second := c.undisturbed(t, false)
	if !second.failed() {
		second.w.fail(compareEnds(first.end, second.end, c.Ignore)...)
	}
	if second.failed() {
		t.Errorf("not deterministic: two undisturbed cases differ: %s", second.text())
		return
	}
	r := &testRun{Test: c, want: first.end, after: map[planned][]point{}}
	var singles []planned
	for _, p := range first.w.reached {
		for _, f := range faultsOf(p.kind) {
			singles = append(singles, planned{p, f})
		}
		t.Run(p.String(), func(t *testing.T) {
			t.Helper()
			for _, f := range faultsOf(p.kind) {
				t.Run(string(f), func(t *testing.T) { t.Helper(); r.run(t, planned{p, f}) })
			}
		})
	}
	if c.Pairs >= 0 && len(singles) > 0 {
		t.Run("pairs", func(t *testing.T) {
			t.Helper()
			for _, pair := range r.pairs(t, singles) {
				t.Run(pair[0].String()+"+"+pair[1].String(), func(t *testing.T) { t.Helper(); r.run(t, pair...) })
			}
		})
	}
	r.report(t)
}

// openStore makes the store of a case: see OpenStore.
func (c *Test) openStore(t testing.TB) func() store.Store {
	if c.OpenStore != nil {
		return c.OpenStore(t)
	}
	db := store.NewMemory()
	return func() store.Store { return db.Open() }
}

// checkMessages returns an error if a message could not be told from another one,
// or has a decision that no workspace accepts.
func checkMessages(messages []workspace.Message) error {
	ids := map[string]bool{"": true}
	for i, m := range messages {
		if ids[m.ID] {
			return fmt.Errorf("message %d needs an ID that no other has", i+1)
		}
		ids[m.ID] = true
		for _, d := range m.Decisions {
			if err := d.Check(); err != nil {
				return fmt.Errorf("message %d: %w", i+1, err)
			}
		}
	}
	return nil
}

// undisturbed runs the case without faults.
func (c Test) undisturbed(t *testing.T, saving bool) *testCase {
	t.Helper()
	k := c.newCase()
	k.saving = saving
	k = k.inBubble(t, (*testCase).play)
	for _, s := range k.w.scripts {
		for _, line := range s.Missing(k.w.secrets.Mask) {
			k.w.fail("the model was not asked for " + line)
		}
	}
	return k
}

// testRun is the run of all cases of a Test.
type testRun struct {
	Test
	want  *ending
	after map[planned][]point // the points that are reached after a fault

	cases        [3]int // that ran, by the number of faults
	missed, hung int
	failed       []string
}

// run runs a case and reports its failure.
func (r *testRun) run(t *testing.T, plan ...planned) {
	t.Helper()
	if r.hung >= maxHung {
		t.Skipf("left out: %d cases hang", r.hung)
	}
	r.cases[len(plan)]++
	k := r.play(t, plan...)
	r.judge(k, len(plan))
	if k.failed() || t.Failed() {
		r.failed = append(r.failed, t.Name())
		t.Errorf("%s\n    again: %s", k.text(), kit.Again(t.Name()))
	}
}

// play plays a case, and notes what is reached after its fault.
func (r *testRun) play(t *testing.T, plan ...planned) *testCase {
	t.Helper()
	k := r.newCase(plan...).inBubble(t, (*testCase).play)
	switch {
	case k.hung:
		r.hung++
	case len(plan) == 1 && len(k.w.met) > 0:
		r.after[plan[0]] = k.w.reached[k.w.met[0]:]
	}
	return k
}

// judge compares the case with the undisturbed one.
func (r *testRun) judge(k *testCase, faults int) {
	if !k.hung && len(k.w.met) != faults {
		r.missed++
	}
	if k.end == nil || k.excused {
		return
	}
	k.w.fail(compareEnds(r.want, k.end, r.Ignore)...)
	k.w.fail(compareUsers(r.want, k.end, k.opts.KeepMessages)...)
	if len(r.Ignore) == 0 { // else prompts may tell what differs
		k.w.fail(compareRequests(r.want.requests, k.end.requests, faults)...)
	}
	if r.want.said != nil && !mayBeTrimmed(k.end, k.opts.KeepMessages) {
		k.w.fail(compareConversations(r.want.said, k.end.said)...)
	}
	k.w.secrets.Add(r.want.state)
}

// pairs draws cases with two faults, the second of which is at a point that is
// reached after the first.
func (r *testRun) pairs(t *testing.T, singles []planned) [][]planned {
	t.Helper()
	usual := defaultPairs
	if testing.Short() {
		usual = shortPairs
	}
	n := cmp.Or(r.Pairs, usual)
	random := rand.New(rand.NewPCG(3, 4))
	seen := map[[2]planned]bool{}
	var pairs [][]planned
	for tries := 0; len(pairs) < n && tries < 4*n && r.hung < maxHung; tries++ {
		first := singles[random.IntN(len(singles))]
		if _, ok := r.after[first]; !ok { // -run has left it out
			r.play(t, first)
		}
		after := r.after[first]
		if len(after) == 0 {
			continue
		}
		p := after[random.IntN(len(after))]
		faults := faultsOf(p.kind)
		second := planned{p, faults[random.IntN(len(faults))]}
		if !seen[[2]planned{first, second}] {
			seen[[2]planned{first, second}] = true
			pairs = append(pairs, []planned{first, second})
		}
	}
	return pairs
}

// report sums the cases up.
func (r *testRun) report(t *testing.T) {
	t.Helper()
	text := fmt.Sprintf("%s and %s", kit.Count(r.cases[1], "case", "cases"), kit.Count(r.cases[2], "pair", "pairs"))
	if r.missed > 0 {
		text += fmt.Sprintf(", %d did not reach their fault", r.missed)
	}
	if len(r.failed) > 0 {
		t.Errorf("%s, %d failed, the first is %s", text, len(r.failed), strings.TrimPrefix(r.failed[0], t.Name()+"/"))
		return
	}
	t.Log(text)
}
