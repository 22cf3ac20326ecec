package workspacetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// The two schemas that are deployed in a storm. The new one reads what the old
// one has written. Processes with the old one refuse what the new one has.
var (
	oldAge    = &state.Field[string]{Name: "age"}
	oldMood   = &state.Field[string]{Name: "mood"}
	newAge    = &state.Field[int]{Name: "age", Convert: func(former state.JSON) (int, error) { return strconv.Atoi(string(former[1 : len(former)-1])) }}
	newMood   = &state.Field[string]{Name: "feeling", Was: []string{"mood"}}
	oldStorm  = state.MustSchema(Notes, oldAge, oldMood)
	newStorm  = state.MustSchema(Notes, newAge, newMood)
	errStormy = errors.New("model is down")
)

// Storm sizes a storm.
type Storm struct {
	Length time.Duration // until nothing is sent any more
	TTL    time.Duration
	Users  int
	Real   bool // in real time, where a slow machine counts as an outage
}

// span is a stretch of time.
type span struct{ from, to time.Time }

// spans is a set of stretches of time, for concurrent use.
type spans struct {
	mu   sync.Mutex
	list []span
}

func (s *spans) add(from, to time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, span{from, to})
}

// storm is a Storm that runs.
type storm struct {
	Storm
	db      store.Store // not away
	away    spans
	deaths  spans  // of no length
	ends    spans  // of processes that are closed
	losses  []span // that countLosses has found, until they block nobody any more
	process []*stormProcess

	mu       sync.Mutex
	link     store.Store
	accepted map[string]map[string]time.Time // by user and message
	begun    map[string]map[string]time.Time
	runs     map[string]*spans // of functions, by user
	calls    int
	refused  map[string]int // by error
	outages  spans
}

// stormProcess is a slot for processes, one after the other.
type stormProcess struct {
	mu sync.Mutex
	m  *workspace.Manager // nil between two of them
}

func (p *stormProcess) manager() *workspace.Manager {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m
}

// VirtualStorm runs a storm in virtual time. The store must need no time.
func VirtualStorm(t *testing.T, s Storm, fresh func(t testing.TB) store.Store) {
	defer watch(t)()
	synctest.Test(t, func(t *testing.T) { s.run(t, fresh(t)) })
}

// RealStorm runs a storm in real time.
func RealStorm(t *testing.T, s Storm, fresh func(t testing.TB) store.Store) {
	s.Real = true
	s.run(t, fresh(t))
}

// run lets users send messages to processes that die, are closed and are
// replaced, while the store is away now and then. Every accepted message must end
// once, and nobody may wait for longer than the outages and 1.5 TTL for each death
// of a process.
func (c Storm) run(t *testing.T, db store.Store) {
	link, away := WithOutages(db, true)
	s := &storm{
		Storm: c, db: db, link: link, accepted: map[string]map[string]time.Time{}, begun: map[string]map[string]time.Time{},
		runs: map[string]*spans{}, refused: map[string]int{},
	}
	for i := range c.Users {
		user := fmt.Sprint("user", i)
		s.accepted[user], s.begun[user], s.runs[user] = map[string]time.Time{}, map[string]time.Time{}, &spans{}
	}
	began := time.Now()
	ctx, stop := context.WithCancel(context.Background())
	quiet := make(chan struct{}) // nothing dies any more
	var senders, others sync.WaitGroup
	if c.Real {
		others.Go(func() { s.probe(ctx) })
	}
	for range 4 {
		s.process = append(s.process, &stormProcess{})
	}
	for i, p := range s.process {
		others.Go(func() { s.replace(ctx, t, quiet, p, i == 0) })
	}
	for user := range s.accepted {
		senders.Go(func() { s.send(began.Add(c.Length), user) })
	}
	others.Go(func() {
		for sleepUnless(quiet, rand.N(2*c.TTL)) {
			length := min(3*c.TTL, time.Millisecond+time.Duration(rand.ExpFloat64()*float64(c.TTL)/3))
			from := time.Now()
			away.Store(true)
			time.Sleep(length)
			away.Store(false)
			s.away.add(from, time.Now())
			s.outages.add(from, time.Now())
		}
	})
	senders.Wait()
	close(quiet)
	reader, err := workspace.Open(context.Background(), db, &workspace.Options{Schema: newStorm, TTL: c.TTL})
	require.NoError(t, err)
	for user := range s.accepted {
		for tries := 0; ; tries++ {
			v, err := reader.View(ctx, user)
			if err == nil && v.Run == nil && len(v.Queue) == 0 {
				s.check(t, user, v)
				break
			}
			require.Less(t, tries, 4000, "%s: the run of %+v does not end: %v", user, v, err)
			time.Sleep(c.TTL / 20)
		}
	}
	stop()
	others.Wait()
	require.NoError(t, reader.Close())
	s.report(t, time.Since(began))
}

// sleepUnless sleeps, and returns false if the channel is closed.
func sleepUnless(end <-chan struct{}, d time.Duration) bool {
	select {
	case <-end:
		return false
	case <-time.After(d):
		return true
	}
}

