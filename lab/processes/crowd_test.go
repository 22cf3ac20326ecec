package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Many users send many messages each at the same time. Every message is handled
// once, and messages that a user sends in sequence are handled in that sequence.
func TestCrowd(t *testing.T) {
	n := min(100, max(20, effort.Runs(1)/2))
	t.Run("memory", func(t *testing.T) { crowd(t, store.NewMemory(), n) })
	t.Run("sqlite", func(t *testing.T) { crowd(t, open(t, sqlite(t)), n) })
	for _, p := range servers {
		t.Run(p.name, func(t *testing.T) {
			p.find(t)
			crowd(t, open(t, p.fresh(t)), n)
		})
	}
}

func crowd(t *testing.T, db store.Store, n int) {
	m, err := workspace.Open(t.Context(), db, &workspace.Options{
		Schema: schema, Queue: n,
		Run: func(_ context.Context, r *workspace.Run) error {
			r.SetReply("It is done.")
			return errors.Join(
				log.Set(r.State(), []string{r.Message().ID}),
				state.Messages.Set(r.State(), []state.Message{state.AssistantText("It is done.")}))
		},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()

	var mu sync.Mutex
	var times []time.Duration
	waited := map[string]time.Duration{} // for all messages of a user
	handle := func(user, message string) error {
		sent := time.Now()
		out, err := m.Handle(t.Context(), user, workspace.Message{ID: message, Content: state.UserText("Do it, please.")})
		if err == nil && out.Status != workspace.StatusDone {
			err = fmt.Errorf("user %s: message %s is %s", user, message, out.Status)
		}
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Since(sent))
		waited[user] += time.Since(sent)
		return err
	}
	want := make([]string, n)
	for i := range want {
		want[i] = fmt.Sprintf("m%05d", i)
	}
	errs := make(chan error, n*n)
	var wg sync.WaitGroup
	began := time.Now()
	for u := range n {
		user := fmt.Sprint("user ", u)
		// Every other user sends from four windows.
		windows := 1 + 3*(u%2)
		for w := range windows {
			wg.Go(func() {
				for i := w; i < n; i += windows {
					errs <- handle(user, want[i])
				}
			})
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	for u := range n {
		user := fmt.Sprint("user ", u)
		var v *workspace.View
		for v == nil || v.Run != nil { // the last of those that waited
			v, err = m.View(t.Context(), user)
			require.NoError(t, err)
			require.NoError(t, nap(t.Context(), 5*time.Millisecond))
		}
		got := log.Or(v.State(), nil)
		if u%2 == 1 {
			slices.Sort(got)
		}
		require.Equal(t, want, got, user)
		require.Empty(t, v.Queue)
	}
	took := time.Since(began)
	slices.Sort(times)
	for windows, first := range map[int]int{1: 0, 4: 1} { // fairness: users who do the same wait as long
		var means []time.Duration
		for u := first; u < n; u += 2 {
			means = append(means, (waited[fmt.Sprint("user ", u)] / time.Duration(n)).Round(10*time.Microsecond))
		}
		slices.Sort(means)
		t.Logf("users with %d messages at a time wait %s to %s for one, on average", windows, means[0], means[len(means)-1])
	}
	t.Logf("%d users with %d messages each: %.0f messages/s, answered after %s (p50), %s (p99)", n, n,
		float64(n*n)/took.Seconds(), times[len(times)/2].Round(10*time.Microsecond), times[len(times)*99/100].Round(10*time.Microsecond))
}
