package statehttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/rightstest"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// A page says something, is told of a call that waits, decides, edits a field and
// reads all of it.
func TestPage(t *testing.T) {
	s := newSite(t)
	require.Equal(t, statehttp.Sent{Thread: "1", ID: "m1", Status: workspace.StatusStarted}, s.say("1", "m1", "pay"))
	key := s.waiting("1")
	approve := fmt.Sprintf(`{"id":"d1","decisions":[{"key":%q,"kind":"approve"}]}`, key)
	status, text := s.do("POST", "/threads/1/decisions", approve)
	require.Equal(t, http.StatusForbidden, status, "the sender of the message may not approve: only the boss")
	require.Contains(t, text, "access denied")
	var sent statehttp.Sent
	s.ok("POST", "/threads/1/decisions", approve, &sent, "Agent", "boss")
	_, err := s.m.Await(t.Context(), "ann/1", "d1")
	require.NoError(t, err)
	require.Equal(t, 1, s.paid)
	status, _ = s.do("POST", "/threads/1/decisions", strings.Replace(approve, "d1", "d2", 1), "Agent", "boss")
	require.Equal(t, http.StatusConflict, status)

	s.ok("POST", "/threads/1/fields", `{"title":"Refund"}`, nil)
	status, text = s.do("POST", "/threads/1/fields", `{"title":7}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, "want string, got number")
	status, _ = s.do("POST", "/threads/1/fields", `{"risk":"low"}`)
	require.Equal(t, http.StatusForbidden, status)
	p := s.page("1")
	require.Equal(t, map[string]state.JSON{"title": `"Refund"`}, p.Fields)
	call := p.Items[1].Parts[0].Call
	require.Equal(t, page.Call{Key: key, Name: "pay", Input: "{}", State: page.CallDone, Output: `"paid"`, By: "boss"}, *call)
	require.Equal(t, "Hello!", p.Items[2].Parts[0].Text)
	require.Equal(t, "m1", p.Items[2].Turn)
	var view map[string]any
	s.ok("GET", "/threads/1/view", "", &view)
	require.Len(t, view["messages"], 4)
}

// A message that has failed stays, and is tried again or discarded. Why it has failed
// is not shown.
func TestFailedMessages(t *testing.T) {
	s := newSite(t)
	s.say("1", "m1", "Hi")
	s.ok("POST", "/threads/1/fields", `{"title":"fail"}`, nil)
	s.say("1", "m2", "Hi again")
	status, shown := s.do("GET", "/threads/1", "")
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, shown, "sk-123")
	require.Contains(t, shown, "Hi again")
	require.Equal(t, page.TurnFailed, s.page("1").Turns[0].State)
	s.ok("POST", "/threads/1/fields", `{"title":"works"}`, nil)
	s.ok("POST", "/threads/1/retry", `{"turn":"m2"}`, nil)
	require.NoError(t, s.m.Wait(t.Context()))
	require.Empty(t, s.page("1").Turns)
	status, _ = s.do("POST", "/threads/1/discard", `{"turn":"m2"}`)
	require.Equal(t, http.StatusNotFound, status)
}

// Edits are branches, which the thread names. A fork is a thread of its own.
func TestBranches(t *testing.T) {
	s := newSite(t)
	s.say("1", "m1", "Hi")
	s.say("1", "m2", "Ho")
	var sent, again statehttp.Sent
	s.ok("POST", "/threads/1/messages", `{"id":"m2","text":"Hu"}`, &sent)
	s.ok("POST", "/threads/1/messages", `{"id":"m2","text":"Hu"}`, &again)
	require.NotEqual(t, "1", sent.Thread)
	require.Equal(t, sent.Thread, again.Thread)
	require.NoError(t, s.m.Wait(t.Context()))
	require.Equal(t, "Hu", s.page(sent.Thread).Items[2].Parts[0].Text)
	var branches []page.Branch
	s.ok("GET", "/threads/1/branches", "", &branches)
	require.Equal(t, []page.Branch{{Thread: sent.Thread, Of: "1", Number: 3}}, branches)
	var fork struct{ Thread string }
	s.ok("POST", "/threads/1/fork", `{"message":3}`, &fork)
	require.Len(t, s.page(fork.Thread).Items, 2)
	var list []statehttp.Thread
	s.ok("GET", "/threads", "", &list)
	require.Len(t, list, 3)
	require.Empty(t, list[0].Title)
	s.ok("POST", "/threads", `{}`, &fork)
	require.NotEmpty(t, fork.Thread)
}

// A person renames a thread, and notes something about a message, which nobody else is
// shown. Pages that follow are told of both.
func TestTitlesAndNotes(t *testing.T) {
	s := newSite(t, func(o *statehttp.Options) { o.Titles = true })
	s.say("1", "m1", "Hi")
	var list []statehttp.Thread
	told, opened := make(chan statehttp.Thread), make(chan struct{})
	go s.list(opened, func(row statehttp.Thread) bool {
		select {
		case told <- row:
		case <-t.Context().Done():
		}
		return false
	})
	<-opened
	s.ok("POST", "/threads/1/title", `{"title":"Mine"}`, nil)
	require.Equal(t, "Mine", (<-told).Title)
	s.ok("GET", "/threads", "", &list)
	require.Equal(t, "Mine", list[0].Title)

	var p page.Page
	version, first := "", true
	s.events(t.Context(), "/threads/1/events", "", -1, func(id string, data []byte) bool {
		var c page.Change
		require.NoError(t, json.Unmarshal(data, &c))
		p.Apply(c)
		if first {
			version, first = id, false
			s.ok("POST", "/threads/1/notes", fmt.Sprintf(`{"message":%d,"text":"up"}`, p.Items[1].Number), nil)
		}
		return len(p.Notes) == 0
	})
	require.Equal(t, p.Items[1].Number, p.Notes[0].Message)
	require.Equal(t, "up", p.Notes[0].Text)
	s.events(t.Context(), "/threads/1/events", version, -1, func(_ string, data []byte) bool {
		var c page.Change
		require.NoError(t, json.Unmarshal(data, &c))
		require.Equal(t, p.Notes, c.Tail.Notes, "also who comes back is told")
		return false
	})
	require.Equal(t, p.Notes, s.page("1").Notes)
	var of page.Page
	s.ok("GET", "/threads/1", "", &of, "Agent", "boss")
	require.Empty(t, of.Notes)
	s.ok("POST", "/threads/1/notes", `{"message":1,"text":""}`, nil)
	for body, want := range map[string]int{`{"message":99,"text":"up"}`: 404, `{"message":0,"text":"up"}`: 404, `{"message":1,"text":"` + strings.Repeat("x", 2000) + `"}`: 400} {
		status, text := s.do("POST", "/threads/1/notes", body)
		require.Equal(t, want, status, text)
	}
	for _, path := range []string{"/threads/2/notes", "/threads/2/title"} {
		body := map[bool]string{true: `{"title":"up"}`, false: `{"message":1,"text":"up"}`}[strings.HasSuffix(path, "title")]
		status, _ := s.do("POST", path, body)
		require.Equal(t, http.StatusNotFound, status)
	}
}

// routes are all routes with bodies that do something.
func (s *site) routes(thread, key string) [][3]string {
	at := "/threads/" + thread
	return [][3]string{
		{"GET", at}, {"GET", at + "/view"}, {"GET", at + "/branches"}, {"GET", at + "/events"},
		{"POST", at + "/messages", `{"id":"x","text":"Hi"}`}, {"POST", at + "/messages", `{"id":"x","fields":{"title":"x"}}`},
		{"POST", at + "/messages", `{"id":"x","replaces":"m1"}`},
		{"POST", at + "/messages", fmt.Sprintf(`{"id":"x","decisions":[{"key":%q,"kind":"refuse"}]}`, key)},
		{"POST", at + "/decisions", fmt.Sprintf(`{"id":"x","decisions":[{"key":%q,"kind":"refuse"}]}`, key)},
		{"POST", at + "/decisions", `{"id":"x","text":"Hi"}`}, {"POST", at + "/fields", `{"title":"x"}`}, {"POST", at + "/stop", `{}`},
		{"POST", at + "/retry", `{"turn":"m1"}`}, {"POST", at + "/discard", `{"turn":"m1"}`}, {"POST", at + "/fork", `{}`}, {"DELETE", at},
		{"POST", at + "/title", `{"title":"x"}`}, {"POST", at + "/notes", `{"message":1,"text":"up"}`},
	}
}

// No handler does what May refuses, whoever asks for which thread.
func TestMay(t *testing.T) {
	refused := map[statehttp.Action]bool{}
	s := newSite(t, func(o *statehttp.Options) {
		o.May = func(_ *http.Request, _ statehttp.Who, a statehttp.Action, _ string) error {
			if refused[a] {
				return statehttp.ErrForbidden
			}
			return nil
		}
	})
	actions := []statehttp.Action{
		statehttp.ActionRead, statehttp.ActionSend, statehttp.ActionDecide, statehttp.ActionEdit, statehttp.ActionStop,
		statehttp.ActionRetry, statehttp.ActionDiscard, statehttp.ActionFork, statehttp.ActionDelete, statehttp.ActionRename, statehttp.ActionNote,
		statehttp.ActionUpload,
	}
	s.say("1", "m1", "pay")
	key := s.waiting("1")
	before, err := s.m.Summary(t.Context(), "ann/1")
	require.NoError(t, err)
	for _, a := range actions {
		refused[a] = true
	}
	for _, route := range s.routes("1", key) {
		status, _ := s.do(route[0], route[1], route[2], "Agent", "boss")
		require.Equal(t, http.StatusForbidden, status, route)
	}
	after, err := s.m.Summary(t.Context(), "ann/1")
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing has happened")
	// Each action alone: what needs it is refused, also beside others.
	needs := map[string][]statehttp.Action{
		`{"id":"x","text":"Hi","fields":{"title":"x"}}`:                                     {statehttp.ActionSend, statehttp.ActionEdit},
		fmt.Sprintf(`{"id":"x","text":"Hi","decisions":[{"key":%q,"kind":"refuse"}]}`, key): {statehttp.ActionSend, statehttp.ActionDecide},
	}
	for body, list := range needs {
		for _, a := range list {
			clear(refused)
			refused[a] = true
			for _, path := range []string{"/threads/1/messages", "/threads/1/decisions"} {
				status, _ := s.do("POST", path, body, "Agent", "boss")
				require.Equal(t, http.StatusForbidden, status, body, a)
			}
		}
	}
}

// By default nobody deletes.
func TestDelete(t *testing.T) {
	s := newSite(t)
	s.say("1", "m1", "Hi")
	status, _ := s.do("DELETE", "/threads/1", "")
	require.Equal(t, http.StatusForbidden, status)
	s = newSite(t, func(o *statehttp.Options) {
		o.May = func(*http.Request, statehttp.Who, statehttp.Action, string) error { return nil }
	})
	s.say("1", "m1", "Hi")
	s.ok("DELETE", "/threads/1", "", nil)
	status, _ = s.do("GET", "/threads/1", "")
	require.Equal(t, http.StatusNotFound, status)
}

// The thread of another user is not there, by any name, and nothing happens to it.
func TestThreadsOfOthers(t *testing.T) {
	s := newSite(t, func(o *statehttp.Options) {
		o.May = func(*http.Request, statehttp.Who, statehttp.Action, string) error { return nil }
	})
	s.say("1", "m1", "pay")
	key := s.waiting("1")
	before, err := s.m.Summary(t.Context(), "ann/1")
	require.NoError(t, err)
	for _, name := range []string{"1", "ann%2F1", "..%2Fann%2F1", "%2E%2E", "ann%252F1"} {
		for _, route := range s.routes(name, key) {
			if strings.HasSuffix(route[1], "/messages") && strings.Contains(route[2], "text") || strings.Contains(route[2], `"Hi"`) {
				continue // begins a thread of the sender
			}
			if strings.HasSuffix(route[1], "/events") {
				continue // of a thread of the sender that may begin: see TestEventsOfAThreadThatMayBegin
			}
			status, text := s.do(route[0], route[1], route[2], "User", "bob", "Agent", "boss")
			require.Equal(t, http.StatusNotFound, status, "%s: %s", route, text)
		}
	}
	after, err := s.m.Summary(t.Context(), "ann/1")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A page opens the events of a thread before its first message, and comes back. It sees
// nothing of the threads of others, and is told when the thread is gone.
func TestEventsOfAThreadThatMayBegin(t *testing.T) {
	s := newSite(t, func(o *statehttp.Options) {
		o.May = func(*http.Request, statehttp.Who, statehttp.Action, string) error { return nil }
	})
	_, err := s.m.Handle(t.Context(), "bob/1", workspace.Message{ID: "m1", Content: state.UserText("mine")})
	require.NoError(t, err)
	var p page.Page
	empty, version := "", ""
	take := func(id string, data []byte) bool {
		var c page.Change
		require.NoError(t, json.Unmarshal(data, &c))
		p.Apply(c)
		version = id
		if empty == "" {
			empty = id
			require.Empty(t, p.Items)
			require.Empty(t, p.Turns)
			return false
		}
		if len(p.Items) == 0 && len(p.Turns) == 0 {
			s.say("1", "m1", "Hi")
		}
		return len(p.Items) < 2
	}
	s.events(t.Context(), "/threads/1/events", "", -1, take)
	s.events(t.Context(), "/threads/1/events", empty, -1, take)
	require.Equal(t, "Hi", p.Items[0].Parts[0].Text)
	require.Equal(t, "Hello!", p.Items[1].Parts[0].Text)

	s.ok("DELETE", "/threads/1", "", nil)
	status, _ := s.do("GET", "/threads/1/events", "", "Last-Event-ID", version)
	require.Equal(t, http.StatusNotFound, status)
	status, _ = s.do("GET", "/threads/1/events?from="+version, "")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = s.do("GET", "/threads/1", "")
	require.Equal(t, http.StatusNotFound, status)
}

// A misspelt member of a body is an error, whatever else the body has and whether the
// thread exists: what it says would be lost.
func TestMembersThatABodyDoesNotHave(t *testing.T) {
	s := newSite(t)
	s.say("1", "m1", "Hi")
	for _, c := range []struct{ path, body, name string }{
		{"/threads/1/messages", `{"id":"x","txt":"Hi"}`, "txt"},
		{"/threads/1/messages", `{"id":"x","text":"Hi","replace":"m1"}`, "replace"},
		{"/threads/1/messages", `{"id":"x","text":"Hi","field":{"title":"x"}}`, "field"},
		{"/threads/1/messages", `{"id":"x","parts":[{"kind":"text","txt":"Hi"}]}`, "txt"},
		{"/threads/1/decisions", `{"id":"x","decisions":[{"call":"1","kind":"approve"}]}`, "call"},
		{"/threads/9/messages", `{"id":"x","txt":"Hi"}`, "txt"},
		{"/threads", `{"thread":"1"}`, "thread"},
		{"/threads/1/stop", `{"id":"m1"}`, "id"},
		{"/threads/1/retry", `{"id":"m1"}`, "id"},
		{"/threads/1/discard", `{"message":"m1"}`, "message"},
		{"/threads/1/title", `{"text":"x"}`, "text"},
		{"/threads/1/title", `{"title":"x","running":true}`, "running"},
		{"/threads/1/notes", `{"message":1,"note":"up"}`, "note"},
		{"/threads/1/notes", `{"message":1,"text":"up","by":"boss"}`, "by"},
		{"/threads/1/fork", `{"number":1}`, "number"},
	} {
		status, text := s.do("POST", c.path, c.body)
		require.Equal(t, http.StatusBadRequest, status, "%s %s: %s", c.path, c.body, text)
		require.Contains(t, text, `the body: json: unknown field \"`+c.name+`\"`, c.path)
	}
	for _, body := range []string{`{"id":"x","text":"Hi"} {}`, `{"id":"x","text":"Hi"}]`, `{"id":"x"`, ``} {
		status, _ := s.do("POST", "/threads/1/messages", body)
		require.Equal(t, http.StatusBadRequest, status, body)
	}
	require.Len(t, s.page("1").Items, 2, "nothing has happened")
}

