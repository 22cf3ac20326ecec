package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
	pages "github.com/agentstate/state/workspace/page"
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

// The APIs of the two views.
const customer, employee = "/api", "/staff/api"

// newSite serves chats in memory, of a desk whose model a handler is.
func newSite(t *testing.T, model http.Handler) site {
	t.Setenv("OPENAI_API_KEY", "key")
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	d := &desk{client: &http.Client{Transport: &wire.Transport{}}, url: server.URL, pace: time.Millisecond}
	m, err := workspace.Open(t.Context(), store.NewMemory(), d.options())
	require.NoError(t, err)
	handler, err := routes(m)
	require.NoError(t, err)
	page := httptest.NewServer(handler)
	t.Cleanup(func() {
		page.CloseClientConnections()
		page.Close()
		server.CloseClientConnections()
		_ = m.Close()
	})
	return site{t, page.URL}
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

// say sends a message of the customer, and returns the thread that handles it.
func (s site) say(thread, id, text string, more ...string) string {
	s.t.Helper()
	var sent statehttp.Sent
	body := fmt.Sprintf(`{"id":%q,"text":%q%s}`, id, text, strings.Join(more, ""))
	require.NoError(s.t, json.Unmarshal([]byte(s.post(customer+"/threads/"+thread+"/messages", body)), &sent))
	return sent.Thread
}

// until follows a chat by its events until it is as a test wants it. It returns the
// page and all that was sent.
func (s site) until(view, thread string, is func(*pages.Page) bool) (p *pages.Page, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+view+"/threads/"+thread+"/events", nil)
	require.NoError(s.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	p = &pages.Page{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		text += lines.Text() + "\n"
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var c pages.Change
			require.NoError(s.t, json.Unmarshal([]byte(data), &c))
			if p.Apply(c); is(p) {
				return p, text
			}
		}
	}
	require.Fail(s.t, "the events have ended", text)
	return nil, ""
}

// says reports whether the last item that is stored has a text, and nothing is under
// way.
func says(text string) func(*pages.Page) bool {
	return func(p *pages.Page) bool {
		for _, t := range p.Turns {
			if t.State == pages.TurnRunning {
				return false
			}
		}
		return len(p.Items) > 0 && strings.Contains(textOf(p.Items[len(p.Items)-1]), text)
	}
}

func textOf(i *pages.Item) (text string) {
	for _, p := range i.Parts {
		text += p.Text
	}
	return text
}

// waits reports whether a call waits.
func waits(p *pages.Page) bool { return waiting(p) != nil }

func waiting(p *pages.Page) *pages.Call {
	for _, i := range p.Items {
		for _, part := range i.Parts {
			if part.Call != nil && part.Call.State == pages.CallWaiting {
				return part.Call
			}
		}
	}
	return nil
}

func turnIs(id string, state pages.TurnState) func(*pages.Page) bool {
	return func(p *pages.Page) bool {
		for _, t := range p.Turns {
			if t.ID == id {
				return t.State == state
			}
		}
		return false
	}
}

