package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
)

const (
	visitors = 16 // goroutines of each worker
	visits   = 8  // updates of each goroutine
)

// Counter tests a counter of visits that four processes with sixteen goroutines
// each increment through [store.Manager.Update]. See [Main].
func Counter(t *testing.T, address string) {
	s := open(t, address)
	defer func() { _ = s.Close() }()
	job := task{Job: "count", Address: address, Prefix: newPrefix("counter")}
	var wg sync.WaitGroup
	counts, errs := make([][]int, workers), make([]error, workers)
	for i := range workers {
		wg.Go(func() { counts[i], errs[i] = collectCounts(t.Context(), job) })
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
	got, _, err := store.NewManager(s, job.Prefix).Get(t.Context(), "visits")
	if err != nil || got != want || strconv.Itoa(len(all)) != want {
		t.Fatalf("%d visits were counted, and the counter is %q, not %s: %v", len(all), got, want, err)
	}
}

// collectCounts returns the counts that a worker prints.
func collectCounts(ctx context.Context, job task) ([]int, error) {
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

// count is the job of a worker of Counter. The test kills the worker if it
// hangs.
func count(s store.Store, job task) error {
	manager := store.NewManager(s, job.Prefix)
	var wg sync.WaitGroup
	errs := make([]error, visitors)
	for i := range errs {
		wg.Go(func() {
			for range visits {
				value, err := manager.Update(context.Background(), "visits", incrementVisits)
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

func incrementVisits(value string, present bool) (string, error) {
	if !present {
		return "1", nil
	}
	n, err := strconv.Atoi(value)
	return strconv.Itoa(n + 1), err
}
