package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

// stream is the connection of a reader of events. Its methods are those that a
// ResponseController uses.
type stream struct {
	cancel context.CancelFunc
	ended  chan struct{}
	header http.Header

	mu       sync.Mutex
	code     int
	body     bytes.Buffer
	deadline time.Time
	stuck    chan struct{} // closed when the reader takes something again
	late     chan struct{} // closed when the deadline is set to one that is over
}

func (s *stream) Header() http.Header { return s.header }
func (s *stream) WriteHeader(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}
func (s *stream) Flush() {}

func (s *stream) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = at
	if !at.IsZero() && !at.After(time.Now()) {
		close(s.late)
	}
	return nil
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	stuck, left := s.stuck, time.Until(s.deadline)
	s.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-s.late:
			return 0, os.ErrDeadlineExceeded
		case <-time.After(left):
			return 0, os.ErrDeadlineExceeded
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.code == 0 {
		s.code = http.StatusOK
	}
	return s.body.Write(p)
}

// take returns what was written since it was called last.
func (s *stream) take() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.body.String()
	s.body.Reset()
	return text
}

// halt makes the reader take nothing until the returned function is called.
func (s *stream) halt() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = make(chan struct{})
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.stuck)
		s.stuck = nil
	})
}

func (s *stream) hasEnded() bool {
	synctest.Wait()
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// listen begins to read the events of a workspace.
func listen(t *testing.T, h http.Handler, target string, lastEventID string) *stream {
	s := &stream{header: http.Header{}, ended: make(chan struct{}), late: make(chan struct{})}
	r := localRequest(http.MethodGet, target, "")
	if lastEventID != "" {
		r.Header.Set("Last-Event-ID", lastEventID)
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(r.Context())
	t.Cleanup(func() {
		s.cancel()
		<-s.ended
	})
	go func() {
		defer close(s.ended)
		h.ServeHTTP(s, r.WithContext(ctx))
	}()
	return s
}

// event returns an event as it is sent.
func event(s workspace.Summary) string {
	return fmt.Sprintf("id: %s\ndata: {\"seq\":%[1]q,\"version\":%d,\"run\":\"\",\"queued\":%d,\"dead_letters\":%d}\n\n",
		s.Revision, s.Version, s.Queued, s.DeadLetters)
}

func summaryOf(t testing.TB, f *fixture, user string) workspace.Summary {
	t.Helper()
	s, err := f.manager.Summary(context.Background(), user)
	require.NoError(t, err)
	return s
}

const retryLine = "retry: 2000\n\n"

func TestEventsSayWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		h := f.handler(t, nil)
		s := listen(t, h, "/workspace/events?user=alice", "")
		require.Equal(t, retryLine+event(summaryOf(t, f, "alice")), s.take())
		require.Equal(t, "text/event-stream", s.header.Get("Content-Type"))
		require.Equal(t, "no-store", s.header.Get("Cache-Control"))

		time.Sleep(16 * time.Second)
		require.Equal(t, ": here\n\n", s.take())

		f.visit(t, "alice")
		f.visit(t, "carol")
		time.Sleep(time.Second)
		require.Equal(t, event(summaryOf(t, f, "alice")), s.take())

		s.cancel()
		require.True(t, s.hasEnded())
		s.mu.Lock()
		require.Zero(t, s.deadline, "the deadline is that of one write, not of the connection")
		s.mu.Unlock()
	})
}

func TestEventsNameARunWithoutItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		s := listen(t, f.handler(t, nil), "/workspace/events?user=bob", "")
		body := s.take()
		require.Regexp(t, `"run":"[0-9a-f]{32}","queued":1,"dead_letters":0`, body)
		require.NotContains(t, body, summaryOf(t, f, "bob").Run.ID)
	})
}

func TestEventsResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		h := f.handler(t, nil)
		old := summaryOf(t, f, "alice")
		id := old.Revision
		current := listen(t, h, "/workspace/events?user=alice", id)
		first := listen(t, h, "/workspace/events?user=alice&after="+id, "")
		require.Equal(t, retryLine, current.take())
		require.Equal(t, retryLine, first.take())
		f.visit(t, "alice")
		time.Sleep(time.Second)
		now := event(summaryOf(t, f, "alice"))
		require.Equal(t, now, current.take())
		require.Equal(t, now, first.take())
		behind := listen(t, h, "/workspace/events?user=alice&after=1", id)
		require.Equal(t, retryLine+now, behind.take())
	})
}

func TestEventsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		h := f.handler(t, nil)
		var streams []*stream
		for range 64 {
			streams = append(streams, listen(t, h, "/workspace/events?user=alice", ""))
		}
		for _, s := range streams {
			require.Contains(t, s.take(), "data: ")
		}
		p := get(t, h, "/workspace/events?user=carol")
		require.Equal(t, http.StatusServiceUnavailable, p.code)
		require.Equal(t, "30", p.header.Get("Retry-After"))
		require.Equal(t, http.StatusOK, get(t, h, "/workspace?user=alice").code)

		streams[7].cancel()
		require.True(t, streams[7].hasEnded())
		require.Contains(t, listen(t, h, "/workspace/events?user=carol", "").take(), "data: ")
	})
}

func TestCloseEndsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		h := f.handler(t, nil)
		s := listen(t, h, "/workspace/events?user=alice", "")
		stuck := listen(t, h, "/workspace/events?user=alice", "")
		s.take()
		defer stuck.halt()()
		f.visit(t, "alice")
		time.Sleep(time.Second)
		before := time.Now()
		h.Close()
		require.Zero(t, time.Since(before), "Close waits for no reader")
		require.True(t, s.hasEnded())
		require.True(t, stuck.hasEnded())
		require.Equal(t, http.StatusServiceUnavailable, get(t, h, "/workspace/events?user=alice").code)
		require.Equal(t, http.StatusOK, get(t, h, "/workspace?user=alice").code)
		h.Close()
	})
}

func TestSlowReaderOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, 0)
		h := f.handler(t, nil)
		fast := listen(t, h, "/workspace/events?user=alice", "")
		slow := listen(t, h, "/workspace/events?user=alice", "")
		stuck := listen(t, h, "/workspace/events?user=alice", "")
		for _, s := range []*stream{fast, slow, stuck} {
			s.take()
		}
		resume := slow.halt()
		defer stuck.halt()()
		for range 10 {
			f.visit(t, "alice")
			time.Sleep(time.Second)
		}
		require.Equal(t, 10, strings.Count(fast.take(), "data: "))
		resume()
		body := slow.take()
		require.Equal(t, 2, strings.Count(body, "data: "), "one that was being written, and the newest")
		require.True(t, strings.HasSuffix(body, event(summaryOf(t, f, "alice"))), body)

		time.Sleep(30 * time.Second)
		require.True(t, stuck.hasEnded(), "a reader that takes nothing keeps no stream")
		require.False(t, slow.hasEnded())
	})
}

func TestEventsEndWhenTheWorkspaceCannotBeRead(t *testing.T) {
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched=%v", watched), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 0)
				h := newCountedHandler(t, f, watched).Handler
				s := listen(t, h, "/workspace/events?user=alice", "")
				require.Contains(t, s.take(), "data: ")
				_, err := store.Put(context.Background(), f.db, "agent:workspace:alice", []byte("{}"), store.Always)
				require.NoError(t, err)
				time.Sleep(10 * time.Second)
				require.True(t, s.hasEnded())
				require.Equal(t, http.StatusInternalServerError, get(t, h, "/workspace/events?user=alice").code)
			})
		})
	}
}

// counted is a handler on a store that counts.
type counted struct {
	*inspect.Handler
	db *fakestore.Counter
}

func newCountedHandler(t *testing.T, f *fixture, watched bool) *counted {
	var db store.Store = f.db
	if !watched {
		db = fakestore.Bare{Store: db}
	}
	c := &counted{db: fakestore.Count(db)}
	m, err := workspace.Open(context.Background(), c.db, &workspace.Options{Schema: desk})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	c.Handler = newHandler(t, m, nil)
	return c
}

func TestIdlePagesCostOneReadASecond(t *testing.T) {
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched=%v", watched), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, 0)
				h := newCountedHandler(t, f, watched)
				for range 100 { // of which 64 have a stream
					listen(t, h, "/workspace/events?user=alice", "")
				}
				synctest.Wait()
				before := h.db.Reads()
				time.Sleep(time.Minute)
				synctest.Wait()
				require.LessOrEqual(t, h.db.Reads()-before, 60)
				require.Positive(t, h.db.Reads()-before)
			})
		})
	}
}

func TestOnlyThePresentIsLive(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	p := get(t, h, "/workspace?user=alice")
	require.Contains(t, p.body, `data-live data-events="./workspace/events?user=alice" data-seq="`)
	require.NotContains(t, p.header, "Refresh")
	p = get(t, h, "/workspace?user=alice&at=3")
	require.Contains(t, p.body, `data-page="state"`)
	require.NotContains(t, p.body, "data-live")
	require.NotContains(t, p.body, "data-events")
	p = get(t, h, "/workspace?user=alice&refresh=5")
	require.Equal(t, "5", p.header.Get("Refresh"))
	require.Contains(t, p.body, "Stop refreshing")
}

func TestEventsOfWorkspacesThatTheRequestDoesNotSee(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{
		Read: true, User: func(id string) bool { return id != "alice" },
	})})
	for target, code := range map[string]int{
		"/workspace/events?user=alice":  http.StatusNotFound,
		"/workspace/events?user=nobody": http.StatusNotFound,
		"/workspace/events":             http.StatusBadRequest,
		"/workspace/events?user=dave":   http.StatusInternalServerError,
	} {
		require.Equal(t, code, get(t, h, target).code, target)
	}
	head := send(t, h, localRequest(http.MethodHead, "/workspace/events?user=carol", ""))
	require.Equal(t, http.StatusOK, head.code)
	require.Empty(t, head.body)
}
