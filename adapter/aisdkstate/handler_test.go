package aisdkstate_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// An answer is streamed, and is the same when it is loaded.
func TestChat(t *testing.T) {
	s := newSite(t)
	chunks := s.post(object{"id": "c", "trigger": "submit-message", "messages": []object{user("u1", "Hello there")}})
	require.Equal(t, []string{
		"start", "start-step", "reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta", "text-end", "finish-step", "finish",
	}, types(chunks))
	id := s.first(chunks, "start")["messageId"]
	require.Equal(t, "answer-u1", id)
	text := ""
	for _, c := range chunks {
		if c["type"] == "text-delta" {
			text += c["delta"].(string)
		}
	}
	require.Equal(t, "You say Hello there", text)
	require.Equal(t, "stop", s.first(chunks, "finish")["finishReason"])
	loaded := s.load("c").Messages
	require.Len(t, loaded, 2)
	require.Equal(t, user("u1", "Hello there")["id"], loaded[0]["id"])
	require.Equal(t, id, loaded[1]["id"])
	parts := loaded[1]["parts"].([]any)
	require.Equal(t, object{"type": "step-start"}, parts[0])
	require.Equal(t, object{"type": "reasoning", "text": "Hm.", "state": "done"}, parts[1])
	require.Equal(t, object{"type": "text", "text": text, "state": "done"}, parts[2])
	require.Equal(t, object{"agent": "desk", "usage": object{"output": 3.0}}, loaded[1]["metadata"])
	resp := s.request("GET", "/c/stream", nil)
	require.Equal(t, http.StatusNoContent, resp.StatusCode)

	again := s.post(object{"id": "c", "trigger": "submit-message", "messages": []object{user("u1", "Hello there")}})
	require.Equal(t, "finish", types(again)[len(types(again))-1], "a message that is sent again has the same answer")
	require.Len(t, s.load("c").Messages, 2)
}

// approved returns the messages of a client that has decided.
func (s *site) decided(chat string, approved bool, more ...object) []object {
	messages := s.load(chat).Messages
	for _, m := range messages {
		for _, p := range m["parts"].([]any) {
			if p := p.(map[string]any); p["state"] == "approval-requested" {
				p["state"] = "approval-responded"
				p["approval"].(map[string]any)["approved"] = approved
			}
		}
	}
	return append(messages, more...)
}

// A call waits for a person, and what is said behind the decision goes on with the
// answer.
func TestApproval(t *testing.T) {
	for name, test := range map[string]struct {
		approved bool
		paid     int
		chunk    string
	}{"approved": {true, 1, "tool-output-available"}, "refused": {false, 0, "tool-output-denied"}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			chunks := s.post(object{"id": "c", "messages": []object{user("u1", "pay")}})
			require.Equal(t, "tool-calls", s.first(chunks, "finish")["finishReason"])
			require.Equal(t, "pay", s.first(chunks, "tool-input-available")["toolName"])
			asked := s.first(chunks, "tool-approval-request")
			require.Equal(t, "money", asked["reason"])
			messages := s.decided("c", test.approved)
			require.Equal(t, "answer-u1", messages[1]["id"])
			chunks = s.post(object{"id": "c", "messages": messages, "messageId": "answer-u1"})
			require.Equal(t, "answer-u1", s.first(chunks, "start")["messageId"])
			require.Equal(t, asked["toolCallId"], s.first(chunks, test.chunk)["toolCallId"])
			require.NotContains(t, types(chunks), "tool-input-available", "the client has it")
			require.NotEmpty(t, s.first(chunks, "text-delta"))
			require.Equal(t, test.paid, s.paid)
			require.Len(t, s.load("c").Messages, 2, "all of it is one answer")
			require.NoError(t, s.m.Wait(t.Context()))
			again := s.post(object{"id": "c", "messages": messages, "messageId": "answer-u1"})
			require.Equal(t, "finish", types(again)[len(types(again))-1])
			require.Equal(t, test.paid, s.paid, "once")
		})
	}
}

// A message while a call waits, or together with a decision, does not end the chat.
func TestMessageAndApproval(t *testing.T) {
	s := newSite(t)
	s.post(object{"id": "c", "messages": []object{user("u1", "pay")}})
	chunks := s.post(object{"id": "c", "messages": append(s.load("c").Messages, user("u2", "Wait"))})
	require.Equal(t, "answer-u2", s.first(chunks, "start")["messageId"])
	require.NotEmpty(t, s.first(chunks, "text-delta"))
	chunks = s.post(object{"id": "c", "messages": s.decided("c", true, user("u3", "Go on"))})
	require.NotEmpty(t, s.first(chunks, "text-delta"))
	require.Equal(t, 1, s.paid)
}

