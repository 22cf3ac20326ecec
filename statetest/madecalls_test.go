package statetest

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
)

// resumedModels returns a function that makes processes which share a script.
func resumedModels(t *testing.T, f *provider.Format, replies ...Reply) func() *Model {
	s := newScript(replies).resumed()
	return func() *Model { return newModel(t, f, s) }
}

func output(t *testing.T, m *Model, msgs ...state.Message) []state.Message {
	t.Helper()
	r, err := m.Next(t.Context(), "desk", msgs)
	require.NoError(t, err)
	return r.Output
}

var hello = state.UserText("Hello.")

func TestResumedScriptGivesAnEqualRequestItsAnswerAgain(t *testing.T) {
	models := resumedModels(t, provider.OpenAI, Call("look", `{}`), Status(529, ""), Say("Found."))
	first := output(t, models(), hello)
	require.Equal(t, "call_1", callList(first)[0].ID)
	require.Equal(t, first, output(t, models(), hello))

	more := []state.Message{hello, first[0], state.ToolResult(callList(first)[0], `1`)}
	_, err := models().Next(t.Context(), "desk", more)
	require.ErrorContains(t, err, "529", "a failure is not given again")
	found := output(t, models(), more...)
	require.Equal(t, "Found.", found[0].(state.TextMessage).Text())
	require.Equal(t, found, output(t, models(), more...))
}

func TestResumedScriptMakesInterruptedCallsAgain(t *testing.T) {
	two := Answer(func(Request) ([]state.Message, error) {
		return []state.Message{state.AssistantText("I look."),
			state.ToolCalls(state.ToolCall{Name: "a", Input: `{"n":1}`}, state.ToolCall{Name: "b", Input: `{"n":2}`})}, nil
	})
	for _, f := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
		for _, overHTTP := range []bool{false, true} {
			t.Run(fmt.Sprint(f, overHTTP), func(t *testing.T) {
				sent := func(msgs ...state.Message) []state.Message {
					if !overHTTP {
						return msgs
					}
					body, _, err := f.EncodeRequest(provider.Request{Messages: msgs})
					require.NoError(t, err)
					r, err := f.DecodeRequest(body)
					require.NoError(t, err)
					return r.Messages
				}
				m := resumedModels(t, f, two, Say("Found."))()
				said := output(t, m, sent(hello)...)
				made := callList(said)
				require.Len(t, made, 2)

				// No call has a result: all is said again.
				cut := append([]state.Message{hello}, said...)
				cut = append(cut, state.ToolError(made[0], origin.NoResult), state.ToolError(made[1], origin.NoResult))
				again := output(t, m, sent(cut...)...)
				require.Len(t, again, len(said))
				second := callList(again)
				require.Equal(t, []state.ToolCall{{ID: "call_3", Name: "a", Input: `{"n":1}`}, {ID: "call_4", Name: "b", Input: `{"n":2}`}},
					bare(second))
				require.Equal(t, again, output(t, m, sent(cut...)...), "an equal request")

				// One has a result: the other is made again.
				cut = append(cut, again...)
				cut = append(cut, state.ToolResult(second[0], `{"ok":true}`), state.ToolError(second[1], origin.NoResult))
				again = output(t, m, sent(cut...)...)
				third := callList(again)
				require.Len(t, again, 1)
				require.Equal(t, []state.ToolCall{{ID: "call_5", Name: "b", Input: `{"n":2}`}}, bare(third))

				cut = append(append(cut, again...), state.ToolResult(third[0], `{"ok":true}`))
				found := output(t, m, sent(cut...)...)
				require.Equal(t, "Found.", found[0].(state.TextMessage).Text())
				require.Empty(t, m.script.Missing(unmasked))
			})
		}
	}
}

func bare(calls []state.ToolCall) []state.ToolCall {
	list := make([]state.ToolCall, len(calls))
	for i, c := range calls {
		list[i] = state.ToolCall{ID: c.ID, Name: c.Name, Input: c.Input}
	}
	return list
}

