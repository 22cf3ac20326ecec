package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentstate/state/store"
)

const (
	workers = 4   // processes at a time
	clients = 4   // of each worker
	turns   = 100 // operations of each client
)

// Processes tests that processes may share the data set at the address, which has
// to exist: four of them read, write and delete five keys at once, with and
// without conditions, one is killed in the middle, and the history of all is
// checked to be linearizable. See [Main].
func Processes(t *testing.T, address string) {
	s := open(t, address)
	defer func() { _ = s.Close() }()
	ctx := t.Context()
	r := &race{ctx: ctx, task: task{Job: "serve", Address: address, Prefix: newPrefix("processes")}, began: time.Now()}
	defer r.stop()
	n := seed(t)
	var wg sync.WaitGroup
	errs := make([]error, workers*clients)
	slots := make([]slot, workers)
	for i := range errs {
		wg.Go(func() {
			c := &racer{race: r, slot: &slots[i/clients], number: i, random: rand.New(rand.NewPCG(n, uint64(i)))}
			errs[i] = c.run(i == 0)
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, r.finish())...); err != nil {
		t.Fatal(err)
	}
	for i := range 5 { // what is there in the end has to fit too
		q, call := request{Op: "get", Key: r.key(i)}, r.now()
		a := answer(ctx, s, q)
		if a.Outcome == failed {
			t.Fatalf("get: %s", a.Problem)
		}
		r.history.add(len(errs), q, call, a, r.now())
	}
	if err := r.history.check(); err != nil {
		t.Fatal(err)
	}
}

// race is one run of Processes.
type race struct {
	ctx       context.Context
	task      task
	began     time.Time
	mu        sync.Mutex
	history   history
	processes []*served
}

func (r *race) now() int64       { return int64(time.Since(r.began)) }
func (r *race) key(i int) string { return r.task.Prefix + strconv.Itoa(i) }

// finish lets the workers end by themselves.
func (r *race) finish() error {
	var errs []error
	for _, p := range r.processes {
		_ = p.close()
		<-p.done
		if !p.killed.Load() {
			errs = append(errs, p.problem, p.wait())
		}
	}
	return errors.Join(errs...)
}

func (r *race) stop() {
	for _, p := range r.processes {
		p.kill()
		<-p.done
		p.stop()
	}
}

// slot is where a worker is, and after it was killed, another.
type slot struct {
	mu sync.Mutex
	p  *served
}

func (s *slot) process(r *race) (*served, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.p != nil {
		select {
		case <-s.p.done:
			if !s.p.killed.Load() {
				return nil, errors.Join(errors.New("a worker ended by itself"), s.p.problem, s.p.wait())
			}
		default:
			return s.p, nil
		}
	}
	p, err := start(r.ctx, r.task)
	if err != nil {
		return nil, err
	}
	s.p = &served{process: p, calls: map[int]chan<- answered{}, done: make(chan struct{})}
	go s.p.receive(r)
	r.mu.Lock()
	r.processes = append(r.processes, s.p)
	r.mu.Unlock()
	return s.p, nil
}

// served is a worker that does what it is told.
type served struct {
	*process
	mu      sync.Mutex
	last    int
	calls   map[int]chan<- answered
	killed  atomic.Bool
	done    chan struct{} // closed when it has answered all that it will
	problem error         // set before
}

type answered struct {
	reply reply
	at    int64
}

func (p *served) receive(r *race) {
	defer close(p.done)
	for {
		var a reply
		ok, err := p.read(&a)
		if !ok {
			p.problem = err
			if err != nil {
				p.kill()
			}
			return
		}
		at := r.now()
		p.mu.Lock()
		if c, ok := p.calls[a.ID]; ok {
			c <- answered{a, at}
			delete(p.calls, a.ID)
		}
		p.mu.Unlock()
	}
}

// send tells the worker to do something. What it answers comes through the
// channel, unless it is killed before.
func (p *served) send(q request) <-chan answered {
	c := make(chan answered, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	q.ID = p.last
	p.calls[q.ID] = c
	_ = p.in.Encode(q) // fails if it was killed, and then done tells
	return c
}

// racer is one of those who operate at the same time. It lives in the process of
// the test and operates through a worker, so that there is one clock: it looks at
// it before it tells the worker, and when it has heard from it. The operation took
// place in between, whatever the processes' own clocks say.
type racer struct {
	race   *race
	slot   *slot
	number int
	random *rand.Rand
	seen   [5]store.Revision
}

// run takes the turns of a racer, which in the middle of one kills the worker if
// it is the killer.
func (c *racer) run(killer bool) error {
	for turn := range turns {
		p, err := c.slot.process(c.race)
		if err != nil {
			return err
		}
		i := c.random.IntN(len(c.seen))
		q := c.choose(i, turn)
		call := c.race.now()
		answers := p.send(q)
		if killer && turn == turns/2 {
			p.killed.Store(true)
			p.kill()
		}
		a := answered{reply: reply{Outcome: unknown}}
		select {
		case a = <-answers:
		case <-p.done:
			select {
			case a = <-answers:
			default:
			}
		}
		if a.reply.Outcome == failed {
			return fmt.Errorf("%s: %s", q.Op, a.reply.Problem)
		}
		c.learn(i, q, a.reply)
		c.race.mu.Lock()
		c.race.history.add(c.number, q, call, a.reply, a.at)
		c.race.mu.Unlock()
	}
	return nil
}

func (c *racer) choose(i, turn int) request {
	q := request{Op: "put", Key: c.race.key(i), Value: fmt.Sprintf("%d.%d", c.number, turn)}
	switch n := c.random.IntN(100); {
	case n < 30:
		q.Op, q.Value = "get", ""
	case n < 40: // always
	case n < 55:
		q.Absent = true
	case n < 80:
		q.Revision = c.seen[i]
	case n < 95:
		q.Op, q.Value, q.Revision = "delete", "", c.seen[i]
	default:
		q.Op, q.Value = "delete", ""
	}
	return q
}

// learn keeps the revision that the racer knows, also after a conflict: old
// revisions must not come true again.
func (c *racer) learn(i int, q request, a reply) {
	if a.Revision != "" {
		c.seen[i] = a.Revision
	}
	if a.Outcome == conflict && c.random.IntN(2) == 0 {
		c.seen[i] = ""
	}
}

// serve is the job of a worker of Processes.
func serve(s store.Store, _ task) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	var p printer
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var q request
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			return err
		}
		wg.Go(func() {
			_ = p.print(answer(context.Background(), s, q)) // fails if nobody listens any more
		})
	}
	return in.Err()
}