// A State without a Team denies nothing. A page by which everybody may write everything
// is mostly a Team that was forgotten.
func TestAHandlerWithoutATeamSaysSo(t *testing.T) {
	for _, c := range []struct {
		parts []state.Part
		want  string
	}{
		{[]state.Part{team, title}, ""},
		{[]state.Part{&state.Field[string]{Name: "title"}}, "statehttp: the schema has no Team"},
	} {
		m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Schema: state.MustSchema(c.parts...)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		var log bytes.Buffer
		_, err = statehttp.New(m, &statehttp.Options{Who: who, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		require.Contains(t, log.String(), c.want)
		require.Equal(t, c.want == "", log.String() == "", log.String())
	}
}

// What is refused before anything is done.
func TestRefusedRequests(t *testing.T) {
	s := newSite(t, func(o *statehttp.Options) { o.Hosts = []string{"app.example"} })
	s.say("1", "m1", "pay")
	approve := fmt.Sprintf(`{"id":"d1","decisions":[{"key":%q,"kind":"approve"}]}`, s.waiting("1"))
	const evil = "https://evil.example"
	for name, c := range map[string]struct {
		header []string
		body   string
		status int
	}{
		"a simple request of another site": {[]string{"Content-Type", "text/plain", "Origin", evil, "Sec-Fetch-Site", "cross-site"}, approve, 403},
		"a script of another site":         {[]string{"Origin", evil, "Sec-Fetch-Site", "cross-site"}, approve, 403},
		"a sibling domain":                 {[]string{"Origin", evil, "Sec-Fetch-Site", "same-site"}, approve, 403},
		"an old browser":                   {[]string{"Origin", evil}, approve, 403},
		"a form":                           {[]string{"Content-Type", "application/x-www-form-urlencoded"}, approve, 415},
		"a name of somebody else":          {[]string{"Host", "evil.example"}, approve, 421},
		"nobody":                           {[]string{"User", ""}, approve, 401},
		"somebody who may not":             {[]string{"User", "mallory"}, approve, 403},
		"no JSON":                          {nil, "{", 400},
		"a body of 100 MB":                 {nil, `{"id":"` + strings.Repeat("x", 100<<20) + `"}`, 413},
		"text and parts":                   {nil, `{"text":"a","parts":[{"kind":"text","text":"b"}]}`, 400},
		"nothing":                          {nil, `{}`, 400},
		"a wrong key":                      {nil, `{"decisions":[{"key":"c1234567890abcd","kind":"approve"}]}`, 409},
		"a wrong kind":                     {nil, `{"decisions":[{"key":"c1234567890abcd","kind":"x"}]}`, 400},
	} {
		status, text := s.do("POST", "/threads/1/decisions", c.body, append(c.header, "Agent", "boss")...)
		require.Equal(t, c.status, status, "%s: %s", name, text)
		require.Regexp(t, `^{"error":".+"}$`, text, name)
		require.NotContains(t, text, "secret reason")
	}
	require.Len(t, s.waiting("1"), 15, "nothing is decided")
	status, _ := s.do("POST", "/threads/1/decisions", approve, "Agent", "boss", "Host", "app.example", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusOK, status)
}

// Nobody has the rights of the host.
func TestNobodyIsTheHost(t *testing.T) {
	s := newSite(t, func(o *statehttp.Options) {
		o.Who = func(*http.Request, string) (statehttp.Who, error) { return statehttp.Who{User: "ann"}, nil }
	})
	status, _ := s.do("GET", "/threads", "")
	require.Equal(t, http.StatusUnauthorized, status)
	for _, bad := range []*statehttp.Options{nil, {}, {Who: who, TrustedOrigins: []string{"x"}}} {
		_, err := statehttp.New(s.m, bad)
		require.Error(t, err)
	}
}

// A client that is cut off at any byte, and comes back with the id of the last whole
// event, has in the end what a page is that was just read.
func TestResumeAtAnyByte(t *testing.T) {
	s := newSite(t)
	r := rand.New(rand.NewPCG(effort.LogSeed(t), 0))
	s.say("1", "m0", "Hi")
	var p page.Page
	last := ""
	during, done := context.WithCancel(t.Context())
	go func() {
		defer done()
		for i := 1; i < 12; i++ {
			s.say("1", fmt.Sprint("m", i), "Hi")
			s.ok("POST", "/threads/1/fields", fmt.Sprintf(`{"title":"%d"}`, i), nil)
			s.ok("POST", "/threads/1/notes", fmt.Sprintf(`{"message":%d,"text":"up"}`, i), nil)
		}
	}()
	read := func(ctx context.Context, bytesLeft int64, end bool) {
		s.events(ctx, "/threads/1/events", last, bytesLeft, func(id string, data []byte) bool {
			var c page.Change
			require.NoError(t, json.NewDecoder(bytes.NewReader(data)).Decode(&c))
			p.Apply(c)
			last = id
			return !end || len(p.Items) < 24 || p.Fields["title"] != `"11"` || len(p.Turns) > 0 || len(p.Notes) < 11
		})
	}
	for during.Err() == nil {
		read(during, r.Int64N(6000), false)
	}
	read(t.Context(), -1, true)
	want, got := s.page("1"), p
	require.Equal(t, shown(want), shown(got))
}

func shown(v any) string {
	data, err := json.Marshal(v)
	return fmt.Sprint(string(data), err)
}

// One stream tells which threads of a user change, and of each what the list says.
func TestEventsOfAllThreads(t *testing.T) {
	s := newSite(t, func(o *statehttp.Options) { o.Titles = true })
	opened, rows := make(chan struct{}), map[string]statehttp.Thread{}
	go func() {
		<-opened
		s.say("1", "m1", "pay")
		s.say("2", "m1", "Hi")
	}()
	s.list(opened, func(row statehttp.Thread) bool {
		rows[row.ID] = row
		return rows["1"].Waiting != 1 || rows["2"].Title == ""
	})
	require.NoError(t, s.m.Wait(t.Context()))
	var list []statehttp.Thread
	s.ok("GET", "/threads", "", &list)
	for _, row := range list {
		require.Equal(t, map[string]string{"1": "pay", "2": "Hi"}[row.ID], row.Title)
		require.Equal(t, row.Title, rows[row.ID].Title)
	}
}

// An error has the same status everywhere, and 503 only if sending again helps.
func TestStatus(t *testing.T) {
	for err, status := range map[error]int{
		nil: 200, statehttp.ErrForbidden: 403, state.ErrDenied: 403, workspace.ErrNotSuspended: 409, workspace.ErrExpired: 409,
		state.ErrUnknownCall: 409, workspace.ErrNotFound: 404, workspace.ErrInvalid: 400, state.ErrInvalid: 400, workspace.ErrBusy: 503,
		workspace.ErrQueueFull: 429, workspace.ErrCorrupt: 500, workspace.ErrClosed: 503, store.ErrUnknownOutcome: 503, state.ErrCompacted: 410,
		workspace.ErrUserDeleted: 410, errors.New("?"): 500, workspace.ErrExists: 409, store.ErrConflict: 409, state.ErrLimitExceeded: 413,
		store.ErrTooLarge: 413, state.ErrWrongType: 400, state.ErrUnknownField: 400, state.ErrRefused: 400, &state.PanicError{}: 500,
	} {
		require.Equal(t, status, statehttp.Status(err), "%v", err)
		if err != nil {
			require.Equal(t, status, statehttp.Status(&workspace.Error{Op: "x", Err: fmt.Errorf("a: %w", err)}), "%v", err)
		}
	}
}

// A page is shown what its agent may read and nothing else.
func TestPagesAreShownWhatTheirAgentMayRead(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range uint64(effort.Runs(10)) {
		w := rightstest.New(seed + i)
		m, err := workspace.Open(t.Context(), store.NewMemory(), w.Options())
		require.NoError(t, err)
		h, err := statehttp.New(m, &statehttp.Options{
			Who: func(*http.Request, string) (statehttp.Who, error) {
				return statehttp.Who{User: "ann", Agent: w.Agent}, nil
			},
		})
		require.NoError(t, err)
		_, err = m.Submit(t.Context(), "ann/1", w.Message("first"))
		require.NoError(t, err)
		<-w.Holding
		for _, path := range []string{"/threads", "/threads/1", "/threads/1/view"} {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
			require.Equal(t, http.StatusOK, rec.Code)
			w.Check(t, path, rec.Body.String())
		}
		require.NoError(t, m.Close())
	}
}
