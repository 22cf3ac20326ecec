package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// TestMain lets the test binary be the program, so that nothing else has to be
// built.
func TestMain(m *testing.M) {
	if os.Getenv("WEB") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// site is the address of a site, in this process or another one.
type site struct {
	t   *testing.T
	url string
}

// newSite serves chats in memory, of a desk whose model a handler is.
func newSite(t *testing.T, model http.Handler) (site, *workspace.Manager) {
	t.Setenv("OPENAI_API_KEY", "key")
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	d := &desk{client: &http.Client{Transport: &wire.Transport{}}, url: server.URL, pace: time.Millisecond}
	m, err := workspace.Open(t.Context(), store.NewMemory(), d.options())
	require.NoError(t, err)
	page := httptest.NewServer(routes(m))
	t.Cleanup(func() {
		page.CloseClientConnections()
		page.Close()
		server.CloseClientConnections()
		_ = m.Close()
	})
	return site{t, page.URL}, m
}

// do sends a request and returns what is answered.
func (s site) do(method, path, body string) (status int, answer string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(data)
}

func (s site) post(path, body string) string {
	s.t.Helper()
	status, answer := s.do(http.MethodPost, path, body)
	require.Equal(s.t, http.StatusOK, status, answer)
	return answer
}

// chatOf is what the tests read of a snapshot.
type chatOf struct {
	View struct {
		State struct {
			Values struct {
				Refunded float64
				Lookups  int
			}
		}
		Version   int
		Messages  []struct{ Message struct{ Content any } }
		Suspended []struct{ Key, Reason string }
		Run       *struct{ ID string }
		Dead      []struct{ Reason string } `json:"dead_letters"`
		Queue     []struct{ ID string }
		Ended     []struct{ ID, Stop string }
	}
	Window int
}

// chat returns a snapshot, and its text.
func (s site) chat(thread string) (c chatOf, text string) {
	s.t.Helper()
	status, text := s.do(http.MethodGet, "/threads/"+thread, "")
	require.Equal(s.t, http.StatusOK, status, text)
	require.NoError(s.t, json.Unmarshal([]byte(text), &c))
	return c, text
}

// event is what the tests read of an event.
type event struct {
	Kind      string
	Seq       int
	MessageID string `json:"message_id"`
	Offset    int
	Delta     string
	Outcome   struct{ Status, Reply string }
}

// events reads a stream of events, from the answer to a request.
type events struct {
	t     *testing.T
	lines *bufio.Scanner
	text  strings.Builder // all of it
}

func (s site) events(thread string) *events {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/threads/"+thread+"/events", nil)
	require.NoError(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { resp.Body.Close() })
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	return &events{t: s.t, lines: bufio.NewScanner(resp.Body)}
}

// until reads events until one of them is the right one.
func (e *events) until(is func(event) bool) {
	e.t.Helper()
	for e.lines.Scan() {
		e.text.WriteString(e.lines.Text() + "\n")
		data, ok := strings.CutPrefix(e.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var next event
		require.NoError(e.t, json.Unmarshal([]byte(data), &next))
		if is(next) {
			return
		}
	}
	require.Fail(e.t, "the events have ended", "%v", e.lines.Err())
}

func ended(id string) func(event) bool {
	return func(e event) bool { return e.Kind == "ended" && e.MessageID == id }
}

func TestChat(t *testing.T) {
	s, _ := newSite(t, script(0))
	status, page := s.do(http.MethodGet, "/", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "page.js")
	var thread string
	require.NoError(t, json.Unmarshal([]byte(s.post("/threads", "{}")), &thread))
	live := s.events(thread)
	s.post("/threads/"+thread+"/messages", `{"id":"1","text":"Where is #W1002?"}`)
	live.until(ended("1"))
	s.post("/threads/"+thread+"/messages", `{"id":"2","text":"Refund it."}`)
	live.until(ended("2"))
	c, text := s.chat(thread)
	require.Equal(t, 1, c.View.State.Values.Lookups)
	require.Len(t, c.View.Suspended, 1)
	require.Contains(t, c.View.Suspended[0].Reason, "249.00 euros")
	key := c.View.Suspended[0].Key
	status, _ = s.do(http.MethodPost, "/threads/"+thread+"/messages", `{"id":"x","decisions":[{"kind":"approve","key":"call_2"}]}`)
	require.Equal(t, http.StatusConflict, status, "the id of a call is no key")
	s.post("/threads/"+thread+"/messages", `{"id":"3","decisions":[{"kind":"approve","key":"`+key+`"}]}`)
	live.until(ended("3"))
	c, _ = s.chat(thread)
	require.Equal(t, 249.0, c.View.State.Values.Refunded)
	status, _ = s.do(http.MethodPost, "/threads/"+thread+"/messages", `{"id":"4","decisions":[{"kind":"refuse","key":"`+key+`"}]}`)
	require.Equal(t, http.StatusConflict, status, "it is made")

	// The page has not what only the desk may read.
	for _, of := range []string{text, live.text.String()} {
		require.Contains(t, of, "lookups")
		require.NotContains(t, of, "risk")
	}
	status, list := s.do(http.MethodGet, "/threads", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, list, thread)
}

// The names of threads are anything, and never those of another user.
func TestThreadsOfTheUserOnly(t *testing.T) {
	s, m := newSite(t, script(0))
	require.NoError(t, m.Update(t.Context(), "bob", func(w *workspace.Workspace) error { return lookups.Set(w.State().As("desk"), 4711) }))
	require.NoError(t, m.Update(t.Context(), workspace.Thread("bob", "x"), func(w *workspace.Workspace) error {
		return lookups.Set(w.State().As("desk"), 4711)
	}))
	for _, name := range []string{"bob", "bob%2Fx", "..%2Fbob", "%2E%2E%2Fbob%2Fx", "%25", "%00", "-"} {
		_, text := s.do(http.MethodGet, "/threads/"+name, "")
		require.NotContains(t, text, "4711", name)
	}
	_, text := s.do(http.MethodGet, "/threads", "")
	require.Equal(t, "[]\n", text)
}

func TestRequestsThatAreWrong(t *testing.T) {
	s, _ := newSite(t, script(0))
	for name, tc := range map[string]struct {
		path, body string
		status     int
	}{
		"no JSON":           {"/threads/x/messages", "{", http.StatusBadRequest},
		"an empty message":  {"/threads/x/messages", `{"id":"1"}`, http.StatusBadRequest},
		"a long message":    {"/threads/x/messages", `{"id":"1","text":"` + strings.Repeat("a", 1<<20) + `"}`, http.StatusBadRequest},
		"a long beginning":  {"/threads", `{"from":"` + strings.Repeat("a", 1<<20) + `"}`, http.StatusBadRequest},
		"a chat without":    {"/threads", "", http.StatusBadRequest},
		"no such call":      {"/threads/x/messages", `{"id":"1","decisions":[{"kind":"approve","key":"call_1"}]}`, http.StatusConflict},
		"no such verb":      {"/threads/x/sing", `{}`, http.StatusConflict},
		"no run to stop":    {"/threads/x/stop", `{"run":"r"}`, http.StatusConflict},
		"nothing to retry":  {"/threads/x/retry", `{"id":"1"}`, http.StatusConflict},
		"nothing to remove": {"/threads/x/discard", `{"id":"1"}`, http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := s.do(http.MethodPost, tc.path, tc.body)
			require.Equal(t, tc.status, status, answer)
		})
	}
	request := func(path string, change func(*http.Request)) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(`{"id":"1","text":"Hello"}`))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		change(req)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	for _, path := range []string{"/threads", "/threads/x/messages"} {
		require.Equal(t, http.StatusForbidden, request(path, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }))
		require.Equal(t, http.StatusForbidden, request(path, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }))
		require.Equal(t, http.StatusBadRequest, request(path, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }))
	}
	for host, status := range map[string]int{
		"evil.example": 421, "localhost.evil.example:8080": 421, "": 200, "localhost": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200,
	} {
		require.Equal(t, status, request("/threads", func(r *http.Request) { r.Host = host }), host)
		require.Equal(t, status, request("/threads", func(r *http.Request) { r.Host, r.Method = host, http.MethodGet }), host)
	}
}