// answer does what a request wants.
func answer(ctx context.Context, s store.Store, q request) reply {
	a := reply{ID: q.ID}
	var err error
	switch q.Op {
	case "get":
		var e store.Entry
		e, err = s.Get(ctx, q.Key)
		a.Value, a.Revision = string(e.Value), e.Revision
	case "put":
		a.Revision, err = s.Put(ctx, q.Key, []byte(q.Value), q.cond())
	case "delete":
		err = s.Delete(ctx, q.Key, q.cond())
	}
	if a.Outcome = outcomeOf(err); a.Outcome != made {
		a.Value, a.Revision = "", ""
	}
	if a.Outcome == failed {
		a.Problem = err.Error()
	}
	return a
}

// Counter tests that the visits counter counts right that four processes with
// sixteen goroutines each share through [store.Manager.Update]. See [Main].
func Counter(t *testing.T, address string) {
	s := open(t, address)
	defer func() { _ = s.Close() }()
	ctx := t.Context()
	job := task{Job: "count", Address: address, Prefix: newPrefix("counter")}
	var wg sync.WaitGroup
	counts, errs := make([][]int, workers), make([]error, workers)
	for i := range workers {
		wg.Go(func() { counts[i], errs[i] = collect(ctx, job) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(counts...)))
	for i, n := range all {
		if n != i+1 {
			t.Fatalf("visit %d was counted as %d", i+1, n)
		}
	}
	want := strconv.Itoa(workers * visitors * visits)
	got, _, err := store.NewManager(s, job.Prefix).Get(ctx, "visits")
	if err != nil || got != want || strconv.Itoa(len(all)) != want {
		t.Fatalf("%d visits were counted, and the counter is %q, not %s: %v", len(all), got, want, err)
	}
}

// collect returns the counts that a worker says.
func collect(ctx context.Context, job task) ([]int, error) {
	p, err := start(ctx, job)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	var counts []int
	for {
		var n int
		ok, err := p.read(&n)
		if !ok {
			return counts, errors.Join(err, p.wait())
		}
		counts = append(counts, n)
	}
}

const (
	visitors = 16 // goroutines of each worker
	visits   = 8  // of each of them
)

// count is the job of a worker of Counter.
func count(s store.Store, job task) error {
	manager := store.NewManager(s, job.Prefix)
	ctx := context.Background() // the parent kills this process if it hangs
	var p printer
	var wg sync.WaitGroup
	errs := make([]error, visitors)
	for i := range errs {
		wg.Go(func() {
			for range visits {
				value, err := manager.Update(ctx, "visits", visit)
				if err == nil {
					err = p.print(json.RawMessage(value))
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func visit(value string, present bool) (string, error) {
	if !present {
		return "1", nil
	}
	n, err := strconv.Atoi(value)
	return strconv.Itoa(n + 1), err
}
