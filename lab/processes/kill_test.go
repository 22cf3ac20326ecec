package processes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/workspace"
)

const (
	killTTL = 400 * time.Millisecond
	// lot is the number of messages of a thread.
	lot = 12
)

func TestKill(t *testing.T) {
	kills := effort.Runs(8)
	fleets := min(6, kills)
	if underRace() {
		kills, fleets = min(3, kills), 1 // the processes do not see each other's races
	}
	for i := range fleets {
		name, job := fmt.Sprint("sqlite", i), task{}
		switch i {
		case 4:
			name, job = "sqlite-updates", task{Updates: true}
		case 5:
			name, job = "sqlite-restart", task{Updates: true, Takeover: workspace.TakeoverRestart}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job.Address = sqlite(t)
			killing(t, job, (kills+fleets-1-i)/fleets)
		})
	}
	if !underRace() {
		onServers(t, func(t *testing.T, fresh func() string) { killing(t, task{Address: fresh()}, (kills+9)/10) })
	}
}

// killing kills one of four processes that handle messages, many times. It checks
// that each message takes effect once, also on what the threads of its user share
// and on a service outside that drops the keys of calls that come again, that no acknowledged commit is lost, and that providers accept each prompt.
func killing(t *testing.T, job task, kills int) {
	job.Job, job.TTL = "serve", killTTL
	f := newFleet(t, 4, job)
	var over atomic.Bool
	var messages atomic.Int64
	var times []time.Duration
	hits := 0
	killer := func() (err error) {
		defer over.Store(true)
		hits, times, err = f.killMany(kills)
		return err
	}
	sender := func(name string) func() error {
		return func() error {
			for n := 0; n == 0 || !over.Load(); n++ {
				user := fmt.Sprintf("%s %d", name, n)
				if err := f.lot(user); err != nil {
					return err
				}
				messages.Add(2 * lot)
			}
			return nil
		}
	}
	began := time.Now()
	if err := f.together(killer, sender("ann"), sender("bob")); err != nil {
		t.Fatal(err)
	}
	slices.Sort(times)
	t.Logf("%d kills in %s have hit %d runs, which were taken over after %s (half of them) to %s; %d messages",
		hits, time.Since(began).Round(time.Second), len(times),
		times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond), messages.Load())
}

// lot sends messages to two threads of a user at once, and checks their effects.
func (f *fleet) lot(user string) error {
	err := f.together(
		func() error { return f.talk(workspace.Thread(user, "1")) },
		func() error { return f.talk(workspace.Thread(user, "2")) },
	)
	if err != nil {
		return err
	}
	part := workspace.Shared(user)
	v, err := f.m.View(f.ctx, part)
	if err != nil {
		return err
	}
	visits := 2 * lot
	if f.task.Updates {
		visits *= steps
	}
	got := []int{sharedSpent.GetOr(v.State(), 0), len(sharedTopics.GetOr(v.State(), nil)), sharedVisits.GetOr(v.State(), 0)}
	if want := []int{2 * lot * steps, 2 * lot * steps, visits}; !slices.Equal(want, got) {
		return fmt.Errorf("user %s: what is shared counts %v, want %v", user, got, want)
	}
	_, err = f.m.Verify(f.ctx, part)
	return err
}

// whole returns an error if what is shared has a part of what a message has done:
// all of it is applied when its run is finished.
func (f *fleet) whole(thread string) error {
	user, _ := workspace.SplitThread(thread)
	v, err := f.m.View(f.ctx, workspace.Shared(user))
	if err != nil {
		return err
	}
	for n := range lot {
		message := fmt.Sprint("m", n)
		if made := madeTopics(v.State(), thread, message); made > 0 && made < steps {
			return fmt.Errorf("user %s: of message %s %d steps are shared", thread, message, made)
		}
	}
	return nil
}

// paid returns an error unless each call had its effect outside once, although
// processes have died between the effect and its result. A run that begins anew
// asks the model anew, so that its call is another one.
func (f *fleet) paid(user string) error {
	n := 0
	for _, err := range f.db.List(f.ctx, bank(user), "", false) {
		if err != nil {
			return err
		}
		n++
	}
	if (f.task.Takeover == workspace.TakeoverRestart || f.task.Updates) && n >= lot || n == lot {
		return nil
	}
	return fmt.Errorf("user %s: %d effects for %d calls", user, n, lot)
}

// talk sends the messages of a thread, each after the one before was accepted, and
// checks their effects.
func (f *fleet) talk(user string) error {
	var want []string
	for n := range lot {
		message := fmt.Sprint("m", n)
		for step := range steps {
			want = append(want, stepName(message, step))
		}
		if err := f.pause(60 * time.Millisecond); err != nil {
			return err
		}
		// Sometimes twice, as a client does that missed the answer.
		for again := true; again; again = rand.IntN(4) == 0 {
			if err := errors.Join(f.send(user, message), f.whole(user)); err != nil {
				return err
			}
		}
	}
	v, err := f.drained(user)
	if err != nil {
		return err
	}
	if err := acceptable(state.Messages.GetOr(v.State(), nil)); err != nil {
		return fmt.Errorf("user %s: in the end %w", user, err)
	}
	tokens := log.GetOr(v.State(), nil)
	got := make([]string, len(tokens))
	there := make(map[string]bool, len(tokens))
	for i, token := range tokens {
		got[i], there[token] = stepOf(token), true
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("user %s: the steps are %v", user, got)
	}
	last, ok := v.Memory().Get(user)
	if want := fmt.Sprint("m", lot-1); !ok || last.Value != want || len(v.DeadLetters) > 0 {
		return fmt.Errorf("user %s: the last message is %q, not %q; %d are dead", user, last.Value, want, len(v.DeadLetters))
	}
	if err := f.paid(user); err != nil {
		return err
	}
	f.mu.Lock()
	u := f.user(user)
	u.there = there
	for _, token := range u.tokens {
		f.check(user, token)
	}
	f.mu.Unlock()
	_, err = f.m.Verify(f.ctx, user)
	return err
}
