package statetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// orderStep is the fake time between two turns. What a branch does in its
	// turn without sleeping longer is done before the next branch goes on.
	orderStep = 100 * time.Millisecond
	// orderPatience is the number of steps for which the others wait for a branch
	// that has not come to its first turn.
	orderPatience = 6000
	// allOrders is the largest number of branches of which every order is run.
	allOrders = 5
	// maxOrders is the number of orders of more branches.
	maxOrders = 120
)

// Order is one order in which the branches of a run go on. See [Orders].
type Order struct {
	branches []int // in the order of their turns
	start    time.Time

	mu       sync.Mutex
	ready    []int  // by branch: the tick from which on it may go, 0 if it does not wait
	came     []bool // by branch: it has called Wait
	had      []int  // by branch: the turns that it has had
	turn     int    // the turns that were given or passed over
	tick     int    // the last tick for which it was decided who goes
	going    int    // the branch that goes at that tick, or -1
	last     int    // the tick of the last turn
	free     bool   // nobody waits any more
	problems []string
}

func newOrder(branches []int) *Order {
	n := len(branches)
	return &Order{
		branches: branches, going: -1,
		ready: make([]int, n), came: make([]bool, n), had: make([]int, n),
	}
}

// Wait is where a branch, numbered from 0, waits for its turn. The others go on
// in steps of fake time. If it is called again, turns go round: a branch that is
// not there for another turn is passed over. It is safe for concurrent use.
func (o *Order) Wait(branch int) {
	if !o.arrive(branch) {
		return
	}
	for {
		now := time.Since(o.start)
		tick := int(now/orderStep) + 1
		time.Sleep(time.Duration(tick)*orderStep - now)
		if o.mayGo(branch, tick) {
			return
		}
	}
}

// arrive notes that a branch waits, and reports whether it has to.
func (o *Order) arrive(branch int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case branch < 0 || branch >= len(o.branches):
		o.problem("Wait(%d): the branches are 0 to %d", branch, len(o.branches)-1)
		return false
	case o.free:
		o.came[branch] = true
		return false
	case o.ready[branch] != 0:
		o.problem("Wait(%d) is called while branch %d waits: two branches have this number", branch, branch)
		return false
	}
	o.came[branch] = true
	// At a tick, timers of the program fire beside those of Wait. A branch that
	// comes then waits for the next tick, whichever was first.
	o.ready[branch] = int(time.Since(o.start)/orderStep) + 1
	return true
}

// mayGo reports whether it is the turn of a branch that waits.
func (o *Order) mayGo(branch, tick int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tick < tick && !o.free {
		o.tick = tick
		o.decide()
	}
	if o.free || o.going == branch {
		o.ready[branch] = 0
		return true
	}
	return false
}

// decide gives the turn of the present tick.
func (o *Order) decide() {
	o.going = -1
	for range o.branches {
		next := o.next()
		switch {
		case o.ready[next] != 0 && o.ready[next] <= o.tick:
			o.going, o.last = next, o.tick
			o.had[next]++
			o.turn++
			return
		case o.had[next] == 0:
			if o.tick-o.last > orderPatience {
				o.free = true
				o.problem("branch %d was waited for, and did not come while %s waited: the branches do not run at the same time",
					next, o.waiting())
			}
			return
		}
		o.turn++
	}
}

// next returns the branch whose turn it is.
func (o *Order) next() int { return o.branches[o.turn%len(o.branches)] }

// end is called when the run has returned and all other goroutines are blocked.
func (o *Order) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if waiting := o.waiting(); waiting != "" && !o.free {
		o.problem("run returned while %s waited: it has to wait for its branches", waiting)
	}
	for branch, came := range o.came {
		if !came {
			o.problem("branch %d never called Wait", branch)
		}
	}
}

// release lets all branches go on.
func (o *Order) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.free = true
}

// waiting names the branches that wait.
func (o *Order) waiting() string {
	var names []string
	for branch, ready := range o.ready {
		if ready != 0 {
			names = append(names, "branch "+strconv.Itoa(branch))
		}
	}
	return strings.Join(names, " and ")
}

// problem notes a misuse. The lock is held.
func (o *Order) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(o.problems, text) {
		o.problems = append(o.problems, text)
	}
}

func orderName(order []int) string {
	var names []string
	for _, branch := range order {
		names = append(names, strconv.Itoa(branch))
	}
	return strings.Join(names, "_")
}

// ordersOf returns the orders of n branches to run: the given one first and the
// reverse one second, then the others.
func ordersOf(n int) [][]int {
	given := make([]int, n)
	for i := range given {
		given[i] = i
	}
	reverse := slices.Clone(given)
	slices.Reverse(reverse)
	orders := [][]int{given, reverse}
	want := maxOrders
	if n <= allOrders {
		want = 1
		for i := range n {
			want *= i + 1
		}
	}
	random := rand.New(rand.NewPCG(1, uint64(n)))
	seen := map[string]bool{orderName(given): true, orderName(reverse): true}
	for len(orders) < want {
		order := random.Perm(n)
		if name := orderName(order); !seen[name] {
			seen[name] = true
			orders = append(orders, order)
		}
	}
	return orders
}