// probe writes to the store. While a write takes long, the store counts as away.
func (s *storm) probe(ctx context.Context) {
	for every := s.TTL / 20; ctx.Err() == nil; time.Sleep(every) {
		from := time.Now()
		_, _ = store.Put(context.Background(), s.db, probeKey+"storm", nil, store.Always)
		if took := time.Since(from); took > every/2 {
			s.away.add(from.Add(-every), from.Add(took+every))
		}
	}
}

// replace starts processes in a slot until ctx ends. The one in the first slot
// has the new schema.
func (s *storm) replace(ctx context.Context, t *testing.T, quiet <-chan struct{}, p *stormProcess, first bool) {
	var ended sync.WaitGroup
	defer ended.Wait()
	for ctx.Err() == nil {
		isNew := first || rand.IntN(2) == 0
		schema := oldStorm
		if isNew {
			schema = newStorm
		}
		link, kill := AsProcess(s.link)
		m, err := workspace.Open(context.Background(), link, &workspace.Options{
			Schema: schema, TTL: s.TTL, Attempts: 3,
			Run: func(ctx context.Context, run *workspace.Run) error { return s.handle(ctx, run, isNew) },
		})
		if err != nil {
			t.Error(err)
			return
		}
		p.mu.Lock()
		p.m = m
		p.mu.Unlock()
		select {
		case <-quiet:
			<-ctx.Done()
		case <-time.After(rand.N(10 * s.TTL)):
		}
		p.mu.Lock()
		p.m = nil
		p.mu.Unlock()
		began := time.Now()
		switch {
		case ctx.Err() != nil:
			_ = m.Close()
		case rand.IntN(3) == 0: // a deployment
			down, cancel := context.WithTimeout(context.Background(), 2*s.TTL)
			_ = m.Shutdown(down)
			cancel()
			s.ends.add(began, time.Now())
		case rand.IntN(2) == 0:
			_ = m.Close()
			s.ends.add(began, time.Now())
		default:
			kill()
			s.deaths.add(time.Now(), time.Now())
			ended.Go(func() { _ = m.Close() }) // for its goroutines: the store has it no more
		}
	}
}

// handle handles a message. Some fail.
func (s *storm) handle(ctx context.Context, run *workspace.Run, isNew bool) error {
	user, id, began := run.UserID(), run.Message().ID, time.Now()
	s.mu.Lock()
	s.calls++
	if _, ok := s.begun[user][id]; !ok {
		s.begun[user][id] = began
	}
	runs := s.runs[user]
	s.mu.Unlock()
	defer func() { runs.add(began, time.Now()) }()
	if !slices.Contains(Notes.Or(run.State(), nil), "begin "+id) {
		if err := Notes.Set(run.State(), []string{"begin " + id}); err != nil {
			return err
		}
		if err := run.Commit(ctx); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(s.TTL / 4)):
	}
	if rand.IntN(20) == 0 {
		return errStormy
	}
	var err error
	switch {
	case rand.IntN(4) > 0:
	case isNew:
		err = errors.Join(newAge.Set(run.State(), 40), newMood.Set(run.State(), "fine"))
	default:
		err = errors.Join(oldAge.Set(run.State(), "40"), oldMood.Set(run.State(), "fine"))
	}
	return errors.Join(err, Notes.Set(run.State(), []string{"end " + id}))
}

// send sends the messages of a user, each until it is accepted.
func (s *storm) send(end time.Time, user string) {
	for n := 0; time.Now().Before(end); n++ {
		id := fmt.Sprint("m", n)
		for {
			m := s.process[rand.IntN(len(s.process))].manager()
			err := errors.New("there is no process")
			if m != nil {
				ctx, cancel := context.WithTimeout(context.Background(), s.TTL)
				var out workspace.Outcome
				out, err = m.Submit(ctx, user, Text(id))
				cancel()
				if err == nil && out.Status == workspace.StatusRejected {
					err = errors.New("rejected")
				}
			}
			if err == nil {
				break
			}
			s.note(err)
			time.Sleep(rand.N(s.TTL / 10))
		}
		s.mu.Lock()
		s.accepted[user][id] = time.Now()
		s.mu.Unlock()
		time.Sleep(rand.N(3 * s.TTL))
	}
}