// A customer asks for a refund, and an employee approves it. Each of them sees and edits
// fields of their own.
func TestChat(t *testing.T) {
	s := newSite(t, script(0))
	for _, at := range []string{"/", "/staff/"} {
		status, page := s.do(http.MethodGet, at, "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, page, "page.js")
	}
	var begun struct{ Thread string }
	require.NoError(t, json.Unmarshal([]byte(s.post(customer+"/threads", "{}")), &begun))
	x := begun.Thread
	s.say(x, "1", "Where is #W1002?")
	s.until(customer, x, says("Do you want me to refund it?"))
	s.post(customer+"/threads/"+x+"/fields", `{"email":"ann@example.com"}`)
	s.post(employee+"/threads/"+x+"/fields", `{"memo":"a good customer"}`)
	for view, field := range map[string]string{customer: "memo", employee: "email"} {
		status, _ := s.do(http.MethodPost, view+"/threads/"+x+"/fields", `{"`+field+`":"x"}`)
		require.Equal(t, http.StatusForbidden, status, "not a field of "+view)
	}
	s.say(x, "2", "Refund it.")
	p, _ := s.until(customer, x, waits)
	require.Contains(t, waiting(p).Reason, "249.00 euros")
	approve := `{"id":"3","decisions":[{"kind":"approve","key":"` + waiting(p).Key + `"}]}`
	for _, path := range []string{"/decisions", "/messages"} {
		status, _ := s.do(http.MethodPost, customer+"/threads/"+x+path, approve)
		require.Equal(t, http.StatusForbidden, status, "the customer may not decide")
	}
	s.post(employee+"/threads/"+x+"/decisions", approve)
	p, seen := s.until(customer, x, says("I write to ann@example.com"))
	require.Equal(t, state.JSON("249"), p.Fields["refunded"])
	status, _ := s.do(http.MethodPost, employee+"/threads/"+x+"/decisions", strings.Replace(approve, `"3"`, `"4"`, 1))
	require.Equal(t, http.StatusConflict, status, "it is made")

	_, list := s.do(http.MethodGet, customer+"/threads", "")
	require.Contains(t, list, "Where is #W1002?", "its title")
	for _, of := range []string{seen, list} {
		require.NotContains(t, of, "risk")
		require.NotContains(t, of, "good customer")
	}
	p, _ = s.until(employee, x, says("I write to"))
	require.Equal(t, state.JSON(`"low"`), p.Fields["risk"])
	require.Equal(t, state.JSON(`"a good customer"`), p.Fields["memo"])
}

// Customers chat, employees decide, and nobody deletes.
func TestMay(t *testing.T) {
	s := newSite(t, script(0))
	s.say("x", "1", "Hello")
	s.until(customer, "x", says("Which order"))
	for _, tc := range []struct {
		method, path, body string
		views              [2]int // the statuses for a customer and an employee
	}{
		{"GET", "/threads/x", "", [2]int{200, 200}},
		{"POST", "/threads/x/fields", `{}`, [2]int{400, 400}},
		{"POST", "/threads/x/messages", `{"id":"1","text":"Hello"}`, [2]int{200, 403}},
		{"POST", "/threads/x/stop", `{}`, [2]int{200, 403}},
		{"POST", "/threads/x/retry", `{"turn":"y"}`, [2]int{404, 403}},
		{"POST", "/threads/x/discard", `{"turn":"y"}`, [2]int{404, 403}},
		{"POST", "/threads/x/decisions", `{"id":"d","decisions":[{"kind":"approve","key":"k"}]}`, [2]int{403, 409}},
		{"POST", "/threads/x/title", `{"title":"Mine"}`, [2]int{200, 403}},
		{"POST", "/threads/x/notes", `{"message":2,"text":"up"}`, [2]int{200, 403}},
		{"POST", "/threads/x/fork", `{}`, [2]int{403, 403}},
		{"DELETE", "/threads/x", "", [2]int{403, 403}},
	} {
		for i, view := range []string{customer, employee} {
			status, answer := s.do(tc.method, view+tc.path, tc.body)
			require.Equal(t, tc.views[i], status, "%s %s%s: %s", tc.method, view, tc.path, answer)
		}
	}
}

// Pages of other sites and of other names are refused, and the page of this one loads
// nothing from elsewhere.
func TestSites(t *testing.T) {
	s := newSite(t, script(0))
	for name, tc := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"another site": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"another name": {func(r *http.Request) { r.Host = "evil.example" }, http.StatusMisdirectedRequest},
		"this one":     {func(*http.Request) {}, http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+customer+"/threads", strings.NewReader("{}"))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		tc.change(req)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, tc.status, resp.StatusCode, name)
	}
	resp, err := http.Get(s.url + "/markdown-it.js")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'self'")
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	require.NoError(t, err)
	licence, err := os.ReadFile("page/markdown-it.LICENSE")
	require.NoError(t, err)
	version := strings.Fields(line)[2]
	require.Contains(t, line, "markdown-it "+version+" https")
	require.Contains(t, string(licence), "markdown-it "+version, "the licence is that of the file")
}

// What was said is edited, and asked again in another chat.
func TestEdit(t *testing.T) {
	s := newSite(t, script(0))
	for id, text := range []string{"Where is #W1001?", "Refund #W1001", "And #W1003?"} {
		s.say("x", fmt.Sprint(id), text)
		s.until(customer, "x", says([]string{"desk lamp", "39.90", "walnut bookshelf"}[id]))
	}
	branch := s.say("x", "new", "Where is #W1002?", `,"replaces":"2"`)
	require.NotEqual(t, "x", branch)
	p, text := s.until(customer, branch, says("espresso machine"))
	require.NotContains(t, text, "walnut")
	require.Equal(t, state.JSON("2"), p.Fields["lookups"])
	p, _ = s.until(customer, "x", says("walnut"))
	require.Equal(t, state.JSON("39.9"), p.Fields["refunded"], "the chat stays as it was")
}

