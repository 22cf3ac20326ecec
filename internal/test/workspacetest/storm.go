package workspacetest

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	process []*stormSlot

	mu       sync.Mutex
	link     store.Store
	lives    []*stormProcess
	accepted map[string]map[string]acceptance // by user and message
	runs     map[string][]stormRun            // calls of Run, by user
	refused  map[string]int                   // by error
	outages  spans
}

// stormSlot is a slot for processes, one after the other.
type stormSlot struct {
	mu   sync.Mutex
	m    *workspace.Manager // nil between two of them
	life *stormProcess
}

// stormProcess is the life of a process. Its last moment is a stretch if it was
// closed.
type stormProcess struct {
	isNew  bool // has the new schema
	opened time.Time
	died   bool
	end    span // zero if it is that of the storm
}

// stormRun is a call of Run.
type stormRun struct {
	id       string // of its message
	by       *stormProcess
	from, to time.Time
}

// acceptance is when a message was accepted, and by which process.
type acceptance struct {
	at time.Time
	by *stormProcess
}

func (p *stormSlot) manager() (*workspace.Manager, *stormProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m, p.life
}

func (p *stormSlot) set(m *workspace.Manager, life *stormProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.m, p.life = m, life
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
		Storm: c, db: db, link: link, accepted: map[string]map[string]acceptance{}, runs: map[string][]stormRun{},
		refused: map[string]int{},
	}
	for i := range c.Users {
		s.accepted[fmt.Sprint("user", i)] = map[string]acceptance{}
	}
	began := time.Now()
	ctx, stop := context.WithCancel(context.Background())
	quiet := make(chan struct{}) // nothing dies any more
	var senders, others sync.WaitGroup
	if c.Real {
		others.Go(func() { s.probe(ctx) })
	}
	for range 4 {
		s.process = append(s.process, &stormSlot{})
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
func (s *storm) replace(ctx context.Context, t *testing.T, quiet <-chan struct{}, p *stormSlot, first bool) {
	var ended sync.WaitGroup
	defer ended.Wait()
	for ctx.Err() == nil {
		isNew := first || rand.IntN(2) == 0
		schema := oldStorm
		if isNew {
			schema = newStorm
		}
		life := &stormProcess{isNew: isNew, opened: time.Now()}
		link, kill := AsProcess(s.link)
		m, err := workspace.Open(context.Background(), link, &workspace.Options{
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
		p.set(m, life)
		select {
		case <-quiet:
			<-ctx.Done()
		case <-time.After(rand.N(10 * s.TTL)):
		}
		p.set(nil, nil)
		began := time.Now()
		switch {
		case ctx.Err() != nil:
			_ = m.Close()
			continue
		case rand.IntN(3) == 0: // a deployment
			down, cancel := context.WithTimeout(context.Background(), 2*s.TTL)
			_ = m.Shutdown(down)
			cancel()
		case rand.IntN(2) == 0:
			_ = m.Close()
		default:
			kill()
			life.died = true
			ended.Go(func() { _ = m.Close() }) // for its goroutines: the store has it no more
		}
		life.end = span{began, time.Now()}
	}
}

// handle handles a message. Some fail.
func (s *storm) handle(ctx context.Context, run *workspace.Run, by *stormProcess) error {
	user, id, began := run.UserID(), run.Message().ID, time.Now()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs[user] = append(s.runs[user], stormRun{id, by, began, time.Now()})
	}()
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
	case by.isNew:
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
			m, by := s.process[rand.IntN(len(s.process))].manager()
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
				s.mu.Lock()
				s.accepted[user][id] = acceptance{time.Now(), by}
				s.mu.Unlock()
				break
			}
			s.note(err)
			time.Sleep(rand.N(s.TTL / 10))
		}
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

// clock returns the time from the first moment of the storm to t in which the
// store was there: nobody takes a run over while it is away.
func (s *storm) clock(t time.Time) time.Duration {
	at := t.Sub(s.lives[0].opened)
	for _, away := range s.away.list {
		if away.from.Before(t) {
			at -= minTime(away.to, t).Sub(away.from)
		}
	}
	return at
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
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
func (s *storm) promised(user string, before stormRun, ready, begun time.Time) time.Duration {
	limit, ttl := time.Duration(math.MaxInt64), s.TTL
	lost, left := s.withoutHolder(before, begun)
	if lost.IsZero() && left.IsZero() {
		return s.clock(ready) + ttl/4
	}
	blind := time.Duration(s.outagesIn(minTime(before.to, ready), begun))
	for _, p := range s.lives {
		opened := s.clock(p.opened)
		by := s.clock(ready)
		if !left.IsZero() {
			by = max(by, opened, s.clock(left)+ttl) + blind*ttl/4
		}
		if !lost.IsZero() {
			by = max(by, max(opened, s.clock(lost)+ttl)+ttl*3/2+blind*ttl*5/4)
		}
		for _, a := range s.accepted[user] {
			if a.by == p && left.IsZero() && a.at.After(before.from) {
				by = min(by, s.clock(maxTime(a.at, lost))+ttl*3/2+blind*ttl/2)
			}
		}
		by += ttl / 4 // until somebody looks, and the run begins
		if p.isNew && (p.end.from.IsZero() || s.clock(p.end.from) > by) {
			limit = min(limit, by)
		}
	}
	return limit
}

// withoutHolder returns when the holder of the next run died and when it was
// closed, or zero. That is the process that has handled the run before, and then
// each that may have taken the next one over since without having begun it.
func (s *storm) withoutHolder(before stormRun, begun time.Time) (lost, left time.Time) {
	if before.by == nil {
		return lost, left
	}
	ends := slices.DeleteFunc(slices.Clone(s.lives), func(p *stormProcess) bool {
		return p.end.to.Before(before.from) || p.end.from.After(begun)
	})
	slices.SortFunc(ends, func(p, q *stormProcess) int { return p.end.to.Compare(q.end.to) })
	next := time.Time{} // when another process may have it
	for _, p := range ends {
		switch end := minTime(p.end.to, begun); {
		case p != before.by && (next.IsZero() || end.Before(next)):
		case p.died, s.outagesIn(p.end.from, p.end.to) > 0: // it could not say that it leaves
			lost, next = end, end.Add(s.TTL*9/10) // a TTL after its last heartbeat, at the earliest
		default:
			left, next = end, end
		}
	}
	return lost, left
}

// outagesIn counts the outages in a stretch of time.
func (s *storm) outagesIn(from, to time.Time) (n int) {
	for _, away := range s.away.list {
		if !away.from.After(to) && !from.After(away.to) {
			n++
		}
	}
	return n
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// story tells what has happened around a run, with times since it could begin.
func (s *storm) story(user string, before stormRun, ready, begun time.Time) string {
	since := before.from
	var b strings.Builder
	fmt.Fprintf(&b, "the run of %s has begun %s after it could; the one before began at %s", user, begun.Sub(ready), since.Sub(ready))
	for _, at := range s.away.list {
		if at.to.After(since) && at.from.Before(begun) {
			fmt.Fprintf(&b, "\naway from %s to %s", at.from.Sub(ready), at.to.Sub(ready))
		}
	}
	for _, p := range s.lives {
		if p.opened.Before(begun) && (p.end.to.IsZero() || p.end.to.After(since)) {
			fmt.Fprintf(&b, "\nprocess from %s to %s, new %t, died %t", p.opened.Sub(ready), p.end.to.Sub(ready), p.isNew, p.died)
		}
	}
	return b.String()
}

// report prints what has happened, and requires that nobody was blocked for longer
// than promised.
func (s *storm) report(t *testing.T, took time.Duration) {
	var waits []time.Duration // of runs that could begin
	messages, worst, story := 0, time.Duration(math.MinInt64), ""
	for user, accepted := range s.accepted {
		messages += len(accepted)
		runs := s.runs[user]
		slices.SortFunc(runs, func(a, b stormRun) int { return a.from.Compare(b.from) })
		for n, run := range runs {
			a := accepted[run.id]
			before := stormRun{from: a.at, to: a.at}
			if n > 0 {
				before = runs[n-1]
			}
			ready := minTime(maxTime(before.to, a.at), run.from)
			waits = append(waits, s.clock(run.from)-s.clock(ready))
			if over := s.clock(run.from) - s.promised(user, before, ready, run.from); over > worst {
				worst, story = over, s.story(user, before, ready, run.from)
			}
		}
	}
	slices.Sort(waits)
	var away time.Duration
	for _, a := range s.outages.list {
		away += a.to.Sub(a.from)
	}
	dead := 0
	for _, p := range s.lives {
		if p.died {
			dead++
		}
	}
	inTTL := func(d time.Duration) string { return fmt.Sprintf("%.2f TTL", float64(d)/float64(s.TTL)) }
	t.Logf("%-40s %s, TTL %s", "length", took.Round(time.Millisecond), s.TTL)
	t.Logf("%-40s %d, and %d calls of Run", "messages accepted", messages, len(waits))
	t.Logf("%-40s %d, the store was away for %s", "outages", len(s.outages.list), away.Round(time.Millisecond))
	t.Logf("%-40s %d dead, %d closed or replaced", "processes", dead, len(s.lives)-dead-len(s.process))
	t.Logf("%-40s %v", "refusals that were sent again", s.refused)
	t.Logf("%-40s %s (p50), %s (p99), %s", "blocked beside outages and other runs",
		inTTL(waits[len(waits)/2]), inTTL(waits[len(waits)*99/100]), inTTL(waits[len(waits)-1]))
	t.Logf("%-40s %s", "longest wait before what is promised", inTTL(worst))
	limit := time.Duration(0)
	if s.Real { // a slow machine may cost a lease
		limit = s.TTL * 3 / 2
	}
	require.LessOrEqual(t, worst, limit, "blocked for too long: %s", story)
}