// What was said is edited, and asked again in another chat.
func TestEdit(t *testing.T) {
	s, _ := newSite(t, script(0))
	live := s.events("x")
	for _, m := range []string{`{"id":"1","text":"Where is #W1001?"}`, `{"id":"2","text":"Refund #W1001"}`, `{"id":"3","text":"And #W1003?"}`} {
		s.post("/threads/x/messages", m)
		live.until(ended(m[7:8]))
	}
	var fork string
	require.NoError(t, json.Unmarshal([]byte(s.post("/threads", `{"from":"x","before":5}`)), &fork))
	c, text := s.chat(fork)
	require.Len(t, c.View.Messages, 4)
	require.NotContains(t, text, "Refund #W1001")
	require.Equal(t, 1, c.View.State.Values.Lookups)
	require.Zero(t, c.View.State.Values.Refunded, "the fields are as they were")
	live = s.events(fork)
	s.post("/threads/"+fork+"/messages", `{"id":"1","text":"Where is #W1002?"}`)
	live.until(ended("1"))
	c, _ = s.chat(fork)
	require.Equal(t, 2, c.View.State.Values.Lookups)
	c, _ = s.chat("x")
	require.Equal(t, 2, c.View.State.Values.Lookups)
	require.InDelta(t, 39.9, c.View.State.Values.Refunded, 0.001)
	_, list := s.do(http.MethodGet, "/threads", "")
	require.Equal(t, 2, strings.Count(list, "Where is #W1001?"), "titles")

	for body, want := range map[string]int{`{"from":"x","before":99}`: http.StatusConflict, `{"from":"y","before":1}`: http.StatusConflict, `{`: http.StatusBadRequest} {
		status, _ := s.do(http.MethodPost, "/threads", body)
		require.Equal(t, want, status, body)
	}
}

