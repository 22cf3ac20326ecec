//go:build unix

package processes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

const stopTTL = 400 * time.Millisecond

func TestStop(t *testing.T) {
	stops := effort.Runs(2)
	const pairs = 4
	for i := range min(pairs, stops) {
		t.Run(fmt.Sprint("sqlite", i), func(t *testing.T) {
			t.Parallel()
			stopping(t, sqlite(t), (stops+pairs-1-i)/pairs)
		})
	}
	onServers(t, func(t *testing.T, fresh func() string) { stopping(t, fresh(), (stops+9)/10) })
}

// hold is the job of a worker that keeps a run and commits until a commit fails or
// the parent ends it.
func hold(t task) error {
	a, err := newAgent(t, (*agent).keep)
	if err != nil {
		return err
	}
	return worker.Serve(func(q request) reply {
		if q.Op != "" {
			a.enough.Store(q.Op == "enough")
			return reply{}
		}
		return a.answer(q)
	})
}

func (a *agent) keep(ctx context.Context, r *workspace.Run) error {
	for {
		token := newToken(r.Message().ID, r.Attempt())
		if err := errors.Join(log.Set(r.State(), []string{token}), sharedSpent.Set(r.State(), 1)); err != nil {
			return err
		}
		if err := r.Commit(context.WithoutCancel(ctx)); err != nil {
			said := reply{Event: lost, User: r.UserID(), Message: r.Message().ID, Attempt: r.Attempt(), Fate: fateOf(err), Problem: err.Error()}
			if said.Fate == unknown && errors.Is(err, workspace.ErrFenced) { // it was stopped in the middle
				said.Fate = silent
			}
			say(said)
			return nil // to no avail: the run cannot be finished either
		}
		say(reply{Event: committed, User: r.UserID(), Message: r.Message().ID, Attempt: r.Attempt(), Token: token})
		if a.enough.Load() {
			return nil
		}
		time.Sleep(rand.N(10 * time.Millisecond))
	}
}

// stopping stops a process that holds a run until another has taken it over, and
// then continues it, many times. None of its later writes may take effect. What its
// commits share with other threads is applied once, when the other process
// finishes the run.
func stopping(t *testing.T, address string, stops int) {
	f := newFleet(t, 2, task{Job: "hold", Address: address, TTL: stopTTL})
	db := open(t, address)
	void, byStore := 0, 0
	for n := 0; n < stops; {
		user := workspace.Thread(fmt.Sprint("user ", n+void), "1")
		err := f.stop(db, user, n%2)
		switch {
		case err == nil:
			n++
			if f.users[user].refused[0].Fate == fenced {
				byStore++
			}
		case !errors.Is(err, errVoid):
			t.Fatal(err)
		default:
			if void++; void > 10+2*stops {
				t.Fatalf("the test proves too little: of %d processes only %d lost their run while they were stopped", n+void, n)
			}
		}
	}
	t.Logf("%d processes were stopped and then refused, %d of them in the middle of a commit; %d more held a lock of the store, or lost their run before",
		stops, byStore, void)
}

// errVoid reports a cycle in which the stop had no effect: the process was stopped
// in the middle of a write, so that no other process could write, or it had lost
// its run before because the machine was slow.
var errVoid = errors.New("nobody could take over")

// stop is one cycle, in which the holder is in a slot.
func (f *fleet) stop(db store.Store, user string, slot int) error {
	holder := f.slots[slot]
	if err := f.tell("more"); err != nil {
		return err
	}
	go holder.Ask(request{User: user, Message: "m"})
	err := f.until(func(u *heard) bool { return len(u.tokens) > 2 || len(u.refused) > 0 }, user, patience)
	if err == nil {
		err = f.pause(30 * time.Millisecond)
	}
	if err == nil {
		err = holder.Signal(syscall.SIGSTOP)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	before := len(f.user(user).refused) > 0
	f.mu.Unlock()
	taken := f.writable(db)
	if taken == nil {
		// Another process takes the run over. If it is too slow, the cycle is void.
		taken = f.until(func(u *heard) bool { return u.attempt > 0 }, user, 4*stopTTL+5*time.Second)
	}
	if err := holder.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if taken == nil {
		if err := f.until(func(u *heard) bool { return len(u.refused) > 0 }, user, patience); err != nil {
			return fmt.Errorf("user %s: a holder that was stopped was not refused: %w", user, err)
		}
	}
	if err := f.shares(user, 0); err != nil { // the run is not finished
		return err
	}
	if err := f.tell("enough"); err != nil {
		return err
	}
	v, err := f.drained(user)
	if err != nil {
		return err
	}
	if err := f.tell("enough"); err != nil { // their answers come after all their reports
		return err
	}
	if taken != nil || before {
		return errVoid
	}
	tokens := log.GetOr(v.State(), nil)
	return errors.Join(f.shares(user, len(tokens)), f.refused(user, tokens))
}

// shares returns an error if the user part of a thread does not have as many
// commits.
func (f *fleet) shares(thread string, commits int) error {
	user, _ := workspace.SplitThread(thread)
	v, err := f.m.View(f.ctx, workspace.Shared(user))
	if err != nil {
		return err
	}
	if n := sharedSpent.GetOr(v.State(), 0); n != commits {
		return fmt.Errorf("user %s: %d commits are shared, want %d", thread, n, commits)
	}
	return nil
}

// tell sends an operation to all processes.
func (f *fleet) tell(op string) error {
	for _, p := range f.slots {
		if _, ok := p.Ask(request{Op: op}); !ok {
			return p.Problem()
		}
	}
	return nil
}

// writable returns an error if the store refuses a write.
func (f *fleet) writable(db store.Store) error {
	ctx, cancel := context.WithTimeout(f.ctx, stopTTL)
	defer cancel()
	_, err := store.Put(ctx, db, "probe", nil, store.Always)
	return err
}

// refused checks that the stored commits are those of the stopped holder, followed
// by those of the other.
func (f *fleet) refused(user string, tokens []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.user(user)
	if r := u.refused[0]; r.Fate != fenced && r.Fate != silent {
		return fmt.Errorf("user %s: a holder that was stopped got for its commit: %s", user, r.Problem)
	}
	for _, token := range u.tokens {
		if !slices.Contains(tokens, token) {
			return fmt.Errorf("user %s: the commit of %s was acknowledged, and is lost", user, token)
		}
	}
	// The name of a step is the number of the attempt. Of each holder, the last
	// commit may have been made without an answer.
	unheard := map[string]int{}
	for _, token := range tokens {
		if !slices.Contains(u.tokens, token) {
			unheard[stepOf(token)]++
		}
	}
	tooMany := slices.ContainsFunc(slices.Collect(maps.Values(unheard)), func(n int) bool { return n > 1 })
	inOrder := slices.IsSortedFunc(tokens, func(a, b string) int { return strings.Compare(stepOf(a), stepOf(b)) })
	if tooMany || !inOrder {
		return fmt.Errorf("user %s: the commits are %q, of which %q were acknowledged", user, tokens, u.tokens)
	}
	return nil
}

// until waits until the reports about a user are as wanted.
func (f *fleet) until(wanted func(u *heard) bool, user string, most time.Duration) error {
	for began := time.Now(); time.Since(began) < most; {
		f.mu.Lock()
		ok := wanted(f.user(user))
		f.mu.Unlock()
		if ok {
			return nil
		}
		if err := f.pause(10 * time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("it takes too long")
}
