package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/wire"
)

// What the user says belongs to the State. A request that ends with it would be sent in
// front of the conversation, and the State would have the answer without the question.
func TestARequestThatEndsWithATurnOfTheUserIsRefused(t *testing.T) {
	for _, c := range []struct {
		what string
		api  api
		body string
	}{
		{"a user", apis[0], `{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Second"}]}`},
		{"a user behind examples", apis[0], `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`},
		{"instructions behind the user", apis[0], `{"messages":[{"role":"user","content":"Second"},{"role":"system","content":"Be kind."}]}`},
		{"a result", apis[0], `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"1","content":"x"}]}`},
		{"a text as input", apis[1], `{"input":"Second"}`},
		{"a user of Anthropic", apis[2], `{"max_tokens":9,"system":"Be kind.","messages":[{"role":"user","content":"Second"}]}`},
		{"a user of Gemini", apis[3], `{"contents":[{"role":"user","parts":[{"text":"Second"}]}]}`},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, said := range [][]state.Message{nil, {state.UserText("First"), state.AssistantText("Yes")}, {state.UserText("Second")}} {
				server := newRecorder(t, c.api, false)
				st := newState(t, said...)
				_, err := tryPost(newClient(t, &wire.Transport{}), st, server.URL+c.api.path, c.body)
				require.ErrorIs(t, err, state.ErrInvalid)
				require.ErrorContains(t, err, "wire: request: ")
				require.ErrorContains(t, err, "State.UserSays")
				require.NotContains(t, err.Error(), "Second", "what was said is not shown")
				require.Len(t, state.Messages.GetOr(st, nil), len(said))
				require.Empty(t, server.bodies)
			}
		})
	}
}

// Programs that have the conversation, calls outside of it, and instructions with
// examples are sound.
func TestARequestMayHaveTurnsThatAreNotOfTheConversation(t *testing.T) {
	a := apis[0]
	user := `{"messages":[{"role":"user","content":"A title, please."}]}`
	examples := `{"messages":[{"role":"user","content":"2+2"},{"role":"assistant","content":"4"}]}`
	for _, c := range []struct {
		what, body string
		transport  *wire.Transport
		outside    bool
	}{
		{"RecordOnly", user, &wire.Transport{RecordOnly: true}, false},
		{"OutsideConversation", user, &wire.Transport{}, true},
		{"examples", examples, &wire.Transport{}, false},
	} {
		server := newRecorder(t, a, false)
		client, st := newClient(t, c.transport), newState(t, state.UserText("Hi!"))
		ctx := state.NewContext(t.Context(), st)
		if c.outside {
			ctx = wire.OutsideConversation(ctx)
		}
		require.NoError(t, send(ctx, client, server.URL+a.path, c.body), c.what)
		require.Len(t, server.bodies, 1, c.what)
	}
}