// A picture is uploaded, and sent with a text. Both pages show it, each at its address.
func TestPicture(t *testing.T) {
	s := newSite(t, script(0))
	var picture pages.Media
	resp, err := http.Post(s.url+customer+"/files?name=a.png", "image/png", strings.NewReader("a picture"))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&picture))
	said, err := json.Marshal(statehttp.Message{ID: "1", Parts: []pages.Part{{Kind: pages.MediaPart, Media: &picture}, {Kind: pages.Text, Text: "Look"}}})
	require.NoError(t, err)
	s.post(customer+"/threads/x/messages", string(said))
	for _, view := range []string{customer, employee} {
		p, _ := s.until(view, "x", says("Thank you for the picture."))
		shown := p.Items[0].Parts[0].Media
		require.Equal(t, pages.Media{Type: "image/png", URL: view + "/files/" + path.Base(picture.URL), Name: "a.png"}, *shown)
		status, data := s.do(http.MethodGet, shown.URL, "")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "a picture", data)
		require.Equal(t, "Look", p.Items[0].Parts[1].Text)
	}
	status, _ := s.do(http.MethodPost, employee+"/files", "a picture")
	require.Equal(t, http.StatusForbidden, status)
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

// A stopped answer, half of which stays, and a message that has failed.
func TestStopRetryDiscard(t *testing.T) {
	goOn := make(chan struct{})
	var asked atomic.Int32
	s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 2 {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		half(goOn).ServeHTTP(w, r)
	}))
	s.say("x", "1", "one")
	s.until(customer, "x", func(p *pages.Page) bool {
		return len(p.Pending) == 1 && textOf(p.Pending[0]) == "Half of it" || len(p.Pending) == 2 && textOf(p.Pending[1]) == "Half of it"
	})
	s.say("x", "2", "two")
	s.say("x", "3", "three")
	s.post(customer+"/threads/x/discard", `{"turn":"3"}`)
	s.post(customer+"/threads/x/stop", `{}`)
	p, shown := s.until(customer, "x", turnIs("2", pages.TurnFailed))
	require.True(t, turnIs("1", pages.TurnStopped)(p))
	require.Equal(t, "one", textOf(p.Items[0]))
	require.Equal(t, "Half of it", textOf(p.Items[1]), "what was said stays")
	require.NotContains(t, shown, "400", "why it has failed is for programmers")
	close(goOn)
	s.post(customer+"/threads/x/retry", `{"turn":"2"}`)
	p, _ = s.until(customer, "x", says("and the rest."))
	require.Equal(t, "two", textOf(p.Items[2]))
	require.Len(t, p.Items, 4)
}

// An answer that is cut off or filtered is no failure, and the page is told how it has
// ended.
func TestAnswersThatAreNotFinished(t *testing.T) {
	s := newSite(t, script(0))
	for id, want := range map[string]state.Stop{"essay": state.StopLength, "poem": state.StopFiltered} {
		s.say("x", id, id)
		p, _ := s.until(customer, "x", turnIs(id, pages.TurnEnded))
		for _, turn := range p.Turns {
			if turn.ID == id {
				require.Equal(t, want, turn.Stop)
			}
		}
	}
	page, err := os.ReadFile("page/page.js")
	require.NoError(t, err)
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
	s.say("x", "1", "Hello")
	s.until(customer, "x", func(p *pages.Page) bool {
		return len(p.Pending) > 0 && strings.HasPrefix(textOf(p.Pending[len(p.Pending)-1]), "Half")
	})
	require.NoError(t, first.Process.Signal(syscall.SIGKILL))
	require.Error(t, first.Wait())
	close(goOn)

	second := start()
	require.Contains(t, s.post(customer+"/threads/x/messages", `{"id":"1","text":"Hello"}`), `"duplicate"`)
	p, _ := s.until(customer, "x", says("and the rest."))
	require.Equal(t, "Half of it, and the rest.", textOf(p.Items[1]))
	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	require.NoError(t, second.Wait())
}