// note counts a refusal.
func (s *storm) note(err error) {
	kind := "another error: " + err.Error()
	for _, known := range []error{
		workspace.ErrSchema, workspace.ErrClosed, workspace.ErrQueueFull, store.ErrUnknownOutcome, store.ErrClosed,
		context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			kind = known.Error()
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[kind]++
}

// check checks that each accepted message has ended once.
func (s *storm) check(t *testing.T, user string, v *workspace.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ends := map[string]int{}
	for _, note := range Notes.Or(v.State(), nil) {
		ends[note]++
	}
	dead := map[string]string{}
	for _, d := range v.DeadLetters {
		require.NotEmpty(t, d.Reason, "%s: %s", user, d.Message.ID)
		dead[d.Message.ID] = d.Reason
	}
	for id := range s.accepted[user] {
		_, isDead := dead[id]
		require.LessOrEqual(t, ends["begin "+id], 1, "%s: %s is begun twice", user, id)
		require.Equal(t, !isDead, ends["end "+id] == 1, "%s: %s has ended %d times, and is dead: %q", user, id, ends["end "+id], dead[id])
		require.LessOrEqual(t, ends["end "+id], 1, "%s: %s", user, id)
	}
}

// blocked returns the time from the acceptance of a message to its run, without
// that in which the store was away or earlier messages were handled, and the
// number of times that leases were lost meanwhile.
func (s *storm) blocked(user string, accepted, begun time.Time) (wait time.Duration, losses int) {
	busy := append(slices.Clone(s.away.list), s.runs[user].list...)
	slices.SortFunc(busy, func(a, b span) int { return a.from.Compare(b.from) })
	at := accepted
	for _, b := range busy {
		if from := minTime(b.from, begun); from.After(at) {
			wait += from.Sub(at)
		}
		if b.to.After(at) {
			at = b.to
		}
	}
	if begun.After(at) {
		wait += begun.Sub(at)
	}
	for _, l := range s.losses {
		if l.to.After(accepted) && l.from.Before(begun) {
			losses++
		}
	}
	return wait, losses
}

// lossCost is what the loss of a lease costs, in quarters of the TTL: 1.5 TTL
// until it has expired, and a quarter until somebody looks.
const lossCost = 7

// costs returns until when a loss may block a user: nobody takes the run over
// while the store is away.
func (s *storm) costs(loss span) time.Time {
	end := loss.to.Add(s.TTL * lossCost / 4)
	for _, away := range s.away.list { // in the order of time
		if away.to.After(loss.to) && away.from.Before(end) {
			end = end.Add(away.to.Sub(maxTime(away.from, loss.to)))
		}
	}
	return end
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// countLosses counts the times at which a process may have lost its leases
// without having made them vacant: its death, and its end while the store was
// away.
func (s *storm) countLosses() {
	losses := slices.Clone(s.deaths.list)
	for _, end := range s.ends.list {
		if slices.ContainsFunc(s.away.list, func(away span) bool { return away.from.Before(end.to) && end.from.Before(away.to) }) {
			losses = append(losses, end)
		}
	}
	for _, l := range losses {
		s.losses = append(s.losses, span{l.from, s.costs(l)})
	}
}

// story tells what has happened while a message was waiting, with times since its
// acceptance.
func (s *storm) story(user, id string, accepted, begun time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "message %s of %s, begun after %s", id, user, begun.Sub(accepted))
	for kind, list := range map[string][]span{"run": s.runs[user].list, "away": s.away.list, "death": s.deaths.list, "end": s.ends.list} {
		for _, at := range list {
			if at.to.After(accepted.Add(-4*s.TTL)) && at.from.Before(begun) {
				fmt.Fprintf(&b, "\n%s from %s to %s", kind, at.from.Sub(accepted), at.to.Sub(accepted))
			}
		}
	}
	return b.String()
}

// report prints what has happened, and requires that nobody was blocked for too
// long.
func (s *storm) report(t *testing.T, took time.Duration) {
	s.countLosses()
	var waits []time.Duration
	worst := map[int]time.Duration{} // by the number of losses
	story := map[int]string{}        // of the worst
	for user, messages := range s.accepted {
		for id, accepted := range messages {
			begun, ok := s.begun[user][id]
			if !ok {
				begun = accepted // a dead letter whose holders have all died before
			}
			wait, losses := s.blocked(user, accepted, begun)
			waits = append(waits, wait)
			if wait > worst[losses] {
				worst[losses], story[losses] = wait, s.story(user, id, accepted, begun)
			}
		}
	}
	slices.Sort(waits)
	var away time.Duration
	for _, a := range s.outages.list {
		away += a.to.Sub(a.from)
	}
	inTTL := func(d time.Duration) string { return fmt.Sprintf("%.2f TTL", float64(d)/float64(s.TTL)) }
	t.Logf("%-40s %s, TTL %s", "length", took.Round(time.Millisecond), s.TTL)
	t.Logf("%-40s %d, and %d calls of Run", "messages accepted", len(waits), s.calls)
	t.Logf("%-40s %d, the store was away for %s", "outages", len(s.outages.list), away.Round(time.Millisecond))
	t.Logf("%-40s %d dead, %d closed or replaced", "processes", len(s.deaths.list), len(s.ends.list))
	t.Logf("%-40s %v", "refusals that were sent again", s.refused)
	t.Logf("%-40s %s (p50), %s (p99), %s", "blocked beside outages and other runs",
		inTTL(waits[len(waits)/2]), inTTL(waits[len(waits)*99/100]), inTTL(waits[len(waits)-1]))
	for losses, wait := range worst {
		t.Logf("%-40s %s", fmt.Sprintf("at most, with leases lost %d times", losses), inTTL(wait))
		limit := s.TTL/4 + s.TTL*lossCost/4*time.Duration(losses)
		if s.Real { // a slow machine may cost another lease
			limit += s.TTL * 3 / 2
		}
		require.LessOrEqual(t, wait, limit, "blocked for too long: %s", story[losses])
	}
}