// A decision about a call of an earlier answer goes on with that answer, which the
// client names.
func TestApprovalOfAnEarlierAnswer(t *testing.T) {
	s := newSite(t)
	s.post(object{"id": "c", "messages": []object{user("u1", "pay")}})
	s.post(object{"id": "c", "messages": append(s.load("c").Messages, user("u2", "Wait"))})
	messages := s.decided("c", true)
	for range 2 { // once more after a lost answer
		chunks := s.post(object{"id": "c", "trigger": "submit-message", "messageId": "answer-u1", "messages": messages})
		require.Equal(t, "answer-u1", s.first(chunks, "start")["messageId"])
		s.first(chunks, "tool-output-available")
		require.NotContains(t, fmt.Sprint(chunks), "You say Wait", "the client has the later answer")
		require.Equal(t, 1, s.paid)
	}
	require.Len(t, s.load("c").Messages, 4)
}

// An answer that the loop has ended says how, streamed and loaded.
func TestStopOfTheLoop(t *testing.T) {
	s := newSite(t)
	chunks := s.post(object{"id": "c", "messages": []object{user("u1", "look")}})
	require.Equal(t, "other", s.first(chunks, "finish")["finishReason"])
	require.Equal(t, "repeated", s.first(chunks, "finish")["messageMetadata"].(map[string]any)["stop"])
	require.Equal(t, "repeated", s.load("c").Messages[1]["metadata"].(map[string]any)["stop"])
}

// A client looks for a call whose arguments are complete in the step that is open. The
// next answer may begin before the last one is stored.
func TestCallsAreWholeWhenTheNextStepBegins(t *testing.T) {
	s := newSite(t)
	streaming, calls := map[any]bool{}, 0
	for _, c := range s.post(object{"id": "c", "messages": []object{user("u1", "look")}}) {
		switch c["type"] {
		case "tool-input-start":
			streaming[c["toolCallId"]] = true
		case "tool-input-available":
			delete(streaming, c["toolCallId"])
			calls++
		case "start-step", "finish-step":
			require.Empty(t, streaming)
		}
	}
	require.Equal(t, 5, calls)
}

// A page that comes in the middle of an answer has it from its beginning. Stop keeps
// the question and what was said.
func TestResumeAndStop(t *testing.T) {
	s := newSite(t)
	first := s.request("POST", "/", object{"id": "c", "messages": []object{user("u1", "hold")}})
	s.chunks(first, "Half")
	loaded := s.load("c").Messages
	require.Len(t, loaded, 1, "the answer that is being made comes with the stream")
	second := s.request("GET", "/c/stream", nil)
	chunks := s.chunks(second, "Half")
	require.Equal(t, "answer-u1", s.first(chunks, "start")["messageId"])
	require.Equal(t, http.StatusNoContent, s.request("POST", "/c/stop", object{}).StatusCode)
	for _, resp := range []*http.Response{first, second} {
		rest := types(s.chunks(resp, ""))
		require.Equal(t, "abort", rest[len(rest)-1])
	}
	require.NoError(t, s.m.Wait(t.Context()))
	loaded = s.load("c").Messages
	require.Len(t, loaded, 2)
	require.Equal(t, "Half", loaded[1]["parts"].([]any)[1].(map[string]any)["text"])
	require.Equal(t, "interrupted", loaded[1]["metadata"].(map[string]any)["stop"])
	require.Equal(t, http.StatusNoContent, s.request("POST", "/c/stop", object{}).StatusCode, "nothing is under way")
}

// Edit and regenerate make branches, and the chat goes on in them under its id.
func TestBranches(t *testing.T) {
	s := newSite(t)
	s.post(object{"id": "c", "messages": []object{user("u1", "one")}})
	s.post(object{"id": "c", "messages": append(s.load("c").Messages, user("u2", "two"))})
	said := func() (list []string) {
		for _, m := range s.load("c").Messages {
			parts := m["parts"].([]any)
			list = append(list, parts[len(parts)-1].(map[string]any)["text"].(string))
		}
		return list
	}
	before := s.load("c").Messages
	edited := append(before[:2:2], user("u2", "zwei"))
	chunks := s.post(object{"id": "c", "trigger": "submit-message", "messageId": "u2", "messages": edited})
	require.Contains(t, s.first(chunks, "start")["messageId"], "answer-u2~")
	require.Equal(t, []string{"one", "You say one", "zwei", "You say zwei"}, said())
	s.post(object{"id": "c", "messages": append(s.load("c").Messages, user("u3", "drei"))})
	require.Equal(t, []string{"one", "You say one", "zwei", "You say zwei", "drei", "You say drei"}, said())

	again := s.load("c").Messages
	chunks = s.post(object{"id": "c", "trigger": "regenerate-message", "messageId": again[5]["id"], "messages": again[:5]})
	require.NotEmpty(t, s.first(chunks, "text-delta"), "it is made again")
	require.Equal(t, []string{"one", "You say one", "zwei", "You say zwei", "drei", "You say drei"}, said())
	threads := 0
	for range s.m.Threads(t.Context(), "ann", "") {
		threads++
	}
	require.Equal(t, 3, threads)
}