// half answers with half a text, and with the rest when it may.
func half(goOn <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		send(w, object{"content": "Half of it"}, nil)
		select {
		case <-goOn:
		case <-r.Context().Done():
			return
		}
		send(w, object{"content": ", and the rest."}, nil)
		send(w, object{}, "stop")
	})
}

// Two pages follow one answer. The second one comes late, and gets the text so far.
func TestTwoPages(t *testing.T) {
	goOn := make(chan struct{})
	s, _ := newSite(t, half(goOn))
	pages := []*events{s.events("x")}
	texts := make([]string, 2)
	read := func(i int, whole string) {
		pages[i].until(func(e event) bool {
			if e.Kind == "delta" {
				require.Len(t, texts[i], e.Offset)
				texts[i] += e.Delta
			}
			return texts[i] == whole
		})
	}
	s.post("/threads/x/messages", `{"id":"1","text":"Hello"}`)
	read(0, "Half of it")
	pages = append(pages, s.events("x"))
	read(1, "Half of it")
	close(goOn)
	for i := range pages {
		read(i, "Half of it, and the rest.")
		pages[i].until(ended("1"))
	}
}

// A page that reads nothing for a while misses events. It sees that by their
// numbers, and a snapshot has what it has missed.
func TestSlowPage(t *testing.T) {
	s, m := newSite(t, script(0))
	slow := &slowPage{header: http.Header{}, goOn: make(chan struct{}), written: make(chan string, 1000)}
	ctx, leave := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	defer serving.Wait()
	defer leave()
	serving.Go(func() {
		routes(m).ServeHTTP(slow, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/threads/x/events", nil))
	})
	require.Equal(t, "retry: 500\n\n", <-slow.written)
	fast := s.events("x")
	for i := range 30 {
		id := string(rune('a' + i))
		s.post("/threads/x/messages", `{"id":"`+id+`","text":"Where is #W1001?"}`)
		fast.until(ended(id))
	}
	close(slow.goOn)
	missed, last := false, 0
	for chunk := range slow.written {
		data, ok := strings.CutPrefix(chunk, "data: ")
		if !ok {
			continue
		}
		var e event
		require.NoError(t, json.Unmarshal([]byte(data), &e))
		missed = missed || e.Seq != last+1
		last = e.Seq
		if ended(string(rune('a' + 29)))(e) {
			break
		}
	}
	require.True(t, missed)
	c, _ := s.chat("x")
	require.Equal(t, 30, c.View.State.Values.Lookups)
}

// slowPage is the page of a person behind a network that stands still until goOn is
// closed.
type slowPage struct {
	header  http.Header
	goOn    chan struct{}
	written chan string
}

func (p *slowPage) Header() http.Header              { return p.header }
func (p *slowPage) WriteHeader(int)                  {}
func (p *slowPage) Flush()                           {}
func (p *slowPage) SetWriteDeadline(time.Time) error { return nil }

func (p *slowPage) Write(data []byte) (int, error) {
	if strings.HasPrefix(string(data), "data: ") {
		<-p.goOn
	}
	p.written <- string(data)
	return len(data), nil
}

// A stopped answer, a message that has failed, and one that waits.
func TestStopRetryDiscard(t *testing.T) {
	goOn := make(chan struct{})
	var asked atomic.Int32
	s, _ := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 2 {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		half(goOn).ServeHTTP(w, r)
	}))
	live := s.events("x")
	s.post("/threads/x/messages", `{"id":"1","text":"one"}`)
	live.until(func(e event) bool { return e.Kind == "delta" })
	s.post("/threads/x/messages", `{"id":"2","text":"two"}`)
	s.post("/threads/x/messages", `{"id":"3","text":"three"}`)
	c, _ := s.chat("x")
	require.Len(t, c.View.Queue, 2)
	s.post("/threads/x/discard", `{"id":"3"}`)
	s.post("/threads/x/stop", `{"run":"`+c.View.Run.ID+`"}`)
	live.until(ended("2"))
	c, _ = s.chat("x")
	require.Empty(t, c.View.Queue)
	require.Len(t, c.View.Messages, 2) // what was said stays
	require.Len(t, c.View.Dead, 1)
	close(goOn)
	s.post("/threads/x/retry", `{"id":"2"}`)
	live.until(ended("2"))
	c, _ = s.chat("x")
	require.Empty(t, c.View.Dead)
	require.Len(t, c.View.Messages, 4)
}

