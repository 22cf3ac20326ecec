package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state/internal/effort"
	"github.com/agentstate/state/internal/worker"
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
	n := effort.LogSeed(t)
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
	ctx     context.Context
	task    task
	began   time.Time
	mu      sync.Mutex
	history history
	clients []*client
}

// client is a worker that does the job serve.
type client = worker.Client[request, reply]

func (r *race) now() int64       { return int64(time.Since(r.began)) }
func (r *race) key(i int) string { return r.task.Prefix + strconv.Itoa(i) }

// finish lets the workers end by themselves.
func (r *race) finish() error {
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (r *race) stop() {
	for _, c := range r.clients {
		c.Kill()
		<-c.Done()
	}
}

// slot is the place of a worker, and of another after that was killed.
type slot struct {
	mu sync.Mutex
	c  *client
}

// client returns a worker that runs.
func (s *slot) client(r *race) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		select {
		case <-s.c.Done():
			if err := s.c.Problem(); err != nil {
				return nil, err
			}
		default:
			return s.c, nil
		}
	}
	p, err := r.task.start(r.ctx)
	if err != nil {
		return nil, err
	}
	s.c = worker.NewClient(p, func(*client, reply) {})
	r.mu.Lock()
	r.clients = append(r.clients, s.c)
	r.mu.Unlock()
	return s.c, nil
}

// racer operates at the same time as others. It lives in the process of the test
// and operates through a worker, so that there is one clock: it reads the clock
// before it sends a request and when the answer comes. The operation took place in
// between, whatever the clocks of the processes say.
type racer struct {
	race   *race
	slot   *slot
	number int
	random *rand.Rand
	seen   [5]store.Revision
}

// run takes the turns of a racer. The killer kills its worker in the middle of
// one.
func (c *racer) run(killer bool) error {
	for turn := range turns {
		w, err := c.slot.client(c.race)
		if err != nil {
			return err
		}
		i := c.random.IntN(len(c.seen))
		q := c.choose(i, turn)
		call := c.race.now()
		answers := w.Send(q)
		if killer && turn == turns/2 {
			w.Kill()
		}
		a, ok := w.Await(answers)
		if !ok {
			a.Reply.Outcome = unknown
		}
		if a.Reply.Outcome == failed {
			return fmt.Errorf("%s: %s", q.Op, a.Reply.Problem)
		}
		c.learn(i, q, a.Reply)
		c.race.mu.Lock()
		c.race.history.add(c.number, q, call, a.Reply, int64(a.At.Sub(c.race.began)))
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

// learn keeps the revision that the racer knows, even after a conflict: an old
// revision must never match again.
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
	return worker.Serve(func(q request) reply { return answer(context.Background(), s, q) })
}

// answer executes a request.
func answer(ctx context.Context, s store.Store, q request) reply {
	var a reply
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

// Counter tests that four processes with sixteen goroutines each can share a
// counter through [store.Manager.Update] without losing a visit. See [Main].
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

// collect returns the counts that a worker prints.
func collect(ctx context.Context, job task) ([]int, error) {
	p, err := job.start(ctx)
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	var counts []int
	for {
		var n int
		ok, err := p.Read(&n)
		if !ok {
			return counts, errors.Join(err, p.Wait())
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
	var wg sync.WaitGroup
	errs := make([]error, visitors)
	for i := range errs {
		wg.Go(func() {
			for range visits {
				value, err := manager.Update(ctx, "visits", visit)
				if err == nil {
					err = worker.Print(json.RawMessage(value))
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
