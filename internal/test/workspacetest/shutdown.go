package workspacetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// Shutdown waits for runs, hands the queue over and refuses further messages.
// Other Managers handle everything else at once.
func (s *suite) Shutdown(t *testing.T) {
	s.on(t, func(t testing.TB, db store.Store, ttl time.Duration) {
		var mu sync.Mutex
		var handled []string
		answer := func(who string) func(context.Context, *workspace.Run) error {
			return func(ctx context.Context, run *workspace.Run) error {
				time.Sleep(ttl)
				mu.Lock()
				defer mu.Unlock()
				handled = append(handled, fmt.Sprint(who, " ", run.UserID(), " ", run.Message().ID, " attempt ", run.Attempt()))
				return ctx.Err()
			}
		}
		old := Open(t, db, workspace.Options{TTL: ttl, Run: answer("old")})
		for _, id := range []string{"1", "2"} {
			_, err := old.Submit(t.Context(), "ann", Text(id))
			require.NoError(t, err)
		}
		fresh := Open(t, db, workspace.Options{TTL: ttl, Run: answer("new")})
		time.Sleep(ttl / 10)

		began, done := time.Now(), make(chan error)
		go func() { done <- old.Shutdown(t.Context()) }()
		WaitUntil(t, ttl, func() bool {
			_, err := old.Submit(t.Context(), "ann", Text("2"))
			return err != nil
		})
		for _, send := range []func() error{
			func() error { _, err := old.Handle(t.Context(), "ann", Text("3")); return err },
			func() error { _, err := old.Submit(t.Context(), "ann", Text("3")); return err },
			func() error { return old.Do(t.Context(), "eve", Nothing) },
		} {
			require.ErrorIs(t, send(), workspace.ErrClosed)
		}
		out, err := fresh.Submit(t.Context(), "ann", Text("3"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusQueued, out.Status)
		time.Sleep(2 * ttl)
		require.NoError(t, <-done)
		require.NoError(t, fresh.Wait(t.Context()))
		require.Equal(t, []string{"old ann 1 attempt 0", "new ann 2 attempt 0", "new ann 3 attempt 0"}, handled)
		RequireAbout(t, ttl, 3*ttl-ttl/10, time.Since(began), "nothing waits for a lease")
	})
}
