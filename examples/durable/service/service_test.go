package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	out  lockedBuffer
	done chan struct{} // closed when it has ended
	err  error         // by then
}

// lockedBuffer is what a process prints.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (d *desk) start() *process {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(d.t, err)
	addr := l.Addr().String()
	require.NoError(d.t, l.Close())
	p := &process{t: d.t, url: "http://" + addr + "/users/ann", done: make(chan struct{})}
	p.cmd = exec.CommandContext(d.t.Context(), os.Args[0], "-addr", addr, "-db", d.file)
	p.cmd.Env = append(os.Environ(), "SERVICE=1", "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+d.model, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, os.Stderr
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

// post posts a form, and returns the answer with its status.
func (p *process) post(path string, form url.Values) (int, string) {
	resp, err := http.PostForm(p.url+path, form)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return resp.StatusCode, string(answer)
}

func (p *process) says(id, text string) {
	status, answer := p.post("/messages", url.Values{"id": {id}, "text": {text}})
	require.Equal(p.t, http.StatusOK, status, answer)
}

// event is what the test reads of an event.
type event struct {
	Kind      string
	MessageID string `json:"message_id"`
	Delta     string
	Suspended int
	Outcome   struct{ Status, Reply string }
}

// events follows the events of the user, which a function gets one by one until
// it returns true.
func (p *process) events() (until func(func(event) bool)) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	p.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/events", nil)
	require.NoError(p.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func(is func(event) bool) {
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var e event
			require.NoError(p.t, json.Unmarshal([]byte(data), &e))
			if is(e) {
				return
			}
		}
		require.Fail(p.t, "the events have ended", "%v", lines.Err())
	}
}

// ended returns a function for until, which waits for the end of a message and
// notes the reply.
func ended(reply *string) func(event) bool {
	return func(e event) bool {
		*reply = e.Outcome.Reply
		return e.Kind == "ended"
	}
}

// view returns the JSON of the view.
func (p *process) view() string {
	resp, err := http.Get(p.url)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return string(data)
}

func TestAnotherProcessGoesOnInTheMiddleOfAnAnswer(t *testing.T) {
	var asked int
	var mu sync.Mutex
	half := make(chan struct{})
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		first := asked == 1
		mu.Unlock()
		if !first {
			say(w, "Which order is it about?")
			return
		}
		send(w, object{"content": "Which order"}, nil)
		close(half)
		<-r.Context().Done()
	})
	a, b := d.start(), d.start()
	until := a.events()
	a.says("1", "Hello!")
	<-half
	text := ""
	until(func(e event) bool { // tokens, as they come
		text += e.Delta
		return text == "Which order"
	})
	untilEnd := b.events()
	b.says("2", "Are you there?") // waits behind the first
	require.Error(t, a.end(syscall.SIGKILL))

	var replies []string
	untilEnd(func(e event) bool {
		if e.Kind == "ended" {
			replies = append(replies, e.MessageID+" "+e.Outcome.Status+" "+e.Outcome.Reply)
		}
		return len(replies) == 2
	})
	require.Equal(t, []string{"1 done Which order is it about?", "2 done Which order is it about?"}, replies)
	require.Equal(t, 3, asked, "the answer that was not committed is asked for again")
	b.says("1", "Hello!")
	require.Contains(t, b.view(), `"number":4`)
	require.NotContains(t, b.view(), `"number":5`)
	require.NoError(t, b.end(syscall.SIGTERM))
}