// A page edits the fields of the branch that it shows, also before the first message.
func TestFields(t *testing.T) {
	s := newSite(t)
	edit := func(value any, header ...string) int {
		return s.request("POST", "/c/fields", object{"title": value}, header...).StatusCode
	}
	require.Equal(t, http.StatusNoContent, edit("first"))
	require.Equal(t, object{"title": "first"}, s.load("c").State)
	s.post(object{"id": "c", "messages": []object{user("u1", "one")}})
	s.post(object{"id": "c", "messageId": "u1", "messages": []object{user("u1", "eins")}})
	require.Equal(t, http.StatusNoContent, edit("second"))
	loaded := s.load("c")
	require.Equal(t, object{"title": "second"}, loaded.State)
	require.Equal(t, user("u1", "eins")["parts"].([]object)[0]["text"], loaded.Messages[0]["parts"].([]any)[0].(map[string]any)["text"])
	require.Equal(t, http.StatusNoContent, edit(nil))
	require.Empty(t, s.load("c").State)
	require.Equal(t, http.StatusBadRequest, edit(7))
	require.Equal(t, http.StatusUnauthorized, edit("third", "User", "nobody"))
	require.Equal(t, http.StatusBadRequest, s.request("POST", "/c/fields", []int{}).StatusCode)
}

// A message that has failed stays, and says so without the reason, also when the chat is
// loaded.
func TestFailure(t *testing.T) {
	s := newSite(t)
	chunks := s.post(object{"id": "c", "messages": []object{user("u1", "fail")}})
	require.NotContains(t, fmt.Sprint(chunks), "sk-123")
	s.first(chunks, "error")
	loaded := s.load("c").Messages[0]
	require.Equal(t, "u1", loaded["id"])
	require.Equal(t, object{"failed": "The answer could not be finished."}, loaded["metadata"])
}

// What is refused before anything is done.
func TestRefusedRequests(t *testing.T) {
	s := newSite(t)
	s.post(object{"id": "c", "messages": []object{user("u1", "pay")}})
	body := object{"id": "c", "messages": s.decided("c", true)}
	for name, c := range map[string]struct {
		status int
		header []string
		body   any
	}{
		"another site": {403, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, body},
		"no JSON":      {415, []string{"Content-Type", "text/plain"}, body},
		"nobody":       {401, []string{"User", "nobody"}, body},
		"no messages":  {400, nil, object{"id": "c"}},
		"no id":        {400, nil, object{"messages": []object{user("u9", "x")}}},
		"no content":   {400, nil, object{"id": "c", "messages": []object{{"id": "u9", "role": "user", "parts": []object{}}}}},
		"another body": {400, nil, []int{}},
		"no message":   {400, nil, object{"id": "c", "messages": []any{nil}}},
		"too large":    {413, nil, object{"id": strings.Repeat("x", 9<<20)}},
	} {
		resp := s.request("POST", "/", c.body, c.header...)
		text, _ := io.ReadAll(resp.Body)
		require.Equal(t, c.status, resp.StatusCode, "%s: %s", name, text)
	}
	v, err := s.m.View(t.Context(), "ann/c")
	require.NoError(t, err)
	require.Len(t, v.Suspended(), 1)
	require.Zero(t, s.paid)
	_, err = s.m.Submit(t.Context(), "ann/c", workspace.Message{Decisions: []tool.Decision{tool.Refuse(v.Suspended()[0].Key, "")}, Agent: "ui"})
	require.NoError(t, err)
	require.NoError(t, s.m.Wait(t.Context()))
	chunks := s.post(body)
	require.Zero(t, s.paid, "another tab was faster")
	require.Equal(t, "finish", types(chunks)[len(types(chunks))-1])
}
