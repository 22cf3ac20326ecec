package processes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// fleet is a group of processes that share a data set, as their parent sees them.
type fleet struct {
	ctx  context.Context
	fail context.CancelCauseFunc
	task task
	m    *workspace.Manager // only reads
	db   store.Store        // that of m

	mu    sync.Mutex
	slots []*process
	holds map[*process]map[lease]bool // the runs that they have reported
	users map[string]*heard
}

// lease is an attempt of a run, which one process holds.
type lease struct {
	user, message string
	attempt       int
}

// heard collects the reports about a user's workspace.
type heard struct {
	accepted map[string]bool // messages whose run has begun
	tokens   []string        // acknowledged
	refused  []reply         // the last commits of holders
	attempt  int             // the last one that has begun
	there    map[string]bool // the tokens at the end, nil before
}

// newFleet starts processes that end with the test.
func newFleet(t *testing.T, processes int, job task) *fleet {
	t.Helper()
	f := &fleet{task: job, slots: make([]*process, processes), holds: map[*process]map[lease]bool{}, users: map[string]*heard{}}
	f.ctx, f.fail = context.WithCancelCause(t.Context())
	var err error
	f.db = open(t, job.Address)
	if f.m, err = workspace.Open(f.ctx, f.db, &workspace.Options{Schema: schema, TTL: job.TTL}); err != nil {
		t.Fatal(err)
	}
	for i := range f.slots {
		if err := f.fill(i); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		f.fail(nil)
		for _, p := range f.slots {
			p.Kill()
			<-p.Done()
		}
		_ = f.m.Close()
	})
	return f
}

// fill starts a process in a slot.
func (f *fleet) fill(slot int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := start(f.ctx, f.task, f.hear)
	if err == nil {
		f.slots[slot] = p
		f.holds[p] = map[lease]bool{}
	}
	return err
}

// hear notes a report of a process.
func (f *fleet) hear(p *process, r reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := lease{r.User, r.Message, r.Attempt}
	switch u := f.user(r.User); r.Event {
	case began:
		f.holds[p][of] = true
		u.accepted[r.Message] = true
		u.attempt = max(u.attempt, r.Attempt)
	case committed:
		u.tokens = append(u.tokens, r.Token)
		f.check(r.User, r.Token)
	case completed:
		if r.Token != "" {
			u.tokens = append(u.tokens, r.Token)
			f.check(r.User, r.Token)
		}
		delete(f.holds[p], of)
	case lost:
		u.refused = append(u.refused, r)
		delete(f.holds[p], of)
	case wrong:
		f.fail(fmt.Errorf("user %s, message %s, attempt %d: %s", r.User, r.Message, r.Attempt, r.Problem))
	}
}

// check checks that an acknowledged token is there at the end. Before the end it
// does nothing.
func (f *fleet) check(user, token string) {
	u := f.user(user)
	if u.there == nil || u.there[token] {
		return
	}
	// A run that is begun again loses its commits, but not its end.
	if (f.task.Takeover == workspace.TakeoverRestart || f.task.Updates) && !strings.HasSuffix(stepOf(token), stepName("", steps-1)) {
		return
	}
	f.fail(fmt.Errorf("user %s: the commit of %s was acknowledged, and is lost", user, token))
}

func (f *fleet) user(name string) *heard {
	u := f.users[name]
	if u == nil {
		u = &heard{accepted: map[string]bool{}}
		f.users[name] = u
	}
	return u
}

// any returns a process.
func (f *fleet) any() (*process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.slots[rand.IntN(len(f.slots))]
	if err := p.Problem(); err != nil {
		f.fail(err)
	}
	return p, context.Cause(f.ctx)
}