func TestARefundIsApproved(t *testing.T) {
	d := newDesk(t, script)
	a, b := d.start(), d.start()
	untilA, untilB := a.events(), b.events()
	a.says("1", "Refund my order #W1.")
	var reply string
	untilA(ended(&reply))
	require.Empty(t, reply)
	require.Empty(t, a.out.String(), "nothing is refunded")
	require.Contains(t, a.view(), "120 euros are much")
	b.says("2", "Are you there?")
	untilB(func(e event) bool { return ended(&reply)(e) && e.MessageID == "2" })
	require.Equal(t, "Which order is it about?", reply)

	// A process ends while nothing waits for it, and another one makes the call.
	require.NoError(t, a.end(syscall.SIGTERM))
	var v struct{ Suspended []struct{ Key string } }
	require.NoError(t, json.Unmarshal([]byte(b.view()), &v))
	require.Len(t, v.Suspended, 1)
	key := v.Suspended[0].Key
	status, answer := b.post("/approvals/call_1", url.Values{"by": {"eve"}})
	require.Equal(t, http.StatusConflict, status, "the id of a call is no key: %s", answer)
	status, answer = b.post("/approvals/"+key, url.Values{"by": {"mallory"}})
	require.Equal(t, http.StatusForbidden, status, answer)
	status, answer = b.post("/approvals/"+key, url.Values{"by": {"eve"}})
	require.Equal(t, http.StatusOK, status, answer)
	untilB(ended(&reply))
	require.Equal(t, `It is done: {"#W1":120}`, reply)
	require.Equal(t, "refunds 120 for #W1 with key "+key+"\n", b.out.String())
	require.Contains(t, b.view(), `"refunds":{"#W1":120}`)
	status, answer = b.post("/approvals/"+key, url.Values{"by": {"eve"}})
	require.Equal(t, http.StatusConflict, status, answer)
}

// Pages of other sites, and names that others have pointed to this machine, are
// refused, and so are long bodies.
func TestRequestsThatAreRefused(t *testing.T) {
	p := newDesk(t, script).start()
	form := url.Values{"id": {"1"}, "text": {"Refund my order #W1."}}
	request := func(change func(*http.Request)) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/messages", strings.NewReader(form.Encode()))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(req)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusForbidden, request(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }))
	require.Equal(t, http.StatusForbidden, request(func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }))
	require.Equal(t, http.StatusMisdirectedRequest, request(func(r *http.Request) { r.Host = "evil.example" }))
	long := strings.Repeat("a", 2<<20)
	status, _ := p.post("/messages", url.Values{"id": {"1"}, "text": {long}})
	require.Equal(t, http.StatusBadRequest, status)
	require.Equal(t, http.StatusBadRequest, request(func(r *http.Request) {
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		r.Body = io.NopCloser(strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n" + long + "\r\n--x--\r\n"))
		r.ContentLength = -1
	}))
	require.NotContains(t, p.view(), "Refund")
	require.Equal(t, http.StatusOK, request(func(*http.Request) {}))
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
	p.says("1", "Hello!")
	<-asked
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	time.AfterFunc(200*time.Millisecond, func() { close(goOn) })
	require.NoError(t, p.wait())
	require.Contains(t, d.start().view(), `"Which order is it about?"`)
}

// Two conversations of a user are handled at the same time, and go on in another
// process when theirs is killed.
func TestThreadsGoOnInAnotherProcess(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	both := make(chan struct{})
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked++
		n := asked
		mu.Unlock()
		if n > 2 {
			say(w, "Which order is it about?")
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the process is gone
		if n == 2 {
			close(both)
		}
		<-r.Context().Done()
	})
	a, b := d.start(), d.start()
	for _, thread := range []string{"one", "two/.."} {
		status, answer := a.post("/messages", url.Values{"id": {"1"}, "text": {"Hello " + thread}, "thread": {thread}})
		require.Equal(t, http.StatusOK, status, answer)
	}
	<-both // at the same time
	require.Error(t, a.end(syscall.SIGKILL))
	get := func(path string) string {
		resp, err := http.Get(b.url + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(data)
	}
	for _, thread := range []string{"one", "two/.."} {
		require.Eventually(t, func() bool {
			return strings.Contains(get("?thread="+url.QueryEscape(thread)), "Which order is it about?")
		}, 30*time.Second, 100*time.Millisecond)
	}
	require.JSONEq(t, `{"one":"Hello one","two/..":"Hello two/.."}`, get("/threads"))
	require.NotContains(t, b.view(), "Hello")
	require.NoError(t, b.end(syscall.SIGTERM))
}
