package processes

import (
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
	// lot is the number of messages of a user.
	lot = 12
)

func TestKill(t *testing.T) {
	kills := effort.Runs(8)
	fleets := min(6, kills)
	if underRace() {
		kills, fleets = min(3, kills), 1 // the processes do not see each other's races
	}
	for i := range fleets {
		name, how := fmt.Sprint("sqlite", i), workspace.TakeoverResume
		if i == 5 {
			name, how = "sqlite-restart", workspace.TakeoverRestart
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killing(t, sqlite(t), how, (kills+fleets-1-i)/fleets)
		})
	}
	if !underRace() {
		onServers(t, func(t *testing.T, fresh func() string) { killing(t, fresh(), workspace.TakeoverResume, (kills+9)/10) })
	}
}

// killing kills one of four processes that handle messages, many times. It checks
// that each message takes effect once, that no acknowledged commit is lost, and
// that providers accept each prompt.
func killing(t *testing.T, address string, how workspace.Takeover, kills int) {
	f := newFleet(t, 4, task{Job: "serve", Address: address, TTL: killTTL, Takeover: how})
	var over atomic.Bool
	var messages atomic.Int64
	var times []time.Duration
	hits := 0 // kills in the middle of a run
	killer := func() error {
		defer over.Store(true)
		for tries := 0; hits < kills; tries++ {
			if tries > 3*kills+10 {
				return fmt.Errorf("the test proves too little: %d kills have hit a run %d times", tries, hits)
			}
			t, err := f.kill()
			if err != nil {
				return err
			}
			hits += min(len(t), 1)
			times = append(times, t...)
		}
		return nil
	}
	sender := func(name string) func() error {
		return func() error {
			for n := 0; n == 0 || !over.Load(); n++ {
				user := fmt.Sprintf("%s %d", name, n)
				if err := f.lot(user); err != nil {
					return err
				}
				messages.Add(lot)
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

// lot sends the messages of a user, each after the one before was accepted, and
// checks their effects.
func (f *fleet) lot(user string) error {
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
			if err := f.send(user, message); err != nil {
				return err
			}
		}
	}
	v, err := f.drained(user)
	if err != nil {
		return err
	}
	if err := acceptable(state.Messages.Or(v.State(), nil)); err != nil {
		return fmt.Errorf("user %s: in the end %w", user, err)
	}
	tokens := log.Or(v.State(), nil)
	got := make([]string, len(tokens))
	there := make(map[string]bool, len(tokens))
	for i, token := range tokens {
		got[i], there[token] = stepOf(token), true
	}
	if !slices.Equal(want, got) {
		return fmt.Errorf("user %s: the steps are %v", user, got)
	}
	last, ok := v.Memory().Get("last")
	if want := fmt.Sprint("m", lot-1); !ok || last.Value != want || len(v.DeadLetters) > 0 {
		return fmt.Errorf("user %s: the last message is %q, not %q; %d are dead", user, last.Value, want, len(v.DeadLetters))
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
