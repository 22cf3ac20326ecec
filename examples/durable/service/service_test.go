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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace/page"
)

// TestMain lets the test binary be the service, so that nothing else has to be
// built.
func TestMain(m *testing.M) {
	if os.Getenv("SERVICE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const people = `{"Bearer a1": {"User": "ann", "Agent": "customer"}, "Bearer b1": {"User": "bob", "Agent": "customer"}, "Bearer e1": {"Agent": "employee"}}`

// desk is some processes of the service on one file.
type desk struct {
	t           *testing.T
	file, model string
}

func newDesk(t *testing.T, model http.HandlerFunc) *desk {
	server := httptest.NewServer(model)
	t.Cleanup(server.CloseClientConnections) // of processes that were killed
	t.Cleanup(server.Close)
	return &desk{t, filepath.Join(t.TempDir(), "desk.db"), server.URL}
}

// process is one of them.
type process struct {
	t    *testing.T
	url  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // by then
}

func (d *desk) start() *process {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(d.t, err)
	addr := l.Addr().String()
	require.NoError(d.t, l.Close())
	p := &process{t: d.t, url: "http://" + addr, done: make(chan struct{})}
	p.cmd = exec.CommandContext(d.t.Context(), os.Args[0])
	p.cmd.Env = append(os.Environ(), "SERVICE=1", "ADDR="+addr, "DB="+d.file, "PEOPLE="+people,
		"OPENAI_API_KEY=key", "OPENAI_BASE_URL="+d.model, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdout, p.cmd.Stderr = os.Stdout, os.Stderr
	require.NoError(d.t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	d.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	require.Eventually(d.t, func() bool {
		resp, err := http.Get(p.url)
		return err == nil && resp.Body.Close() == nil
	}, 20*time.Second, 20*time.Millisecond)
	return p
}

// end sends a signal, and waits for the end of the process.
func (p *process) end(s os.Signal) error {
	require.NoError(p.t, p.cmd.Process.Signal(s))
	return p.wait()
}

func (p *process) wait() error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(30 * time.Second):
		p.t.Fatal("the process has not ended")
		return nil
	}
}

// do sends a request with a token, and returns the answer with its status.
func (p *process) do(token, method, path, body string) (int, string) {
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return resp.StatusCode, string(answer)
}

// says lets Ann send a message to a thread.
func (p *process) says(thread, id, text string) {
	body, err := json.Marshal(statehttp.Message{ID: id, Text: text})
	require.NoError(p.t, err)
	status, answer := p.do("a1", http.MethodPost, "/threads/"+thread+"/messages", string(body))
	require.Equal(p.t, http.StatusOK, status, answer)
}

// page returns what a page shows of a thread of Ann.
func (p *process) page(thread string) (got page.Page) {
	status, answer := p.do("a1", http.MethodGet, "/threads/"+thread, "")
	if status != http.StatusOK {
		return got // nothing was said yet
	}
	require.NoError(p.t, json.Unmarshal([]byte(answer), &got))
	return got
}

// shows waits until the page of a thread has a text.
func (p *process) shows(thread, text string) {
	require.Eventually(p.t, func() bool {
		data, err := json.Marshal(p.page(thread))
		require.NoError(p.t, err)
		return strings.Contains(string(data), text)
	}, 30*time.Second, 50*time.Millisecond, "%s", text)
}

// waiting returns the key of the call of a thread that waits.
func (p *process) waiting(thread string) (key string) {
	require.Eventually(p.t, func() bool {
		for _, item := range p.page(thread).Items {
			for _, part := range item.Parts {
				if part.Call != nil && part.Call.State == page.CallWaiting {
					key = part.Call.Key
				}
			}
		}
		return key != ""
	}, 30*time.Second, 50*time.Millisecond)
	return key
}

// events follows the events of a thread of Ann until one has a text.
func (p *process) events(thread string) (until func(text string)) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	p.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/threads/"+thread+"/events", nil)
	require.NoError(p.t, err)
	req.Header.Set("Authorization", "Bearer a1")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		require.Fail(p.t, "the events have ended", "%v", lines.Err())
	}
}

