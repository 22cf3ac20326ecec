package statehttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

var (
	title = &state.Field[string]{Name: "title", Read: state.Public, Write: state.Public}
	risk  = &state.Field[string]{Name: "risk", Owner: "desk"}
	team  = state.Team{"shop": {"desk", "ui", "boss"}}
)

// site is a Handler with a desk behind it that pays if the boss approves.
type site struct {
	t    testing.TB
	m    *workspace.Manager
	srv  *httptest.Server
	opts *statehttp.Options
	paid int
}

func newSite(t testing.TB, change ...func(*statehttp.Options)) *site {
	s := &site{t: t}
	pay := tool.Must(tool.New("pay", "Pays.", func(context.Context, struct{}) (string, error) { s.paid++; return "paid", nil },
		tool.NeedsApproval(func(context.Context, struct{}) (string, bool) { return "money", true }), tool.DecidedBy("boss")))
	ask := func(ctx context.Context, turn *loop.Turn) error {
		said := state.Messages.GetOr(turn.State(), nil)
		out := []state.Message{state.AssistantText("Hello!")}
		if m := said[len(said)-1]; m.Role() == "user" && m.Text() == "pay" {
			out = []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "pay", Input: "{}"})}
		}
		if run, ok := workspace.FromContext(ctx); ok && len(out[0].Text()) > 0 {
			run.Emit("Hel")
			run.Emit("lo!")
		}
		if title.GetOr(turn.State(), "") == "fail" {
			return errors.New("key sk-123 of db-7 is refused")
		}
		return turn.Said(ctx, state.InferenceResult{Output: out})
	}
	desk := loop.Agent{Ask: ask, Tools: []*tool.Tool{pay}}
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(team, title, risk), Attempts: 1,
		Title: func(st *state.State) string {
			for _, m := range state.Messages.GetOr(st, nil) {
				return m.Text()
			}
			return ""
		},
		Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": desk}}),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	s.m, s.opts = m, &statehttp.Options{Who: who}
	for _, c := range change {
		c(s.opts)
	}
	h, err := statehttp.New(m, s.opts)
	require.NoError(t, err)
	s.srv = httptest.NewServer(h)
	t.Cleanup(func() { s.srv.CloseClientConnections(); s.srv.Close() })
	return s
}

// who reads headers that stand for a session.
func who(r *http.Request, _ string) (statehttp.Who, error) {
	switch user, agent := r.Header.Get("User"), r.Header.Get("Agent"); {
	case user == "mallory":
		return statehttp.Who{}, statehttp.ErrForbidden
	case user == "":
		return statehttp.Who{}, errors.New("secret reason")
	case agent == "":
		return statehttp.Who{User: user, Agent: "ui"}, nil
	default:
		return statehttp.Who{User: user, Agent: agent}, nil
	}
}

// do sends a request of ann and returns the status and the body.
func (s *site) do(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.srv.URL+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("User", "ann")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, "no-store", resp.Header.Get("Cache-Control"))
	return resp.StatusCode, string(data)
}

// ok is do for a request that succeeds, whose answer it decodes.
func (s *site) ok(method, path, body string, out any, header ...string) {
	s.t.Helper()
	status, text := s.do(method, path, body, header...)
	require.Equal(s.t, http.StatusOK, status, text)
	if out != nil {
		require.NoError(s.t, json.Unmarshal([]byte(text), out), text)
	}
}

// say sends a message and waits for its end.
func (s *site) say(thread, id, text string) (sent statehttp.Sent) {
	s.t.Helper()
	body, _ := json.Marshal(statehttp.Message{ID: id, Text: text})
	s.ok("POST", "/threads/"+thread+"/messages", string(body), &sent)
	_, err := s.m.Await(s.t.Context(), workspace.Thread("ann", sent.Thread), id)
	require.NoError(s.t, err)
	return sent
}

func (s *site) page(thread string) (p page.Page) {
	s.t.Helper()
	s.ok("GET", "/threads/"+thread, "", &p)
	return p
}

// waiting returns the key of the call that waits.
func (s *site) waiting(thread string) string {
	s.t.Helper()
	v, err := s.m.View(s.t.Context(), workspace.Thread("ann", thread))
	require.NoError(s.t, err)
	require.Len(s.t, v.Suspended(), 1)
	return v.Suspended()[0].Key
}

// list reads the stream of all threads, and closes opened when nothing is missed from
// then on.
func (s *site) list(opened chan struct{}, take func(statehttp.Thread) bool) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.srv.URL+"/events", nil)
	if err != nil {
		return
	}
	req.Header.Set("User", "ann")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if lines.Text() == ":" && opened != nil {
			close(opened)
			opened = nil
		}
		var row statehttp.Thread
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &row) == nil && !take(row) {
			return
		}
	}
}

// events reads a stream, and calls take with the ids and the data of its events until
// that returns false. It breaks off after a number of bytes, if that is not negative,
// and at the end of ctx.
func (s *site) events(ctx context.Context, path, last string, bytesLeft int64, take func(id string, data []byte) bool) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.srv.URL+path, nil)
	require.NoError(s.t, err)
	req.Header.Set("User", "ann")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if ctx.Err() != nil {
		return
	}
	require.NoError(s.t, err)
	defer resp.Body.Close()
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	var body io.Reader = resp.Body
	if bytesLeft >= 0 {
		body = io.LimitReader(body, bytesLeft)
	}
	lines := bufio.NewReader(body)
	var id string
	var data []byte
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the event is not whole
			return
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if text, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			id = string(text)
		}
		if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			data = bytes.Clone(text)
		}
		if len(line) == 0 && data != nil {
			if !take(id, data) {
				return
			}
			data = nil
		}
	}
}