// An answer that is cut off or filtered is no failure, and the page is told how it
// has ended.
func TestAnswersThatAreNotFinished(t *testing.T) {
	s, _ := newSite(t, script(0))
	live := s.events("x")
	for id, want := range map[string]string{"essay": "length", "poem": "filtered", "hello": ""} {
		s.post("/threads/x/messages", `{"id":"`+id+`","text":"`+id+`"}`)
		live.until(ended(id))
		c, text := s.chat("x")
		require.Empty(t, c.View.Dead)
		stop := ""
		for _, e := range c.View.Ended {
			if e.ID == id {
				stop = e.Stop
			}
		}
		require.Equal(t, want, stop, text)
	}
	page, err := os.ReadFile("page/page.js")
	require.NoError(t, err)
	require.Contains(t, string(page), "e.stop && (endings[e.stop]")
	for _, stop := range []state.Stop{state.StopLength, state.StopRefused, state.StopFiltered, state.StopRepeated, state.StopBudget} {
		require.Contains(t, string(page), string(stop)+": \"")
	}
}

// A process that is killed in the middle of an answer asks for it again when it is
// started again.
func TestKilledInTheMiddleOfAnAnswer(t *testing.T) {
	goOn := make(chan struct{})
	model := httptest.NewServer(half(goOn))
	t.Cleanup(model.Close)
	t.Cleanup(model.CloseClientConnections)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr, file := l.Addr().String(), filepath.Join(t.TempDir(), "web.db")
	require.NoError(t, l.Close())
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-addr", addr, "-db", file)
		cmd.Env = append(os.Environ(), "WEB=1", "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+model.URL, "GORACE=atexit_sleep_ms=0")
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			resp, err := http.Get("http://" + addr)
			return err == nil && resp.Body.Close() == nil
		}, 20*time.Second, 20*time.Millisecond)
		return cmd
	}
	s, first := site{t, "http://" + addr}, start()
	live := s.events("x")
	s.post("/threads/x/messages", `{"id":"1","text":"Hello"}`)
	live.until(func(e event) bool { return e.Kind == "delta" })
	require.NoError(t, first.Process.Signal(syscall.SIGKILL))
	require.Error(t, first.Wait())
	close(goOn)

	second := start()
	require.Contains(t, s.post("/threads/x/messages", `{"id":"1","text":"Hello"}`), `"duplicate"`)
	var c chatOf
	require.Eventually(t, func() bool {
		c, _ = s.chat("x")
		return len(c.View.Messages) == 2
	}, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, "Half of it, and the rest.", c.View.Messages[1].Message.Content)
	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	require.NoError(t, second.Wait())
}
