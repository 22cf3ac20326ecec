package statetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

func init() {
	programs = append(programs,
		mistakes.Program{Row: 1, Part: "model", Name: "result of a call never appended", Run: forgetResult,
			Words: []string{"request 2, of billing, would be refused by Anthropic", "✗ 1", `call "call_1" of "refund"`}},
		mistakes.Program{Row: 2, Part: "model", Name: "history cut between a call and its result", Run: cutHistory,
			Words: []string{"would be refused by OpenAI"}},
		mistakes.Program{Row: 3, Part: "model", Name: "one model call too few", Run: stopEarly,
			Words: []string{"the model was asked 1 time, and replies are left", `reply 2, Say("Refunded.")`}},
		mistakes.Program{Row: 4, Part: "model", Name: "one model call too many", Run: askOnce,
			Words: []string{"request 3, of billing, finds no reply", "all 2 replies have been given"}},
		mistakes.Program{Row: 7, Part: "model", Name: "400 retried without end", Run: retryRefusal,
			Words: []string{"is the same as the 3 requests before it", "the program does not stop"}},
		mistakes.Program{Row: 9, Part: "model", Name: "arguments edited", Run: editArguments,
			Words: []string{`the call "call_1" is not the one that the model made`, `- refund {"amount":129.9}`, `+ refund {"amount":1299}`}},
		mistakes.Program{Part: "model", Name: "arguments of a call without an id edited", Run: editWithoutID,
			Words: []string{"the call is not the one that the model made", `- refund {"amount":129.9}`, `+ refund {"amount":1299}`}},
		mistakes.Program{Part: "model", Name: "reply that lacks its conditions", Run: askAsAnother,
			Words: []string{`Say("Refunded."): it is for billing, no message says "#W1", When returns false`}},
		mistakes.Program{Part: "model", Name: "reply given too rarely", Run: askRarely,
			Words: []string{"Say(\"Wait.\"): given 2 of 3 times"}},
		mistakes.Program{Part: "model", Name: "equal requests that have replies", Run: askTheSame,
			Words: []string{"request 4, of billing, is the same as the 3 requests before it"}},
		mistakes.Program{Part: "model", Name: "secrets in a request", Run: askWithSecrets,
			Words: []string{"[SECRET 1]", "finds no reply", "replies are left"}},
		mistakes.Program{Part: "model", Name: "message that is nil", Run: askWithNil,
			Words: []string{"request 1, of billing: message 1 is nil or the zero message"}},
	)
}

var refundCall = statetest.Call("refund", `{"amount":129.9}`)

// talk is a conversation with a model.
type talk struct {
	t     *testing.T
	model *statetest.Model
	msgs  []state.Message
}

func newTalk(t *testing.T, f *provider.Format, replies ...statetest.Reply) *talk {
	t.Helper()
	return &talk{t, statetest.NewModel(t, f, replies...), []state.Message{state.UserText("The keyboard is broken.")}}
}

// ask appends what the model says, and returns its calls.
func (c *talk) ask() []state.ToolCall {
	c.t.Helper()
	r, err := c.model.Next(c.t.Context(), "billing", c.msgs)
	if err != nil {
		return nil // the model has reported it
	}
	c.msgs = append(c.msgs, r.Output...)
	var calls []state.ToolCall
	for _, m := range r.Output {
		if m, ok := m.(state.ToolCallMessage); ok {
			calls = append(calls, m.Calls()...)
		}
	}
	return calls
}

// answer appends a result for each call.
func (c *talk) answer(calls []state.ToolCall) {
	for _, call := range calls {
		c.msgs = append(c.msgs, state.ToolResult(call, `{"ok":true}`))
	}
}

func forgetResult(t *testing.T, mistake bool) {
	c := newTalk(t, provider.Anthropic, refundCall, statetest.Say("Refunded."))
	calls := c.ask()
	if mistake {
		calls = nil
	}
	c.answer(calls)
	c.msgs = append(c.msgs, state.UserText("Please hurry."))
	c.ask()
}

func cutHistory(t *testing.T, mistake bool) {
	c := newTalk(t, provider.OpenAI, refundCall, statetest.Say("Refunded."))
	c.answer(c.ask())
	if mistake {
		c.msgs = c.msgs[len(c.msgs)-1:]
	}
	c.ask()
}