// An answer is shown as it comes. When its process is killed in the middle, another one
// asks for it again.
func TestAnotherProcessGoesOnInTheMiddleOfAnAnswer(t *testing.T) {
	var asked int
	var mu sync.Mutex
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		first := asked == 1
		mu.Unlock()
		if !first {
			say(w, "Which order is it about?")
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the process is gone
		send(w, object{"content": "Which order"}, nil)
		<-r.Context().Done()
	})
	a, b := d.start(), d.start()
	a.says("1", "m1", "Hello!")
	a.events("1")("Which order")
	b.says("1", "m2", "Are you there?") // waits behind the first
	b.says("2", "m1", "Another thread")
	b.shows("2", "Which order is it about?")
	require.Error(t, a.end(syscall.SIGKILL))

	require.Eventually(t, func() bool { return len(b.page("1").Items) == 4 && len(b.page("1").Turns) == 0 }, time.Minute, 50*time.Millisecond)
	b.shows("1", "Are you there?")
	mu.Lock()
	require.Equal(t, 4, asked, "the answer that was not committed is asked for again")
	mu.Unlock()
	b.says("1", "m1", "Hello!") // has been handled
	require.Len(t, b.page("1").Items, 4)
	require.NoError(t, b.end(syscall.SIGTERM))
}

func TestARefundIsApproved(t *testing.T) {
	d := newDesk(t, script)
	a, b := d.start(), d.start()
	a.says("1", "m1", "Refund my order W1.")
	key := a.waiting("1")
	b.says("1", "m2", "Are you there?")
	b.shows("1", "Which order is it about?")

	// A process ends while nothing waits for it, and another one makes the call.
	require.NoError(t, a.end(syscall.SIGTERM))
	require.Equal(t, key, b.waiting("1"))
	decide := func(token, query, key string) (int, string) {
		return b.do(token, http.MethodPost, "/threads/1/decisions"+query, `{"id":"`+token+key+`","decisions":[{"key":"`+key+`","kind":"approve"}]}`)
	}
	for _, test := range []struct {
		token, query, key string
		status            int
	}{
		{"a1", "", key, http.StatusForbidden},                 // not a customer
		{"b1", "?user=ann", key, http.StatusNotFound},         // whose threads are his own
		{"nobody", "?user=ann", key, http.StatusUnauthorized}, // without a token
		{"e1", "", key, http.StatusUnauthorized},              // without a customer
		{"e1", "?user=ann", "call_1", http.StatusConflict},    // an id is no key
		{"e1", "?user=ann", key, http.StatusOK},               // the employee
		{"e1", "?user=ann", key, http.StatusOK},               // again, with the same id
	} {
		status, answer := decide(test.token, test.query, test.key)
		require.Equal(t, test.status, status, "%+v: %s", test, answer)
	}
	b.shows("1", "It is done: order W1 is refunded with the key "+key)
	status, answer := b.do("e1", http.MethodPost, "/threads/1/decisions?user=ann", `{"id":"late","decisions":[{"key":"`+key+`","kind":"approve"}]}`)
	require.Equal(t, http.StatusConflict, status, answer)
	status, _ = b.do("b1", http.MethodGet, "/threads/1?user=ann", "")
	require.Equal(t, http.StatusNotFound, status, "a customer sees no thread of another one")
	require.NoError(t, b.end(syscall.SIGTERM))
}

// What attackers on the net send is refused.
func TestRequestsThatAreRefused(t *testing.T) {
	p := newDesk(t, script).start()
	request := func(body string, change func(*http.Request)) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/threads/1/messages", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer a1")
		req.Header.Set("Content-Type", "application/json")
		change(req)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	const hello = `{"id":"m1","text":"Hello!"}`
	require.Equal(t, http.StatusForbidden, request(hello, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }))
	require.Equal(t, http.StatusForbidden, request(hello, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }))
	require.Equal(t, http.StatusMisdirectedRequest, request(hello, func(r *http.Request) { r.Host = "evil.example" }))
	require.Equal(t, http.StatusUnauthorized, request(hello, func(r *http.Request) { r.Header.Del("Authorization") }))
	require.Equal(t, http.StatusUnsupportedMediaType, request(hello, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }))
	require.Equal(t, http.StatusRequestEntityTooLarge, request(`{"id":"m1","text":"`+strings.Repeat("a", 9<<20)+`"}`, func(*http.Request) {}))
	require.Empty(t, p.page("1").Items)
	require.Equal(t, http.StatusOK, request(hello, func(*http.Request) {}))
}

func TestAnAnswerIsFinishedBeforeTheProcessEnds(t *testing.T) {
	asked := make(chan struct{})
	goOn := make(chan struct{})
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-goOn
		say(w, "Which order is it about?")
	})
	p := d.start()
	p.says("1", "m1", "Hello!")
	until := p.events("1")
	<-asked
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	time.AfterFunc(200*time.Millisecond, func() { close(goOn) })
	until("about?") // a page sees the end of the answer
	require.NoError(t, p.wait())
	d.start().shows("1", "Which order is it about?")
}

// The page of the guide counts the lines.
func TestTheServiceIsShort(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	lines := 0
	for line := range strings.Lines(string(source)) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 100)
	}
	require.LessOrEqual(t, lines, 60)
}
