package workspacetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	oldAge  = &state.Field[string]{Name: "age"}
	oldMood = &state.Field[string]{Name: "mood"}
	newAge  = &state.Field[int]{Name: "age", Convert: func(former state.JSON) (int, error) {
		return strconv.Atoi(string(former[1 : len(former)-1]))
	}}
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

// A moment is a time since the storm has begun. Nothing happens at 0.
type moment = time.Duration

// span is a stretch of time.
type span struct{ from, to moment }

// storm is a Storm that runs.
type storm struct {
	Storm
	began     time.Time
	db        store.Store // not away
	link      store.Store
	processes [4]atomic.Pointer[stormProcess] // nil between one and the next

	mu       sync.Mutex
	away     []span
	lives    []*stormProcess
	accepted map[string]map[string]acceptance // by user and message
	runs     map[string][]stormRun            // calls of Run, by user
}

func (s *storm) now() moment { return time.Since(s.began) }

// stormProcess is the life of a process. Its last moment is a stretch if it was
// closed.
type stormProcess struct {
	m      *workspace.Manager
	isNew  bool // has the new schema
	opened moment
	died   bool
	end    span // zero if it is that of the storm
}

// stormRun is a call of Run.
type stormRun struct {
	id       string // of its message
	by       *stormProcess
	from, to moment
}

// acceptance is when a message was accepted, and by which process.
type acceptance struct {
	at moment
	by *stormProcess
}

// VirtualStorm runs a storm in virtual time. The store must need no time.
func VirtualStorm(t *testing.T, s Storm, fresh func(t testing.TB) store.Store) {
	defer Watch(t)()
	synctest.Test(t, func(t *testing.T) { s.run(t, fresh(t)) })
}

// RealStorm runs a storm in real time.
func RealStorm(t *testing.T, s Storm, fresh func(t testing.TB) store.Store) {
	s.Real = true
	s.run(t, fresh(t))
}

