package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/internal/kit"
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
// conversation once, that the provider accepts the conversation and each
// request, and that no goroutine is left. A fault in a process that lives may
// let a run fail that has made no effect. The message is sent again then, and
// the effects and fields of the case are not compared.
//
// Variables of packages outlive a process. What a program does outside of Model,
// Effect, Lookup, Transport and Store is neither cut off nor counted.
type Test struct {
	// Open makes the options of a process, and what else lives in it. Its
	// Options.Holder is ignored.
	Open func(p *Process) *workspace.Options

	// Messages are sent one by one, with their IDs, and again after a crash, as
	// platforms do. Their user is ann. An answer goes to the call with its id, or
	// to the one at its place if that was made again after a crash.
	Messages []workspace.Message

	// Setup makes what is there before.
	Setup func(w *workspace.Workspace) error

	// Results returns the results of effects and lookups, by name (default
	// {"ok":true}). The functions must be pure.
	Results map[string]func(input state.JSON) (any, error)

	// Ignore has the names of fields that may differ.
	Ignore []string

	// Check checks what else has to hold at the end of each case.
	Check func(t testing.TB, v *workspace.View)

	// Pairs is the number of cases with two faults, drawn with a fixed seed. 0
	// stands for 100, a negative number for none.
	Pairs int

	// Save is a directory in which files for [Resume] are written on update: what
	// is stored after each write of the undisturbed case, and the effects made so
	// far. Name it after the version. Files of a directory that exists stay as
	// they are. Nothing is written if a Secret field has a value in a store that
	// is not sealed, or if an effect has a secret.
	Save string
}

const (
	maxCases     = 2000
	defaultPairs = 100
	maxHung      = 3 // after as many cases that hang, the others are left out
)

// Run runs all cases as subtests of t.
func (c Test) Run(t *testing.T) {
	t.Helper()
	if err := c.check(); err != nil {
		t.Fatalf("crash: %v", err)
		return
	}
	r := &testRun{Test: c}
	saving := c.Save != "" && kit.Updating()
	first := c.undisturbed(t, saving)
	if first.failed {
		t.Errorf("the undisturbed case fails: %s", first.text())
		return
	}
	if saving {
		first.saveFiles(t, c.Save)
	}
	second := c.undisturbed(t, false)
	if diff := slices.Concat(second.findings, compareEnds(first.end, second.end, c.Ignore)); len(diff) > 0 {
		second.findings = diff
		t.Errorf("not deterministic: two undisturbed cases differ: %s", second.text())
		return
	}
	r.want = first.end
	singles, all := c.singles(first.reached)
	if all > len(singles) {
		t.Logf("%d of %d cases: those of writes, effects and model calls, and a sample of the rest", len(singles), all)
	}
	for at := 0; at < len(singles); {
		to := at
		for to < len(singles) && singles[to].point == singles[at].point {
			to++
		}
		group := singles[at:to]
		t.Run(group[0].point.String(), func(t *testing.T) {
			t.Helper()
			for _, p := range group {
				t.Run(string(p.fault), func(t *testing.T) {
					t.Helper()
					r.run(t, []planned{p})
				})
			}
		})
		at = to
	}
	if c.Pairs >= 0 {
		t.Run("pairs", func(t *testing.T) {
			t.Helper()
			for _, pair := range r.pairs(t, singles) {
				t.Run(pair[0].String()+"+"+pair[1].String(), func(t *testing.T) {
					t.Helper()
					r.run(t, pair)
				})
			}
		})
	}
	r.report(t)
}

func (c Test) check() error {
	if c.Open == nil {
		return fmt.Errorf("no Open")
	}
	if len(c.Messages) == 0 {
		return fmt.Errorf("no Messages")
	}
	return checkMessages(c.Messages)
}

// checkMessages returns an error if a message could not be told from another one.
func checkMessages(messages []workspace.Message) error {
	ids := map[string]bool{}
	for i, m := range messages {
		if m.ID == "" || ids[m.ID] {
			return fmt.Errorf("message %d needs an ID that no other has", i+1)
		}
		ids[m.ID] = true
	}
	return nil
}

// undisturbed runs the case without faults.
func (c Test) undisturbed(t *testing.T, saving bool) *testCase {
	t.Helper()
	k := c.newCase(nil)
	k.saving = saving
	k.runInBubble(t)
	for _, s := range k.w.scripts {
		for _, line := range s.Missing(k.w.secrets.Mask) {
			k.fail("the model was not asked for " + line)
		}
	}
	return k
}

