package statetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/internal/kit"
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
	given   *ordersEnd     // of the given order
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
	diff := c.secrets.diff(c.given.content, got.content)
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
	b.WriteString(indented(diff) + "\n")
	if c.shown++; c.shown <= fullOrders {
		b.WriteString(c.journal(given, c.given) + c.journal(order, got))
	}
	t.Errorf("%s  again: %s", b.String(), kit.Again(t.Name()))
}

// journal says who wrote what in an order.
func (c *ordersCheck) journal(order []int, end *ordersEnd) string {
	lines := c.secrets.Mask(strings.Join(end.journal, "\n"))
	return fmt.Sprintf("  journal of %s:\n%s\n", orderName(order), indented(lines))
}

// ordersEnd is what a run has left: what is compared, and who wrote it.
type ordersEnd struct {
	content map[string]any
	journal []string
}

func (c *ordersCheck) endOf(st *state.State) *ordersEnd {
	content := contentOf(st, c.secrets)
	for _, name := range c.ignore {
		delete(content, name)
	}
	return &ordersEnd{content, Journal(st, 0)}
}

// unfit returns why no other state could differ from that of the given order.
func (c *ordersCheck) unfit() string {
	if len(c.given.content) == 0 {
		return "the state that run returned holds nothing that is compared: no order could differ from another"
	}
	return ""
}

// play runs the branches in an order and returns the content of the state, or
// nil after a failure.
func (c *ordersCheck) play(t *testing.T, order []int) (got *ordersEnd) {
	t.Helper()
	o := newOrder(order)
	report := func(problem string) {
		t.Helper()
		t.Errorf("statetest: order %s: %s\n  again: %s", orderName(order), problem, kit.Again(t.Name()))
	}
	problem, _ := kit.InBubble(t, func(t *testing.T) {
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
			got = c.endOf(st)
		}
		c.states = append(c.states, st)
		c.secrets.Add(st)
	})
	if problem != "" {
		c.hung = true
		report(fmt.Sprintf("run hangs: %s: %s", o.whereabouts(), problem))
		return nil
	}
	for _, problem := range o.problems {
		report(problem)
	}
	return got
}