// run lets users send messages to processes that die, are closed and are
// replaced, while the store is away now and then. Every accepted message must end
// once, and nobody may wait for longer than promised.
func (c Storm) run(t *testing.T, db store.Store) {
	link, away := WithOutages(db, true)
	s := &storm{
		Storm: c, began: time.Now(), db: db, link: link, accepted: map[string]map[string]acceptance{},
		runs: map[string][]stormRun{},
	}
	for i := range c.Users {
		s.accepted[fmt.Sprint("user", i)] = map[string]acceptance{}
	}
	ctx, stop := context.WithCancel(context.Background())
	quiet := make(chan struct{}) // nothing dies any more
	var senders, others sync.WaitGroup
	if c.Real {
		others.Go(func() { s.probe(ctx) })
	}
	for i := range s.processes {
		others.Go(func() { s.replace(ctx, t, quiet, i) })
	}
	for user := range s.accepted {
		senders.Go(func() { s.send(user) })
	}
	others.Go(func() {
		for sleepUnless(quiet, rand.N(2*c.TTL)) {
			length := min(3*c.TTL, time.Millisecond+time.Duration(rand.ExpFloat64()*float64(c.TTL)/3))
			from := s.now()
			away.Store(true)
			time.Sleep(length)
			away.Store(false)
			s.wasAway(from, s.now())
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
	s.report(t)
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
		from := s.now()
		_, _ = store.Put(context.Background(), s.db, probeKey+"storm", nil, store.Always)
		if to := s.now(); to-from > every/2 {
			s.wasAway(from-every, to+every)
		}
	}
}

func (s *storm) wasAway(from, to moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = append(s.away, span{from, to})
}

// replace starts one process after the other in a slot until ctx ends. Those in the
// first slot have the new schema.
func (s *storm) replace(ctx context.Context, t *testing.T, quiet <-chan struct{}, slot int) {
	var ended sync.WaitGroup
	defer ended.Wait()
	for ctx.Err() == nil {
		life := &stormProcess{isNew: slot == 0 || rand.IntN(2) == 0, opened: s.now()}
		schema := oldStorm
		if life.isNew {
			schema = newStorm
		}
		link, kill := AsProcess(s.link)
		var err error
		life.m, err = workspace.Open(context.Background(), link, &workspace.Options{
			Schema: schema, TTL: s.TTL, Attempts: 3,
			Run: func(ctx context.Context, run *workspace.Run) error { return s.handle(ctx, run, life) },
		})
		if err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		s.lives = append(s.lives, life)
		s.mu.Unlock()
		s.processes[slot].Store(life)
		select {
		case <-quiet:
			<-ctx.Done()
		case <-time.After(rand.N(10 * s.TTL)):
		}
		s.processes[slot].Store(nil)
		began := s.now()
		switch {
		case ctx.Err() != nil:
			_ = life.m.Close()
			continue
		case rand.IntN(3) == 0: // a deployment
			down, cancel := context.WithTimeout(context.Background(), 2*s.TTL)
			_ = life.m.Shutdown(down)
			cancel()
		case rand.IntN(2) == 0:
			_ = life.m.Close()
		default:
			kill()
			life.died = true
			ended.Go(func() { _ = life.m.Close() }) // for its goroutines: the store has it no more
		}
		life.end = span{began, s.now()}
	}
}

// handle handles a message. Some fail.
func (s *storm) handle(ctx context.Context, run *workspace.Run, by *stormProcess) error {
	user, id, began := run.UserID(), run.Message().ID, s.now()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs[user] = append(s.runs[user], stormRun{id, by, began, s.now()})
	}()
	if !slices.Contains(Notes.GetOr(run.State(), nil), "begin "+id) {
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
	case by.isNew:
		err = errors.Join(newAge.Set(run.State(), 40), newMood.Set(run.State(), "fine"))
	default:
		err = errors.Join(oldAge.Set(run.State(), "40"), oldMood.Set(run.State(), "fine"))
	}
	return errors.Join(err, Notes.Set(run.State(), []string{"end " + id}))
}

// send sends the messages of a user, each until it is accepted.
func (s *storm) send(user string) {
	for n := 0; s.now() < s.Length; n++ {
		id := fmt.Sprint("m", n)
		for !s.submit(user, id) {
			time.Sleep(rand.N(s.TTL / 10))
		}
		time.Sleep(rand.N(3 * s.TTL))
	}
}

// submit sends a message to a process, and reports whether it is accepted.
func (s *storm) submit(user, id string) bool {
	by := s.processes[rand.IntN(len(s.processes))].Load()
	if by == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.TTL)
	defer cancel()
	out, err := by.m.Submit(ctx, user, Text(id))
	if err != nil || out.Status == workspace.StatusRejected {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted[user][id] = acceptance{s.now(), by}
	return true
}

// check checks that each accepted message has ended once.
func (s *storm) check(t *testing.T, user string, v *workspace.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ends := map[string]int{}
	for _, note := range Notes.GetOr(v.State(), nil) {
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
		require.Equal(t, !isDead, ends["end "+id] == 1, "%s: %s has ended %d times, and is dead: %q", user, id,
			ends["end "+id], dead[id])
		require.LessOrEqual(t, ends["end "+id], 1, "%s: %s", user, id)
	}
}

// clock returns the time up to a moment in which the store was there: nobody takes
// a run over while it is away.
func (s *storm) clock(at moment) time.Duration {
	clock := at
	for _, away := range s.away {
		if away.from < at {
			clock -= min(away.to, at) - away.from
		}
	}
	return clock
}

// promised returns when, on the clock, a run has to begin whose message was there,
// and the run before it over, at ready. The documentation promises that
//
//   - a run that a process leaves behind when it is closed is taken at once by who
//     has a message of that user, and within a TTL by everybody;
//   - a run whose holder has died is taken over 1.5 × TTL after the last heartbeat
//     by a process that has a message of the user, and within 2.5 × TTL by
//     everybody. One that was opened meanwhile looks at it for 1.5 × TTL;
//   - the time in which a process could not look does not count: that since its
//     last look before an outage, until its next one.
//
// So when the process that has the message is closed, or another one that would
// have been next, what counts is what the others promise. Only processes with
// the new schema can handle everything.
func (s *storm) promised(user string, before stormRun, ready, begun moment) time.Duration {
	limit, ttl := time.Duration(math.MaxInt64), s.TTL
	lost, left := s.withoutHolder(before, begun)
	if lost == 0 && left == 0 {
		return s.clock(ready) + ttl/4
	}
	blind := time.Duration(s.outagesIn(min(before.to, ready), begun))
	for _, p := range s.lives {
		opened := s.clock(p.opened)
		by := s.clock(ready)
		if left != 0 {
			by = max(by, opened, s.clock(left)+ttl) + blind*ttl/4
		}
		if lost != 0 {
			by = max(by, max(opened, s.clock(lost)+ttl)+ttl*3/2+blind*ttl*5/4)
		}
		for _, a := range s.accepted[user] {
			if a.by == p && left == 0 && a.at > before.from {
				by = min(by, s.clock(max(a.at, lost))+ttl*3/2+blind*ttl/2)
			}
		}
		by += ttl / 4 // until somebody looks, and the run begins
		if p.isNew && (p.end.from == 0 || s.clock(p.end.from) > by) {
			limit = min(limit, by)
		}
	}
	return limit
}

// withoutHolder returns when the holder of the next run died and when it was
// closed, or zero. That is the process that has handled the run before, and then
// each that may have taken the next one over since without having begun it.
func (s *storm) withoutHolder(before stormRun, begun moment) (lost, left moment) {
	if before.by == nil {
		return 0, 0
	}
	ends := slices.DeleteFunc(slices.Clone(s.lives), func(p *stormProcess) bool {
		return p.end.to == 0 || p.end.to < before.from || p.end.from > begun
	})
	slices.SortFunc(ends, func(p, q *stormProcess) int { return cmp.Compare(p.end.to, q.end.to) })
	next := moment(0) // when another process may have it
	for _, p := range ends {
		switch end := min(p.end.to, begun); {
		case p != before.by && (next == 0 || end < next):
		case p.died, s.outagesIn(p.end.from, p.end.to) > 0: // it could not say that it leaves
			lost, next = end, end+s.TTL*9/10 // a TTL after its last heartbeat, at the earliest
		default:
			left, next = end, end
		}
	}
	return lost, left
}

// outagesIn counts the outages in a stretch of time.
func (s *storm) outagesIn(from, to moment) (n int) {
	for _, away := range s.away {
		if away.from <= to && from <= away.to {
			n++
		}
	}
	return n
}

// story tells what has happened around a run, with times since it could begin.
func (s *storm) story(user string, before stormRun, ready, begun moment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the run of %s has begun %s after it could; the one before began at %s", user,
		begun-ready, before.from-ready)
	for _, at := range s.away {
		if at.to > before.from && at.from < begun {
			fmt.Fprintf(&b, "\naway from %s to %s", at.from-ready, at.to-ready)
		}
	}
	for _, p := range s.lives {
		if p.opened < begun && (p.end.to == 0 || p.end.to > before.from) {
			fmt.Fprintf(&b, "\nprocess from %s to %s, new %t, died %t", p.opened-ready, p.end.to-ready, p.isNew, p.died)
		}
	}
	return b.String()
}