func stopEarly(t *testing.T, mistake bool) {
	c := newTalk(t, provider.OpenAI, refundCall, statetest.Say("Refunded."))
	calls := c.ask()
	if !mistake {
		c.answer(calls)
		c.ask()
	}
}

func askOnce(t *testing.T, mistake bool) {
	c := newTalk(t, provider.OpenAI, refundCall, statetest.Say("Refunded."))
	c.answer(c.ask())
	c.ask()
	if mistake {
		c.ask()
	}
}

func retryRefusal(t *testing.T, mistake bool) {
	m := statetest.NewModel(t, provider.OpenAI, statetest.Status(400, `{"error":{}}`))
	var status *statetest.StatusError
	for {
		_, err := m.Next(t.Context(), "billing", []state.Message{state.UserText("The keyboard is broken.")})
		if !errors.As(err, &status) || !mistake {
			return
		}
	}
}

func editArguments(t *testing.T, mistake bool) {
	c := newTalk(t, provider.OpenAI, refundCall, statetest.Say("Refunded."))
	calls := c.ask()
	if mistake {
		calls[0].Input = `{"amount":1299}`
		c.msgs[1] = state.ToolCalls(calls...)
	}
	c.answer(calls)
	c.ask()
}

func editWithoutID(t *testing.T, mistake bool) {
	c := newTalk(t, provider.Gemini, refundCall, statetest.Say("Refunded."))
	calls := c.ask()
	calls[0].ID = ""
	if mistake {
		calls[0].Input = `{"amount":1299}`
	}
	c.msgs[1] = state.ToolCalls(calls...)
	c.answer(calls)
	c.ask()
}

func askAsAnother(t *testing.T, mistake bool) {
	asksTwice := func(r statetest.Request) bool { return len(r.Messages) == 2 }
	m := statetest.NewModel(t, provider.OpenAI, statetest.Say("Refunded.").To("billing").Reads("#W1").When(asksTwice).Times(-1))
	msgs := []state.Message{state.UserText("The keyboard is broken."), state.UserText("Order #W1.")}
	agent := "billing"
	if mistake {
		agent, msgs = "search", msgs[:1]
	}
	_, err := m.Next(t.Context(), agent, msgs)
	require.Equal(t, mistake, err != nil)
}

func askRarely(t *testing.T, mistake bool) {
	c := newTalk(t, provider.OpenAI, statetest.Say("Wait.").Times(3))
	for i := range 3 {
		if i < 2 || !mistake {
			c.msgs = append(c.msgs, state.UserText("Now?"))
			c.ask()
		}
	}
}

func askTheSame(t *testing.T, mistake bool) {
	c := newTalk(t, provider.OpenAI, statetest.Say("a"), statetest.Say("b"), statetest.Say("c"), statetest.Say("d"))
	first := slices.Clone(c.msgs)
	for i := range 4 {
		c.msgs = slices.Clone(first)
		if i == 2 && !mistake {
			c.msgs = append(c.msgs, state.UserText("Hello?"))
		}
		c.ask()
	}
}

func askWithSecrets(t *testing.T, mistake bool) {
	d := newTill(t)
	ctx := state.NewContext(t.Context(), d.st.As("billing"))
	said := "Pay with " + cardNumber
	long := strings.Repeat("and then ", 6) + cardNumber // it is cut in the number
	replies := []statetest.Reply{statetest.Say("Paid.")}
	if mistake {
		replies = append(replies, statetest.Call("pay", `{"card":"`+cardNumber+`"}`).Reads(cardNumber+"\n"), statetest.Say(long).To("search"))
	}
	m := statetest.NewModel(t, provider.OpenAI, replies...)
	for range len(replies) {
		_, err := m.Next(ctx, "billing", []state.Message{state.UserText(said)})
		require.True(t, err == nil || mistake)
	}
}

func askWithNil(t *testing.T, mistake bool) {
	m := statetest.NewModel(t, provider.OpenAI, statetest.Say("Hello.").Times(-1))
	msgs := []state.Message{state.UserText("Hi."), nil}
	if !mistake {
		msgs = msgs[:1]
	}
	_, err := m.Next(context.WithoutCancel(t.Context()), "billing", msgs)
	require.Equal(t, mistake, err != nil)
}
