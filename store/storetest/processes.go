package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
)

const (
	workers = 4   // processes at a time
	clients = 4   // of each worker
	turns   = 100 // operations of each client
)

// Processes tests that processes can share the data set at an address, which
// must exist. Four processes read, write and delete five keys concurrently,
// with and without conditions. One of them is killed. The history of all
// operations must be linearizable. See [Main].
//
// The clients are goroutines of the test. A client sends its operations to a
// process and reads the clock before it sends one and after it receives the
// result. The operation took place in between, whatever the clock of the
// process says.
func Processes(t *testing.T, address string) {
	s := open(t, address)
	defer func() { _ = s.Close() }()
	job := task{Job: "serve", Address: address, Prefix: newPrefix("processes")}
	r := newRecorder(job.Prefix)
	slots := make([]processSlot, workers)
	for i := range slots {
		slots[i].ctx, slots[i].task, slots[i].recorder = t.Context(), job, r
		defer slots[i].stop()
	}
	n := effort.LogSeed(t)
	var wg sync.WaitGroup
	errs := make([]error, workers*clients)
	for i := range errs {
		wg.Go(func() {
			killTurn := -1
			if i == 0 {
				killTurn = turns / 2
			}
			errs[i] = newClient(r, i, n).run(turns, func(turn int, o operation) (operationResult, int64, error) {
				return slots[i/clients].perform(o, turn == killTurn)
			})
		})
	}
	wg.Wait()
	for i := range slots {
		errs = append(errs, slots[i].finish())
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range clientKeys { // the final values are part of the history
		o, call := operation{Op: "get", Key: r.key(i)}, r.now()
		result := o.execute(t.Context(), s)
		if result.Outcome == failed {
			t.Fatalf("get: %s", result.Problem)
		}
		r.record(len(errs), o, call, result, r.now())
	}
	if err := r.history.check(); err != nil {
		t.Fatal(err)
	}
}

// processClient is a client of a worker with the job serve.
type processClient = worker.Client[operation, operationResult]

// processSlot is a worker process, and after that was killed, its successor.
type processSlot struct {
	ctx      context.Context
	task     task
	recorder *recorder

	mu  sync.Mutex
	all []*processClient // the last one may be running
}

// perform sends an operation to the process and waits for the result. It kills
// the process after it has sent the operation if kill is true.
func (s *processSlot) perform(o operation, kill bool) (operationResult, int64, error) {
	c, err := s.client()
	if err != nil {
		return operationResult{}, 0, err
	}
	answer := c.Send(o)
	if kill {
		c.Kill()
	}
	a, ok := c.Await(answer)
	if !ok {
		return operationResult{Outcome: unknown}, 0, nil
	}
	return a.Reply, s.recorder.timeOf(a.At), nil
}

// client returns a client of the running process. It starts a process if none
// runs.
func (s *processSlot) client() (*processClient, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) > 0 {
		last := s.all[len(s.all)-1]
		select {
		case <-last.Done():
			if err := last.Problem(); err != nil {
				return nil, err
			}
		default:
			return last, nil
		}
	}
	p, err := s.task.start(s.ctx)
	if err != nil {
		return nil, err
	}
	c := worker.NewClient(p, func(*processClient, operationResult) {})
	s.all = append(s.all, c)
	return c, nil
}

// finish lets the process end by itself.
func (s *processSlot) finish() error {
	var errs []error
	for _, c := range s.all {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (s *processSlot) stop() {
	for _, c := range s.all {
		c.Kill()
		<-c.Done()
	}
}

// serve is the job of a worker of Processes: it executes operations.
func serve(s store.Store, _ task) error {
	return worker.Serve(func(o operation) operationResult { return o.execute(context.Background(), s) })
}
