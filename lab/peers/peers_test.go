package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newTestSite returns an empty data set. Without the server it skips the test,
// or fails it if STATE_TEST_REQUIRE names the server.
func newTestSite(t *testing.T, engine string) site {
	t.Helper()
	s, err := newSite(t.Context(), engine, t.TempDir())
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), engine) {
			t.Fatalf("no %s server, and STATE_TEST_REQUIRE names it: %v", engine, err)
		}
		t.Skipf("NOT TESTED: no %s server at its standard local port; set STATE_TEST_%s to the URL of one: %v",
			engine, strings.ToUpper(engine), err)
	}
	t.Cleanup(func() { require.NoError(t, s.remove(context.Background())) })
	return s
}

// gauge is a model that knows whether it is called for one user twice at once.
type gauge struct {
	mu      sync.Mutex
	busy    map[string]int
	overlap bool
}

func (g *gauge) answer(m message) string {
	g.add(m.User, 1)
	time.Sleep(time.Millisecond) // for others to come in between
	g.add(m.User, -1)
	return scripted(m)
}

func (g *gauge) add(user string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy[user] += n
	g.overlap = g.overlap || g.busy[user] > 1
}

// Every contender handles every message once, also when several users send at
// once, and a message that is sent twice once. Those that promise it handle the
// messages of a user one at a time and in order.
func TestContenders(t *testing.T) {
	for _, engine := range engineNames {
		t.Run(engine, func(t *testing.T) {
			for _, c := range contendersOn(engine) {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel() // those that poll spend the time waiting
					s := newTestSite(t, engine)
					g := &gauge{busy: map[string]int{}}
					h, err := c.open(t.Context(), s, g.answer)
					require.NoError(t, err)
					defer func() { require.NoError(t, h.close()) }()

					const users, n = 3, 4
					handleInSequence(t, h, users, n)
					handleAtOnce(t, h, n)
					require.False(t, c.ordered && g.overlap, "messages of one user were handled at once")
				})
			}
		})
	}
}

// handleInSequence lets each of several users send one message after the other.
func handleInSequence(t *testing.T, h handler, load, n int) {
	users := names(load)
	require.NoError(t, each(users, func(user string) error {
		for i := range n {
			reply, err := h.handle(t.Context(), newMessage(user, int64(i)))
			if err == nil && reply != scripted(message{}) {
				err = fmt.Errorf("the answer is %q", reply)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	_, err := h.handle(t.Context(), newMessage(users[0], int64(n-1))) // again
	require.NoError(t, err)
	for _, user := range users {
		require.Equal(t, wantedTexts(user, n), storedTexts(t, h, user), user)
	}
}

// handleAtOnce lets one user send several messages at once.
func handleAtOnce(t *testing.T, h handler, n int) {
	var next atomic.Int64
	require.NoError(t, each(names(n), func(string) error {
		_, err := h.handle(t.Context(), newMessage("hasty", next.Add(1)-1))
		return err
	}))
	require.ElementsMatch(t, wantedTexts("hasty", n), storedTexts(t, h, "hasty"))
}

func wantedTexts(user string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = newMessage(user, int64(i)).Text
	}
	return texts
}

func storedTexts(t *testing.T, h handler, user string) []string {
	texts, err := h.texts(t.Context(), user)
	require.NoError(t, err)
	return texts
}
