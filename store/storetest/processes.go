package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

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
// process and reads the clock before it sends one and after it has received the
// result. The operation took place in between, whatever the clock of the
// process says.
func Processes(t *testing.T, address string) {
	s := open(t, address)
	defer func() { _ = s.Close() }()
	job := task{Job: "serve", Address: address, Prefix: newPrefix("processes")}
	r := newRecorder(job.Prefix)
	shared := make([]*server, workers)
	for i := range shared {
		var err error
		if shared[i], err = startServer(t, job); err != nil {
			t.Fatal(err)
		}
	}
	n := effort.LogSeed(t)
	var wg sync.WaitGroup
	errs := make([]error, workers*clients)
	for i := range errs {
		wg.Go(func() {
			p, turn := shared[i/clients], 0
			errs[i] = newClient(r, i, n).run(turns, func(o operation) (operationResult, error) {
				if turn++; i == 0 && turn == turns/2 {
					time.AfterFunc(time.Millisecond, p.Kill)
				}
				result, ok := p.Ask(o)
				if ok {
					return result, nil
				}
				err := p.Problem()
				if err == nil { // it was killed: a successor of this client's own takes its place
					p, err = startServer(t, job)
				}
				return operationResult{Outcome: unknown}, err
			})
			if p != nil && p != shared[i/clients] {
				errs[i] = errors.Join(errs[i], p.Close())
			}
		})
	}
	wg.Wait()
	for _, p := range shared {
		errs = append(errs, p.Close())
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range clientKeys { // the final values are part of the history
		_, err := r.perform(len(errs), operation{Op: "get", Key: r.key(i)}, func(o operation) (operationResult, error) {
			return o.execute(t.Context(), s), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.history.checkContention(), r.history.check()); err != nil {
		t.Fatal(err)
	}
}

// server is a worker that executes operations.
type server = worker.Process[operation, operationResult]

func startServer(t *testing.T, job task) (*server, error) {
	return worker.Start(t.Context(), job, func(*server, operationResult) {})
}

// serve is the job of a server.
func serve(s store.Store, _ task) error {
	return worker.Serve(func(o operation) operationResult { return o.execute(context.Background(), s) })
}
