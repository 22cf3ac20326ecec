package aguistate_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/workspace"
)

// all sends a body and returns the whole answer.
func (d *desk) all(user, body string) string {
	data, err := io.ReadAll(d.post(user, body).Body)
	require.NoError(d.t, err)
	return string(data)
}

// bodyOf returns a request with messages of an assistant that say nothing.
func bodyOf(ids []string, rest string) string {
	var b strings.Builder
	b.WriteString(`{"threadId":"1","runId":"r","messages":[`)
	for _, id := range ids {
		fmt.Fprintf(&b, `{"id":%q,"role":"assistant"},`, id)
	}
	return b.String() + rest + `]}`
}

func made(prefix string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(prefix, i+1))
	}
	return ids
}

// A client has at most 1 000 messages that its thread has not.
func TestMessagesThatTheThreadHasNot(t *testing.T) {
	d := newDesk(t, nil)
	require.Contains(t, d.all("ann", bodyOf(nil, `{"id":"m","role":"user","content":"say hi"}`)), "RUN_FINISHED") // the thread has two
	for n, is := range map[int]string{1001: "RUN_FINISHED", 1002: "RUN_ERROR"} {
		body := bodyOf(made("x", n), fmt.Sprintf(`{"id":"m%d","role":"user","content":"say hi"}`, n))
		d := newDesk(t, nil)
		require.Contains(t, d.all("ann", bodyOf(nil, `{"id":"m","role":"user","content":"say hi"}`)), "RUN_FINISHED")
		require.Contains(t, d.all("ann", body), is, n)
	}
	thoughts := strings.ReplaceAll(bodyOf(made("x", 3000), `{"id":"n","role":"user","content":"say hi"}`), `"assistant"`, `"reasoning"`)
	require.Contains(t, d.all("ann", thoughts), "RUN_FINISHED", "which no thread has")
}

// What is no decision is the result of a call.
func TestAnAnswerIsTheResultOfACall(t *testing.T) {
	for payload, result := range map[string]string{
		`"blue"`: "blue", `""`: "", `"true"`: "true", `7`: "7", `0`: "0", `["a"]`: `["a"]`, `[]`: "[]", `{"color":"blue"}`: `{"color":"blue"}`,
		`{"approved":"blue"}`: `{"approved":"blue"}`, `{"approved":1}`: `{"approved":1}`, `{"approved":null,"x":1}`: `{"approved":null,"x":1}`,
	} {
		t.Run(payload, func(t *testing.T) {
			d := newDesk(t, nil)
			d.who.Agent = "desk" // which may answer the calls of others
			d.all("ann", bodyOf(nil, `{"id":"m","role":"user","content":"call question:x\nsay thanks"}`))
			require.Len(t, d.view("ann", "1").Suspended(), 1)
			d.all("ann", `{"threadId":"1","runId":"2","resume":[{"interruptId":"`+d.waitingCall()+`","status":"resolved","payload":`+payload+`}]}`)
			require.Contains(t, saidIn(d.view("ann", "1")), "tool "+result)
		})
	}
	for payload, n := range map[string]int{"true": 1, "false": 0, `{"approved":true}`: 1, `{"approved":true,"editedArgs":null}`: 1, `{"approved":false}`: 0} {
		t.Run(payload, func(t *testing.T) {
			d := newDesk(t, nil)
			d.askToPay()
			d.all("ann", `{"threadId":"1","runId":"2","resume":[{"interruptId":"`+d.waitingCall()+`","status":"resolved","payload":`+payload+`}]}`)
			require.Len(t, scores.GetOr(d.view("ann", "1").State(), nil), n)
			require.Empty(t, d.view("ann", "1").Suspended())
		})
	}
}

// A page of a long conversation gets it, whether it has all of it, a part, or
// nothing.
func TestALongConversation(t *testing.T) {
	d := newDesk(t, nil)
	n := effort.Runs(400)
	require.NoError(t, d.m.Update(t.Context(), workspace.Thread("ann", "1"), func(w *workspace.Workspace) error {
		var said []state.Message
		for i := range n {
			call := state.ToolCall{ID: fmt.Sprint("c", i), Name: "note", Input: `{}`}
			said = append(said, state.UserText(fmt.Sprint("q", i)), state.ToolCalls(call), state.ToolResult(call, `"r"`), state.AssistantText(fmt.Sprint("a", i)))
		}
		return state.Messages.Set(w.State(), said)
	}))
	ids := made("msg-", 4*n)
	for _, has := range [][]string{nil, ids[:n], ids[n:], ids, append([]string{"x"}, ids...)} {
		shown := d.all("ann", bodyOf(has, `{"id":"last`+fmt.Sprint(len(has))+`","role":"user","content":"say hi"}`))
		require.Contains(t, shown, `"MESSAGES_SNAPSHOT"`)
		require.Contains(t, shown, fmt.Sprintf(`"a%d"`, n-1))
		require.Equal(t, 1, strings.Count(shown, `"q0"`))
		require.Equal(t, n, strings.Count(shown, `"role":"tool"`), "each call has its result")
	}
}
