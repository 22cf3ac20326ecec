package aisdkstate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/aisdkstate"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

var title = &state.Field[string]{Name: "title", Read: state.Public, Write: state.Public}

// site is a Handler with a desk behind it that pays if a person approves.
type site struct {
	t    testing.TB
	m    *workspace.Manager
	srv  *httptest.Server
	paid int
	goOn chan struct{} // a message that holds waits for it
}

func newSite(t testing.TB) *site {
	s := &site{t: t, goOn: make(chan struct{})}
	pay := tool.Must(tool.New("pay", "Pays.", func(context.Context, struct{}) (string, error) { s.paid++; return "paid", nil },
		tool.NeedsApproval(func(context.Context, struct{}) (string, bool) { return "money", true })))
	look := tool.Must(tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) { return "nothing", nil }))
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(state.Team{"shop": {"desk", "ui"}}, title), Attempts: 1,
		Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": {Ask: s.ask, Tools: []*tool.Tool{pay, look}}}}),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	h, err := aisdkstate.New(m, &aisdkstate.Options{Who: who})
	require.NoError(t, err)
	s.m, s.srv = m, httptest.NewServer(h)
	t.Cleanup(func() { s.srv.CloseClientConnections(); s.srv.Close() })
	return s
}

func who(r *http.Request, _ string) (statehttp.Who, error) {
	if r.Header.Get("User") == "nobody" {
		return statehttp.Who{}, errors.New("nobody")
	}
	return statehttp.Who{User: "ann", Agent: "ui"}, nil
}

// ask answers what was said last.
func (s *site) ask(ctx context.Context, turn *loop.Turn) error {
	run, _ := workspace.FromContext(ctx)
	said := state.Messages.GetOr(turn.State(), nil)
	last := said[len(said)-1]
	say := func(text string) error {
		run.EmitThought("Hm.")
		for _, word := range strings.SplitAfter(text, " ") {
			run.Emit(word)
		}
		thought := fmt.Sprintf(`[{"type":"thinking","thinking":"Hm."},{"type":"text","text":%q}]`, text)
		m, err := state.DecodeMessage([]byte(`{"type":"text","role":"assistant","content":` + thought + `}`))
		if err != nil {
			return err
		}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{m}, Stop: state.StopEnd, Usage: state.Usage{Output: 3}})
	}
	call := func(name string) error {
		run.EmitInput(0, name, "{")
		run.EmitInput(0, name, "}")
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: name, Input: "{}"})}, Stop: state.StopCalls})
	}
	switch {
	case said[0].Text() == "look":
		return call("look")
	case last.Role() != "user":
		return say("It is done.")
	case strings.HasPrefix(last.Text(), "pay"):
		return call("pay")
	case strings.HasPrefix(last.Text(), "hold"):
		run.Emit("Half ")
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return ctx.Err()
		}
		run.Emit("and half.")
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("Half and half.")}, Stop: state.StopEnd})
	case last.Text() == "fail":
		return errors.New("key sk-123 is refused")
	}
	return say("You say " + last.Text())
}

type object = map[string]any

// post sends what useChat sends, and returns the chunks of the answer.
func (s *site) post(body object) []object {
	s.t.Helper()
	resp := s.request("POST", "/", body)
	require.Equal(s.t, "v1", resp.Header.Get("X-Vercel-Ai-Ui-Message-Stream"))
	return s.chunks(resp, "")
}

func (s *site) request(method, path string, body any, header ...string) *http.Response {
	s.t.Helper()
	data, err := json.Marshal(body)
	require.NoError(s.t, err)
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.srv.URL+path, strings.NewReader(string(data)))
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// chunks reads a stream to its end, or up to a chunk with a text.
func (s *site) chunks(resp *http.Response, until string) (list []object) {
	s.t.Helper()
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk object
		require.NoError(s.t, json.Unmarshal([]byte(data), &chunk))
		list = append(list, chunk)
		if until != "" && strings.Contains(data, until) {
			return list
		}
	}
	return list
}

// load returns the messages of a chat.
func (s *site) load(chat string) (out struct {
	Messages []object
	State    object
}) {
	s.t.Helper()
	resp := s.request("GET", "/"+chat, nil)
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode, string(data))
	require.NoError(s.t, json.Unmarshal(data, &out))
	return out
}

func user(id, text string) object {
	return object{"id": id, "role": "user", "parts": []object{{"type": "text", "text": text}}}
}

// types returns the types of chunks, without those that repeat.
func types(chunks []object) (list []string) {
	for _, c := range chunks {
		typ, _ := c["type"].(string)
		if n := len(list); (n == 0 || list[n-1] != typ) && typ != "data-state" {
			list = append(list, typ)
		}
	}
	return list
}

// first returns the first chunk of a type.
func (s *site) first(chunks []object, typ string) object {
	s.t.Helper()
	for _, c := range chunks {
		if c["type"] == typ {
			return c
		}
	}
	require.Fail(s.t, "no chunk "+typ, "%v", chunks)
	return nil
}