// victim returns a process that holds a run.
func (f *fleet) victim() (int, error) {
	for {
		f.mu.Lock()
		var busy []int
		for i, p := range f.slots {
			if len(f.holds[p]) > 0 {
				busy = append(busy, i)
			}
		}
		f.mu.Unlock()
		if len(busy) > 0 {
			return busy[rand.IntN(len(busy))], nil
		}
		if err := f.pause(10 * time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// pause waits for a random time.
func (f *fleet) pause(most time.Duration) error { return nap(f.ctx, most) }

// patience ends a test that hangs. It does not require any speed of the machine.
const patience = 3 * time.Minute

// kill kills a process, starts another and waits until other processes have taken
// over its runs. It returns the time that each takeover took.
func (f *fleet) kill() ([]time.Duration, error) {
	i, err := f.victim()
	if err != nil {
		return nil, err
	}
	if err := f.pause(10 * time.Millisecond); err != nil {
		return nil, err
	}
	victim := f.slots[i]
	victim.Kill()
	killed := time.Now()
	<-victim.Done()
	if err := f.fill(i); err != nil {
		return nil, err
	}
	f.mu.Lock()
	held := f.holds[victim] // complete: the process is dead
	delete(f.holds, victim)
	f.mu.Unlock()
	var times []time.Duration
	for of := range held {
		for looks := 0; ; looks++ {
			v, err := f.m.View(f.ctx, of.user)
			if err != nil {
				return nil, err
			}
			if v.Run == nil || v.Run.Message.ID != of.message || v.Run.Attempt != of.attempt {
				if looks > 0 { // otherwise it had ended before
					times = append(times, time.Since(killed))
				}
				break
			}
			// Others look twice in a TTL, and take over 1.5 × TTL after the last renewal.
			if late := time.Since(killed) - 2*f.task.TTL; late > patience {
				return nil, fmt.Errorf("user %s: the run of message %s was not taken over within %s of the kill",
					of.user, of.message, time.Since(killed))
			}
			if err := f.pause(30 * time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// killMany is kill until as many kills have been in the middle of a run. It also returns
// how many have been.
func (f *fleet) killMany(kills int) (hits int, times []time.Duration, err error) {
	for tries := 0; hits < kills; tries++ {
		if tries > 3*kills+10 {
			return hits, times, fmt.Errorf("the test proves too little: %d kills have hit a run %d times", tries, hits)
		}
		t, err := f.kill()
		if err != nil {
			return hits, times, err
		}
		hits, times = hits+min(len(t), 1), append(times, t...)
	}
	return hits, times, nil
}

// send sends a message to the processes until one has accepted it, as a client does
// that does not know the outcome of its last try.
func (f *fleet) send(user, message string) error {
	for {
		p, err := f.any()
		if err != nil {
			return err
		}
		answers := make(chan reply, 1)
		go func() {
			r, _ := p.Ask(request{User: user, Message: message})
			answers <- r
		}()
		for asked := true; asked; {
			select {
			case r := <-answers:
				switch r.Fate {
				case made:
					switch s := r.Status; s {
					case workspace.StatusDone, workspace.StatusStarted, workspace.StatusQueued, workspace.StatusDuplicate:
					default:
						return fmt.Errorf("user %s: message %s is %s", user, message, s)
					}
					return nil
				case failed:
					return fmt.Errorf("user %s: message %s: %s", user, message, r.Problem)
				}
				asked = false
			case <-time.After(2 * time.Millisecond):
				f.mu.Lock()
				accepted := f.user(user).accepted[message]
				f.mu.Unlock()
				if accepted {
					return nil
				}
			}
		}
		if err := f.pause(20 * time.Millisecond); err != nil {
			return err
		}
	}
}

// drained waits until no message of the user waits, and returns the view.
func (f *fleet) drained(user string) (*workspace.View, error) {
	for began := time.Now(); ; {
		v, err := f.m.View(f.ctx, user)
		if err != nil {
			return nil, err
		}
		if v.Run == nil && len(v.Queue) == 0 {
			return v, nil
		}
		if time.Since(began) > patience {
			return nil, fmt.Errorf("user %s: message %s is not handled, in attempt %d, and %d wait",
				user, v.Run.Message.ID, v.Run.Attempt, len(v.Queue))
		}
		if err := f.pause(50 * time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// together runs functions concurrently and waits for them. The first error cancels
// the others.
func (f *fleet) together(fns ...func() error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(fns))
	for i, fn := range fns {
		wg.Go(func() {
			if errs[i] = fn(); errs[i] != nil {
				f.fail(errs[i])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return context.Cause(f.ctx)
}
