package inspect_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/workspace"
)

// TestManyReadersOfAServer has readers of all kinds at once: requests that are given
// up, pages, and writes. The server then ends, and nothing is left of them.
func TestManyReadersOfAServer(t *testing.T) {
	f := newFixture(t, 20)
	h := f.handler(t, &inspect.Options{
		Authorize: inspect.Trusted(inspect.Access{Read: true, Write: true, Delete: true}),
	})
	server := httptest.NewServer(h)
	before := runtime.NumGoroutine()
	client := &http.Client{Transport: &http.Transport{}}
	// ask reads at most some bytes of an answer. Its context may end before.
	ask := func(ctx context.Context, target string, bytes int64) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+target, nil)
		if err != nil {
			t.Error(err)
			return
		}
		p, err := client.Do(r)
		if err != nil {
			return // it was given up
		}
		defer p.Body.Close()
		if p.StatusCode >= 500 && p.StatusCode != http.StatusServiceUnavailable && !strings.Contains(target, "dave") {
			t.Errorf("%s: %d", target, p.StatusCode)
		}
		_, _ = io.CopyN(io.Discard, p.Body, bytes)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { // pages that are given up
			for n := range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n*i)*100*time.Microsecond)
				ask(ctx, fmt.Sprintf("/workspace/history?user=alice&before=%d", n), 1<<20)
				ask(ctx, "/", 1<<20)
				cancel()
			}
		})
		wg.Go(func() { // pages
			for _, page := range pagesOf([]string{"alice", "bob", "carol", "dave", "..", "a/b?x=1", "\xff", "nobody"}[i%8]) {
				ask(t.Context(), page, 1<<20)
			}
		})
	}
	wg.Go(func() {
		for i := range 50 {
			f.update(t, "alice", func(st *state.State) error { return cost.Set(st, float64(i)) })
		}
	})
	wg.Go(func() {
		for i := range 10 {
			if _, err := f.manager.Handle(t.Context(), "frida", workspace.Message{ID: fmt.Sprint("f", i), Content: state.UserText("Hello!")}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	server.CloseClientConnections()
	server.Close()
	client.CloseIdleConnections()
	for runtime.NumGoroutine() > before+5 { // those of the Manager come and go
		time.Sleep(time.Millisecond)
	}
}
