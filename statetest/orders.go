package statetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
// reads is compared: fields, messages and history without times. A branch that
// never waits is a failure, and so is a run in which branches cannot wait at the
// same time. Orders sees only where branches wait.
func Orders(t *testing.T, branches int, run func(t *testing.T, o *Order) *state.State) {
	t.Helper()
	if run == nil {
		t.Fatal("statetest: Orders: no function")
	}
	if branches < 2 {
		t.Errorf("statetest: Orders of %d: fewer than 2 branches have one order, which could not differ from another",
			branches)
		return
	}
	orders := ordersOf(branches)
	c := &ordersCheck{run: run, order: orders[0], secrets: kit.NewSecrets()}
	var failed []string
	for _, order := range orders {
		name := orderName(order)
		if !t.Run(name, func(t *testing.T) { t.Helper(); c.check(t, order) }) {
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
	order   []int // the given one
	given   *ordersEnd
	secrets *kit.Secrets
	states  []*state.State // that run has returned
	hung    bool           // a run has not ended
	shown   bool           // a failure has shown the journals
}

// ordersEnd is what a run has left: what is compared, and who wrote it.
type ordersEnd struct {
	content map[string]any
	journal []string
}

func (c *ordersCheck) check(t *testing.T, order []int) {
	t.Helper()
	if c.given == nil {
		if c.given = c.play(t, c.order); c.given == nil {
			return
		}
	}
	if len(c.given.content) == 0 {
		t.Errorf("statetest: order %s: the state that run returned holds nothing that is compared: no order could differ from another",
			orderName(c.order))
		return
	}
	got := c.play(t, order)
	if got == nil {
		return
	}
	diff := secretDiff(c.secrets, c.given.content, got.content)
	if diff == "" {
		return
	}
	text := fmt.Sprintf("the state depends on which branch goes on first: order %s (want -), order %s (got +)",
		orderName(c.order), orderName(order))
	if slices.Equal(order, c.order) {
		text = fmt.Sprintf("not deterministic: order %s gave two states (the first -, the second +)", orderName(order))
	}
	text += "\n" + indented(diff) + "\n"
	if !c.shown {
		text += c.journal(c.order, c.given) + c.journal(order, got)
		c.shown = true
	}
	t.Errorf("statetest: %s  %s", text, rerun(t))
}

// journal says who wrote what in an order.
func (c *ordersCheck) journal(order []int, end *ordersEnd) string {
	lines := c.secrets.Mask(strings.Join(end.journal, "\n"))
	return fmt.Sprintf("  journal of %s:\n%s\n", orderName(order), indented(lines))
}

// play runs the branches in an order and returns what is left, or nil after a
// failure.
func (c *ordersCheck) play(t *testing.T, order []int) (got *ordersEnd) {
	t.Helper()
	if c.hung {
		t.Errorf("statetest: order %s is not run, because another one hangs", orderName(order))
		return nil
	}
	var o *Order
	problem, _ := kit.InBubble(t, func(t *testing.T) {
		o = newOrder(order)
		var drive sync.WaitGroup
		drive.Go(o.drive)
		defer drive.Wait()
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
			got = &ordersEnd{contentOf(st, c.secrets), Journal(st, 0)}
		}
		c.states = append(c.states, st)
	})
	if problem != "" {
		c.hung = true
		o.mu.Lock()
		defer o.mu.Unlock()
		o.problems, got = nil, nil
		o.problem("run hangs: it is the turn of branch %d: %s", o.next(), problem)
	}
	for _, problem := range o.problems {
		t.Errorf("statetest: order %s: %s\n  %s", orderName(order), problem, rerun(t))
	}
	return got
}
