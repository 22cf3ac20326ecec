package crash

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state/store"
)

// kind is what a process does at a point.
type kind string

const (
	kindRead   kind = "read"
	kindWrite  kind = "write"
	kindModel  kind = "model"
	kindEffect kind = "effect"
)

// place is where a process meets the world. Points of one name are numbered in
// the order in which they are reached, across the processes of a case.
type place struct {
	kind kind
	name string
}

// point is a place with its number, such as write_3.
type point struct {
	place
	number int
}

func (p point) String() string { return p.name + "_" + strconv.Itoa(p.number) }

// pointName returns a name as it is in points, which are names of subtests.
func pointName(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name), "_")
}

// fault is what happens at a point.
type fault string

const (
	noFault     fault = ""
	crashBefore fault = "crash_before" // the process dies before it is sent
	crashAfter  fault = "crash_after"  // the process dies when it is made, before the answer
	lost        fault = "lost"         // it is made, and the answer is lost
	dropped     fault = "dropped"      // it is not made, and the caller cannot know
	unavailable fault = "unavailable"  // it fails with nothing made
	stall       fault = "stall"        // the process stands still for a while
)

// faultsOf returns the faults that can happen where a process does something.
func faultsOf(k kind) []fault {
	switch k {
	case kindModel:
		return []fault{crashBefore, crashAfter, lost, dropped, stall}
	case kindRead:
		return []fault{unavailable, stall}
	}
	return []fault{crashBefore, crashAfter, lost, dropped, unavailable, stall}
}

// lives reports whether the process lives and holds its runs after a fault.
func (f fault) lives() bool { return f == lost || f == dropped || f == unavailable }

// planned is a fault at a point.
type planned struct {
	point point
	fault fault
}

func (p planned) String() string { return p.point.String() + "." + string(p.fault) }

// pass lets a process do something outside of itself, with the fault that is
// planned for the point.
func pass[T any](ctx context.Context, p *Process, at place, do func(at point) (T, error)) (T, error) {
	var none T
	pt, f, err := p.arrive(ctx, at)
	if err != nil {
		return none, err
	}
	switch f {
	case crashBefore:
		p.die(pt, "not sent, "+p.name+" dies")
		return none, at.kind.wrap(errDead)
	case unavailable:
		p.w.note(p, pt, "unavailable")
		return none, errUnavailable
	case dropped:
		p.w.note(p, pt, "not made, and the connection breaks")
		return none, at.kind.unknown()
	case stall:
		sent, end := p.stall(pt)
		select {
		case <-end:
		case <-ctx.Done():
			if at.kind == kindRead {
				return none, ctx.Err()
			}
			// The caller gives up. What it has sent still arrives.
			go func() {
				<-sent
				_, _ = do(pt)
			}()
			return none, at.kind.unknown()
		}
	}
	v, err := do(pt)
	switch {
	case f == crashAfter:
		p.die(pt, p.name+" dies")
		return none, at.kind.wrap(errDead)
	case p.isDead():
		return none, at.kind.wrap(errDead)
	case f == lost && err == nil:
		p.w.note(p, pt, "the answer is lost")
		return none, at.kind.unknown()
	}
	return v, err
}

// unknown is the error of a call that may have been made.
func (k kind) unknown() error {
	if k == kindRead || k == kindWrite {
		return store.ErrUnknownOutcome
	}
	return errBroken
}

// wrap returns an error after which nobody tries again.
func (k kind) wrap(err error) error {
	if k == kindRead || k == kindWrite {
		return fmt.Errorf("%w: %w", store.ErrClosed, err)
	}
	return err
}

// arrive waits until the process may go on, counts the point, and returns the
// fault that happens there.
func (p *Process) arrive(ctx context.Context, at place) (point, fault, error) {
	w := p.w
	for {
		if err := ctx.Err(); err != nil {
			return point{}, noFault, err
		}
		w.mu.Lock()
		if p.dead {
			w.mu.Unlock()
			return point{}, noFault, at.kind.wrap(errDead)
		}
		standing := p.standing
		if standing == nil {
			break
		}
		w.mu.Unlock()
		select {
		case <-standing:
		case <-ctx.Done():
		}
	}
	defer w.mu.Unlock()
	if !w.counting {
		return point{at, 0}, noFault, nil
	}
	w.numbers[at.name]++
	pt := point{at, w.numbers[at.name]}
	w.reached = append(w.reached, pt)
	if len(w.plan) == 0 || w.plan[0].point != pt {
		return pt, noFault, nil
	}
	f := w.plan[0].fault
	w.plan = w.plan[1:]
	w.met = append(w.met, len(w.reached))
	if f.lives() {
		w.excuses++
	}
	return pt, f, nil
}

func (p *Process) isDead() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.dead
}

// die ends the process. Its code unwinds unseen.
func (p *Process) die(at point, what string) {
	p.w.note(p, at, what)
	p.kill()
}

func (p *Process) kill() {
	p.w.mu.Lock()
	p.dead = true
	p.halt()
	p.w.mu.Unlock()
	p.end(errDead)
}

// halt tells the driver that the process does not go on. The caller holds mu.
func (p *Process) halt() {
	if !p.isHalted() {
		close(p.halted)
	}
}

func (p *Process) isHalted() bool {
	select {
	case <-p.halted:
		return true
	default:
		return false
	}
}

// stallTime is how long a process stands still, in TTLs.
const stallTime = 4

// stall lets the process stand still. It returns channels that are closed when
// what it has sent arrives, and when it goes on.
func (p *Process) stall(at point) (sent, end <-chan struct{}) {
	p.w.note(p, at, "stands still")
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	arrives, goesOn := make(chan struct{}), make(chan struct{})
	p.standing = goesOn
	p.halt()
	time.AfterFunc(stallTime*p.w.ttl, func() {
		close(arrives)
		time.Sleep(time.Nanosecond) // what arrives is done before the process does anything
		p.w.mu.Lock()
		p.standing = nil
		p.w.mu.Unlock()
		p.w.note(p, point{}, "goes on")
		close(goesOn)
	})
	return arrives, goesOn
}