// report prints what has happened, and requires that nobody was blocked for longer
// than promised.
func (s *storm) report(t *testing.T) {
	messages, calls, worst, story := 0, 0, time.Duration(math.MinInt64), ""
	for user, accepted := range s.accepted {
		messages += len(accepted)
		runs := s.runs[user]
		calls += len(runs)
		slices.SortFunc(runs, func(a, b stormRun) int { return cmp.Compare(a.from, b.from) })
		for n, run := range runs {
			a := accepted[run.id]
			before := stormRun{from: a.at, to: a.at}
			if n > 0 {
				before = runs[n-1]
			}
			ready := min(max(before.to, a.at), run.from)
			if over := s.clock(run.from) - s.promised(user, before, ready, run.from); over > worst {
				worst, story = over, s.story(user, before, ready, run.from)
			}
		}
	}
	t.Logf("in %s with a TTL of %s: %d messages, %d calls of Run, %d processes, away %d times; %s before what is promised",
		s.now().Round(time.Millisecond), s.TTL, messages, calls, len(s.lives), len(s.away), -worst)
	limit := time.Duration(0)
	if s.Real { // a slow machine may cost a lease
		limit = s.TTL * 3 / 2
	}
	require.LessOrEqual(t, worst, limit, "blocked for too long: %s", story)
}
