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
	// allOrders is the largest number of branches of which every order is run. Of
	// more branches, as many orders are.
	allOrders = 5
)

// Order is one order in which the branches of a run go on. See [Orders].
type Order struct {
	branches []int         // in the order of their turns
	arrived  chan struct{} // wakes drive; closed when the run has ended

	mu       sync.Mutex
	waiting  []chan struct{} // by branch: closed when it may go on, nil if it does not wait
	had      []int           // by branch: the turns that it has had
	turn     int             // the turns that were given or passed over
	idle     int             // the steps since the last turn
	free     bool            // nobody waits any more
	problems []string
}

func newOrder(branches []int) *Order {
	n := len(branches)
	return &Order{
		branches: branches, arrived: make(chan struct{}, 1), waiting: make([]chan struct{}, n), had: make([]int, n),
	}
}

// Wait is where a branch, numbered from 0, waits for its turn. The others go on
// in steps of fake time. If it is called again, turns go round: a branch that is
// not there for another turn is passed over. It is safe for concurrent use.
func (o *Order) Wait(branch int) {
	if goOn := o.arrive(branch); goOn != nil {
		<-goOn
	}
}

// arrive notes that a branch waits, and returns for what, or nil.
func (o *Order) arrive(branch int) (goOn <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case branch < 0 || branch >= len(o.branches):
		o.problem("Wait(%d): the branches are 0 to %d", branch, len(o.branches)-1)
		return nil
	case o.waiting[branch] != nil:
		o.problem("Wait(%d) is called while branch %d waits: two branches have this number", branch, branch)
		return nil
	case o.free:
		o.had[branch]++
		return nil
	}
	o.waiting[branch] = make(chan struct{})
	select {
	case o.arrived <- struct{}{}:
	default:
	}
	return o.waiting[branch]
}

// drive gives turns until the run has ended. It does not sleep while nobody
// waits, so that synctest sees when all branches wait for each other.
func (o *Order) drive() {
	for range o.arrived {
		for o.step() {
		}
	}
}

// step gives a turn, and reports whether a branch had been waiting.
func (o *Order) step() bool {
	time.Sleep(orderStep)
	time.Sleep(time.Nanosecond) // what happens at the same time is done first
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.names() == "" {
		return false
	}
	for range o.branches {
		next := o.next()
		switch {
		case o.waiting[next] != nil:
			close(o.waiting[next])
			o.waiting[next], o.idle = nil, 0
			o.had[next]++
			o.turn++
			return true
		case o.had[next] == 0:
			if o.idle++; o.idle > orderPatience {
				o.problem("branch %d was waited for, and did not come while %s waited: the branches do not run at the same time",
					next, o.names())
				o.letGo()
			}
			return true
		}
		o.turn++
	}
	return true
}

// next returns the branch whose turn it is.
func (o *Order) next() int { return o.branches[o.turn%len(o.branches)] }

// end is called when the run has returned and all other goroutines are blocked.
func (o *Order) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if waiting := o.names(); waiting != "" {
		o.problem("run returned while %s waited: it has to wait for its branches", waiting)
	}
	for branch, had := range o.had {
		if had == 0 && o.waiting[branch] == nil {
			o.problem("branch %d never called Wait", branch)
		}
	}
}

// release lets all branches go on, and ends drive.
func (o *Order) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.letGo()
	close(o.arrived)
}

// letGo lets all branches go on. The caller holds mu.
func (o *Order) letGo() {
	o.free = true
	for branch, goOn := range o.waiting {
		if goOn != nil {
			close(goOn)
			o.waiting[branch] = nil
			o.had[branch]++
		}
	}
}

// names returns the branches that wait. The caller holds mu.
func (o *Order) names() string {
	var names []string
	for branch, goOn := range o.waiting {
		if goOn != nil {
			names = append(names, "branch "+strconv.Itoa(branch))
		}
	}
	return strings.Join(names, " and ")
}

// problem notes a misuse. The caller holds mu.
func (o *Order) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(o.problems, text) {
		o.problems = append(o.problems, text)
	}
}

func orderName(order []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(order), " ", "_"), "[]")
}

// ordersOf returns the orders of n branches to run: the given one first and the
// reverse one second, then the others.
func ordersOf(n int) [][]int {
	given := make([]int, n)
	want := 1
	for i := range given {
		given[i] = i
		if i < allOrders {
			want *= i + 1
		}
	}
	reverse := slices.Clone(given)
	slices.Reverse(reverse)
	orders := [][]int{given, reverse}
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