// singles returns the cases with one fault, and the number of all of them. If
// there are too many, points of reads and lookups are left out.
func (c Test) singles(reached []point) (cases []planned, all int) {
	var rest []int
	for _, p := range reached {
		for _, f := range faultsOf(p.kind) {
			if p.kind == kindRead || p.kind == kindLookup {
				rest = append(rest, len(cases))
			}
			cases = append(cases, planned{p, f})
		}
	}
	all = len(cases)
	if all <= maxCases {
		return cases, all
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	leave := map[int]bool{}
	for _, i := range rest[max(0, len(rest)-(all-maxCases)):] {
		leave[i] = true
	}
	var kept []planned
	for i, k := range cases {
		if !leave[i] {
			kept = append(kept, k)
		}
	}
	return kept, all
}

// testRun is the run of all cases of a Test.
type testRun struct {
	Test
	want  *ending
	after map[planned][]point // the points that are reached after a fault

	single, double  int // the cases that ran
	failed, missed  int
	hung, leftOut   int
	firstFailedName string
}

// run runs a case and reports its failure.
func (r *testRun) run(t *testing.T, plan []planned) {
	t.Helper()
	if r.hung >= maxHung {
		r.leftOut++
		t.Skipf("left out: %d cases hang", r.hung)
	}
	if len(plan) == 1 {
		r.single++
	} else {
		r.double++
	}
	k := r.newCase(plan)
	k.runInBubble(t)
	if k.hung {
		r.hung++
	} else {
		r.noteAfter(plan, k)
		r.judge(k)
	}
	if !k.failed && !t.Failed() {
		return
	}
	r.failed++
	if r.firstFailedName == "" {
		r.firstFailedName = strings.Join(strings.Split(t.Name(), "/")[1:], "/")
	}
	t.Errorf("%s\n    again: %s", k.text(), kit.Again(t.Name()))
}

// judge compares the case with the undisturbed one.
func (r *testRun) judge(k *testCase) {
	if len(k.plan) != k.metFaults {
		r.missed++
	}
	if k.end == nil || k.excused {
		return
	}
	k.fail(compareEnds(r.want, k.end, r.Ignore)...)
	k.fail(compareUsers(r.want, k.end, k.keep)...)
	k.w.secrets.Add(r.want.state)
}

func (r *testRun) noteAfter(plan []planned, k *testCase) {
	if len(plan) != 1 || k.metFaults == 0 {
		return
	}
	if r.after == nil {
		r.after = map[planned][]point{}
	}
	r.after[plan[0]] = k.reached[k.met[0]:]
}

// pairs draws cases with two faults, the second of which is at a point that is
// reached after the first.
func (r *testRun) pairs(t *testing.T, singles []planned) [][]planned {
	t.Helper()
	n := r.Pairs
	if n == 0 {
		n = defaultPairs
	}
	random := rand.New(rand.NewPCG(3, 4))
	seen := map[string]bool{}
	var pairs [][]planned
	for tries := 0; len(pairs) < n && tries < 4*n && r.hung < maxHung; tries++ {
		first := singles[random.IntN(len(singles))]
		after, ok := r.after[first]
		if !ok {
			k := r.newCase([]planned{first})
			if k.runInBubble(t); k.hung {
				r.hung++
				continue
			}
			r.noteAfter(k.plan, k)
			after = r.after[first]
		}
		if len(after) == 0 {
			continue
		}
		p := after[random.IntN(len(after))]
		faults := faultsOf(p.kind)
		pair := []planned{first, {p, faults[random.IntN(len(faults))]}}
		if name := pair[0].String() + pair[1].String(); !seen[name] {
			seen[name] = true
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// report sums the cases up.
func (r *testRun) report(t *testing.T) {
	t.Helper()
	text := fmt.Sprintf("%s and %s", kit.Count(r.single, "case", "cases"), kit.Count(r.double, "pair", "pairs"))
	if r.missed > 0 {
		text += fmt.Sprintf(", %d did not reach their fault", r.missed)
	}
	if r.leftOut > 0 {
		text += fmt.Sprintf(", %d left out", r.leftOut)
	}
	if r.failed > 0 {
		t.Errorf("%s, %d failed, the first is %s", text, r.failed, r.firstFailedName)
		return
	}
	t.Log(text)
}

// play is what a case does in its bubble.
func (k *testCase) play(t testing.TB) {
	d := &driver{open: k.c.Open, w: k.w}
	if k.saving {
		d.onWrite = func(after point) { k.save(d, after) }
	}
	defer d.close()
	defer func() { k.keep, k.excused = d.opts.Messages, d.excused }()
	if _, err := d.process(); err != nil {
		k.fail("Open: " + err.Error())
		return
	}
	if k.c.Setup != nil {
		if err := d.observer.Update(context.Background(), user, k.c.Setup); err != nil {
			k.fail("Setup: " + err.Error())
			return
		}
	}
	k.w.count(true)
	err := k.deliver(d)
	k.w.count(false)
	v, viewErr := d.observer.View(context.Background(), user)
	if viewErr != nil {
		k.fail("the workspace cannot be read: " + viewErr.Error())
		return
	}
	k.w.secrets.Add(v.State()) // failures name what is in it
	if err != nil {
		k.fail(err.Error())
		return
	}
	end, err := endingOf(k.w, v, d.opts.Schema)
	if err != nil {
		k.fail(err.Error())
		return
	}
	k.fail(checkEnd(k.w, v)...)
	if k.c.Check != nil {
		k.c.Check(t, v)
	}
	k.end = end
}

// deliver sends all messages.
func (k *testCase) deliver(d *driver) error {
	for _, msg := range k.c.Messages {
		if err := d.deliver(msg); err != nil {
			return err
		}
	}
	return d.repeat(k.c.Messages)
}

// count begins or ends the part of a case whose points count.
func (w *world) count(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counting = on
}