func TestInterruptedCalls(t *testing.T) {
	a, b := state.ToolCall{ID: "1", Name: "a", Input: `{}`}, state.ToolCall{ID: "2", Name: "b", Input: `{}`}
	failed := func(c state.ToolCall) state.Message { return state.ToolError(c, origin.NoResult) }
	done := func(c state.ToolCall) state.Message { return state.ToolResult(c, `1`) }
	nameless := func(c state.ToolCall) state.ToolCall { c.ID = ""; return c }
	for _, test := range []struct {
		name string
		msgs []state.Message
		want []state.ToolCall
	}{
		{"no message", nil, nil},
		{"a text", []state.Message{hello}, nil},
		{"no results", []state.Message{hello, state.ToolCalls(a, b)}, []state.ToolCall{a, b}},
		{"all answered", []state.Message{hello, state.ToolCalls(a, b), done(b), done(a)}, nil},
		{"one not", []state.Message{hello, state.ToolCalls(a, b), failed(b), done(a)}, []state.ToolCall{b}},
		{"one without", []state.Message{hello, state.ToolCalls(a), state.ToolCalls(b), done(a)}, []state.ToolCall{b}},
		{"the tool failed", []state.Message{hello, state.ToolCalls(a), state.ToolError(a, "no network")}, nil},
		{"the user goes on", []state.Message{hello, state.ToolCalls(a), failed(a), hello}, nil},
		{"an earlier turn", []state.Message{hello, state.ToolCalls(a), failed(a), state.ToolCalls(b), done(b)}, nil},
		{"without ids", []state.Message{hello, state.ToolCalls(nameless(a), nameless(a)), done(nameless(a)), failed(nameless(a))}, []state.ToolCall{nameless(a)}},
	} {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.want, interrupted(test.msgs)) })
	}
}

func TestInterruptedCallsWithoutIDsAreToldByTheirInput(t *testing.T) {
	one, two := state.ToolCall{Name: "look", Input: `{"n":1}`}, state.ToolCall{Name: "look", Input: `{"n":2}`}
	m := resumedModels(t, provider.Gemini, Calls(one, two))()
	output(t, m, hello)
	again := output(t, m, hello, state.ToolCalls(one, two), state.ToolError(one, origin.NoResult), state.ToolResult(two, `1`))
	require.Equal(t, []state.ToolCall{{ID: "call_3", Name: "look", Input: `{"n":1}`}}, bare(callList(again)))
}

func TestRequestsAreEqualWhateverTheIDsOfCallsMadeAgain(t *testing.T) {
	s := newScript([]Reply{Call("look", `{}`).Times(2), Say("Found.")}).resumed()
	m := newModel(t, provider.OpenAI, s)
	first := output(t, m, hello)
	failed := []state.Message{hello, first[0], state.ToolError(callList(first)[0], origin.NoResult)}
	again := output(t, m, failed...)
	one := s.plain(Request{Messages: []state.Message{hello, first[0], state.ToolResult(callList(first)[0], `1`)}})
	two := s.plain(Request{Messages: []state.Message{hello, again[0], state.ToolResult(callList(again)[0], `1`)}})
	require.NotEqual(t, callList(first), callList(again))
	require.True(t, one.equal(two))
	other := output(t, m, hello, hello) // another giving of the reply
	require.False(t, one.equal(s.plain(Request{Messages: []state.Message{hello, other[0], state.ToolResult(callList(other)[0], `1`)}})))
	output(t, m, hello, hello, hello)
}

// Two processes may ask at the same time: one stands still and goes on.
func TestEqualRequestsAtATimeUseOneReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Answer(func(Request) ([]state.Message, error) {
			time.Sleep(time.Second)
			return []state.Message{state.AssistantText("Found.")}, nil
		})
		models := resumedModels(t, provider.OpenAI, slow)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				r, err := models().Next(t.Context(), "desk", []state.Message{hello})
				if err != nil || len(r.Output) != 1 {
					t.Errorf("got %v, %v", r.Output, err)
				}
			})
		}
		wg.Wait()
	})
}
