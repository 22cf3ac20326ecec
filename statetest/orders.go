package statetest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
)

// Orders calls run for each order in which its branches can go on, and requires
// the same state of all: every order of up to 5 branches, and 120 of more, the
// given and the reverse one among them.
//
// The branches are goroutines that run starts. Each calls [Order.Wait] with its
// number where it would write, and goes on when its turn comes. run makes a new
// State each time, waits for its branches, and returns the State. It is called
// in a bubble of [synctest], once for each order and once more for the given
// one, with which the others are compared.
//
// Each order is a subtest with a name such as 2_0_1. What the returned handle
// reads is compared: fields, messages and history without times. Fields that are
// named in ignore are not, and the name history stands for the results. A branch
// that never waits is a failure, and so is a run in which branches cannot wait at
// the same time. Orders sees only where branches wait.
func Orders(t *testing.T, branches int, run func(t *testing.T, o *Order) *state.State, ignore ...string) {
	t.Helper()
	if run == nil {
		t.Fatal("statetest: Orders: no function")
	}
	if branches < 2 {
		t.Errorf("statetest: Orders of %d: fewer than 2 branches have one order, which could not differ from another", branches)
		return
	}
	c := &ordersCheck{run: run, ignore: ignore, secrets: newSecrets()}
	orders := ordersOf(branches)
	var failed []string
	for _, order := range orders {
		name := orderName(order)
		if !t.Run(name, func(t *testing.T) { t.Helper(); c.check(t, order, orders[0]) }) {
			failed = append(failed, name)
		}
	}
	if len(failed) > 0 {
		t.Errorf("statetest: %d of %d orders failed, the first is %s", len(failed), len(orders), failed[0])
	}
}

// ordersCheck is one call of Orders.
type ordersCheck struct {
	run     func(t *testing.T, o *Order) *state.State
	ignore  []string
	secrets *secrets
	states  []*state.State // that run has returned
	given   *content       // of the given order
	hung    bool           // a run has not ended
	shown   int            // the failures that were printed in full
}

// fullOrders is the number of failures of one call that show journals.
const fullOrders = 3

func (c *ordersCheck) check(t *testing.T, order, given []int) {
	t.Helper()
	if c.hung {
		t.Errorf("statetest: order %s is not run, because another one hangs", orderName(order))
		return
	}
	if c.given == nil {
		if c.given = c.play(t, given); c.given == nil {
			return
		}
		if problem := c.unfit(); problem != "" {
			t.Errorf("statetest: order %s: %s", orderName(given), problem)
			return
		}
	}
	got := c.play(t, order)
	if got == nil {
		return
	}
	diff := c.given.diff(got, c.ignore, c.secrets)
	if diff == "" {
		return
	}
	var b strings.Builder
	if slices.Equal(order, given) {
		fmt.Fprintf(&b, "statetest: not deterministic: order %s gave two states (the first -, the second +)\n", orderName(given))
	} else {
		fmt.Fprintf(&b, "statetest: the state depends on which branch goes on first: order %s (want -), order %s (got +)\n",
			orderName(given), orderName(order))
	}
	b.WriteString(indentText(diff, "  ") + "\n")
	if c.shown++; c.shown <= fullOrders {
		b.WriteString(c.journal(given, c.given) + c.journal(order, got))
	}
	t.Errorf("%s  again: %s", b.String(), again(t.Name()))
}

// journal says who wrote what in an order.
func (c *ordersCheck) journal(order []int, of *content) string {
	lines := maskLines(c.secrets, of.journal)
	return fmt.Sprintf("  journal of %s:\n%s\n", orderName(order), indentText(strings.Join(lines, "\n"), "    "))
}

// unfit returns why no other state could differ from that of the given order.
func (c *ordersCheck) unfit() string {
	left := slices.DeleteFunc(slices.Clone(c.given.names), func(name string) bool { return slices.Contains(c.ignore, name) })
	if len(left) == 0 {
		return "the state that run returned holds nothing that is compared: no order could differ from another"
	}
	return ""
}

// play runs the branches in an order and returns the content of the state, or
// nil after a failure.
func (c *ordersCheck) play(t *testing.T, order []int) (got *content) {
	t.Helper()
	o := newOrder(order)
	report := func(problem string) {
		t.Helper()
		t.Errorf("statetest: order %s: %s\n  again: %s", orderName(order), problem, again(t.Name()))
	}
	inBubble(t, func(hang string) {
		t.Helper()
		c.hung = true
		report(fmt.Sprintf("run hangs: %s: %s", o.whereabouts(), hang))
	}, func(t *testing.T) {
		o.start = time.Now()
		defer time.Sleep(2 * orderStep) // branches that still wait can end
		defer o.release()
		st := c.run(t, o)
		synctest.Wait()
		o.end()
		switch {
		case st == nil:
			o.problem("run returned no state")
		case slices.Contains(c.states, st):
			o.problem("run returned the state of another order: it has to make a new one")
		case len(o.problems) == 0:
			got = readContent(st)
		}
		c.states = append(c.states, st)
		c.secrets.add(st)
	})
	if c.hung {
		return nil
	}
	for _, problem := range o.problems {
		report(problem)
	}
	return got
}

// inBubble runs f in a bubble. If f does not end, it calls hangs with the reason
// and leaves the goroutines to themselves: they wait for each other, or one of
// them waits for a mutex or for something that is not in the bubble, so that no
// fake time passes.
func inBubble(t *testing.T, hangs func(reason string), f func(t *testing.T)) {
	t.Helper()
	done := make(chan bool, 1)
	go func() {
		deadlocked := false
		defer func() { done <- deadlocked }() // also after FailNow
		deadlocked = isDeadlocked(t, f)
	}()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	select {
	case deadlocked := <-done:
		if deadlocked {
			hangs("all goroutines wait for each other")
		}
	case <-timer.C:
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		hangs(fmt.Sprintf("time stands still: after %v a goroutine waits for something outside the bubble, or for a lock\n%s", watchdog, stacks))
	}
}

// isDeadlocked runs f in a bubble, and reports whether package synctest found
// that all goroutines in it wait for each other.
func isDeadlocked(t *testing.T, f func(t *testing.T)) (deadlocked bool) {
	t.Helper()
	defer func() {
		reason := recover()
		if err, ok := reason.(error); ok && strings.HasPrefix(err.Error(), "deadlock:") {
			deadlocked = true
		} else if reason != nil {
			panic(reason)
		}
	}()
	synctest.Test(t, f)
	return false
}
