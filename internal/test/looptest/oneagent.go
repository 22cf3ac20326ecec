package looptest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// OneAgent returns the tests of loops of one agent.
func OneAgent() map[string]crash.Test {
	call := func() statetest.Reply { return statetest.Call("pay", `{"amount":129.9}`) }
	return map[string]crash.Test{
		"one agent": {
			Open: func(p *crash.Process) *workspace.Options {
				return billing(p.Model(provider.OpenAI, call(), statetest.Say("Paid."), statetest.Say("You are welcome.")).Ask,
					pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Thanks.")},
			Check:    paidOnce,
		},
		"calls of one answer, and text with it": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.Anthropic, statetest.Answer(func(statetest.Request) ([]state.Message, error) {
					return []state.Message{state.AssistantText("I pay."), state.ToolCalls(
						state.ToolCall{ID: "a", Name: "pay", Input: `{"amount":100}`},
						state.ToolCall{ID: "b", Name: "look", Input: `{"order":"W1"}`},
						state.ToolCall{ID: "c", Name: "pay", Input: `{"amount":29.9}`},
					)}, nil
				}), statetest.Say("Paid."))
				return billing(m.Ask, pay(p), look)
			},
			Messages: []workspace.Message{say("1", "Pay.")},
			Check:    paidOnce,
		},
		"a call that was cut": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, call().Stops("length"),
					call().Reads("cut off").When(endsWithResult), statetest.Say("Paid."))
				return billing(m.Ask, pay(p, approved()))
			},
			Messages: []workspace.Message{say("1", "Pay."), {ID: "2", Decisions: []tool.Decision{tool.Approve("call_2")}}},
			Check:    paidOnce,
		},
		"two calls in a row that were cut": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.Anthropic, call().Stops("max_tokens"), call().Stops("max_tokens").Reads("cut off"),
					call().Reads("Once more"), statetest.Say("Paid."))
				return billing(m.Ask, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Once more.")},
			Check: func(t testing.TB, v *workspace.View) {
				paidOnce(t, v)
				require.Equal(t, []state.Stop{state.StopLength, ""}, []state.Stop{v.Ended[0].Stop, v.Ended[1].Stop})
			},
		},
		"a paused answer": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.Anthropic, statetest.Say("I look for it.").Stops("pause_turn"),
					call().Reads("I look for it."), statetest.Say("Paid."))
				return billing(m.Ask, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay.")},
			Check:    paidOnce,
		},
		"an answer that is refused": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.Anthropic, statetest.Say("I would rather not.").Stops("refusal"),
					call().Reads("Please."), statetest.Say("Paid."))
				return billing(m.Ask, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Please.")},
			Check: func(t testing.TB, v *workspace.View) {
				paidOnce(t, v)
				require.Empty(t, v.DeadLetters)
				require.Equal(t, []state.Stop{state.StopRefused, ""}, []state.Stop{v.Ended[0].Stop, v.Ended[1].Stop})
			},
		},
		"a tool that fails": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, statetest.Call("look", `{"order":"W2"}`), statetest.Call("look",
					`{"order":"W1"}`).Reads("no such order"),
					call().Reads("delivered"), statetest.Say("Paid."))
				return billing(m.Ask, look, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay.")},
			Check:    paidOnce,
		},
		"an approval with a message in between": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, call(), statetest.Say("A colleague looks at it.").Reads("Are you there?"),
					statetest.Say("Paid.").When(endsWithResult), statetest.Say("You are welcome."))
				return billing(m.Ask, pay(p, approved()))
			},
			Messages: []workspace.Message{
				say("1", "Pay."), say("2", "Are you there?"),
				{ID: "3", Decisions: []tool.Decision{tool.Approve("call_1")}, Agent: "eve"}, say("4", "Thanks."),
			},
			Check: paidOnce,
		},
		"an approval at once, with words": {
			Open: func(p *crash.Process) *workspace.Options {
				return billing(p.Model(provider.Gemini, call(), statetest.Say("Paid.")).Ask, pay(p, approved()))
			},
			Messages: []workspace.Message{
				say("1", "Pay."),
				{ID: "2", Decisions: []tool.Decision{tool.Approve("call_1")}, Content: state.UserText("It is approved.")},
			},
			Check: paidOnce,
		},
		"a refusal with a message in between": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.Anthropic, call(), statetest.Say("A colleague looks at it."),
					statetest.Say("I may not pay.").When(endsWithResult).Reads("refused"))
				return billing(m.Ask, pay(p, approved()))
			},
			Messages: []workspace.Message{
				say("1", "Pay."), say("2", "Are you there?"),
				{ID: "3", Decisions: []tool.Decision{tool.Refuse("call_1", "")}},
			},
			Check: func(t testing.TB, v *workspace.View) {
				require.False(t, paid.Has(v.State()))
				require.Empty(t, v.Suspended())
			},
		},
		"an expiry": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, call(), statetest.Say("A colleague looks at it."),
					statetest.Say("Nobody has looked at it.").When(endsWithResult).Reads("in time"), statetest.Say("You are welcome."))
				ask := func(ctx context.Context, turn *loop.Turn) error {
					run, _ := workspace.FromContext(ctx)
					for _, call := range run.Suspended() { // a message expires it meanwhile, and waits
						time.Sleep(max(5*time.Second, time.Until(call.Until)+15*time.Second))
					}
					return m.Ask(ctx, turn)
				}
				return billing(ask, pay(p, approved(), tool.Expires(time.Minute)))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Are you there?"), say("3", "Thanks.")},
			Check: func(t testing.TB, v *workspace.View) {
				require.False(t, paid.Has(v.State()))
				require.Empty(t, v.Suspended())
			},
		},
		"one call waits, and one does not": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, statetest.Calls(
					state.ToolCall{ID: "a", Name: "pay", Input: `{"amount":100.9}`},
					state.ToolCall{ID: "b", Name: "pay", Input: `{"amount":29}`},
				), statetest.Say("Paid."))
				return billing(m.Ask, pay(p, approved()))
			},
			Messages: []workspace.Message{say("1", "Pay."), {ID: "2", Decisions: []tool.Decision{tool.Approve("a")}}},
			Check:    paidOnce,
		},
		"a result from outside": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, statetest.Call("ask", `{}`), statetest.Say("I have asked."),
					call().When(endsWithResult).Reads("they agree"), statetest.Say("Paid."))
				return billing(m.Ask, pay(p), tool.Must(tool.New("ask", "Asks.", func(context.Context, struct{}) (string, error) {
					return "", tool.Suspend(errors.New("somebody is asked"))
				})))
			},
			Messages: []workspace.Message{
				say("1", "Pay."), say("2", "Well?"),
				{ID: "3", Decisions: []tool.Decision{tool.AnswerWith("call_1", `"they agree"`)}},
			},
			Check: paidOnce,
		},
		"a program that stores more": { // its Commit may fail behind the last word
			Open: func(p *crash.Process) *workspace.Options {
				more := p.Store(store.NewMemory())
				m := p.Model(provider.OpenAI, call(), statetest.Say("Paid."), statetest.Say("You are welcome."))
				return &workspace.Options{Schema: loopSchema, Run: workspace.Loop(&loop.Loop{
					Agents: map[string]loop.Agent{"billing": {Ask: m.Ask, Tools: []*tool.Tool{pay(p, approved())}}},
					Commit: func(ctx context.Context) error {
						_, err := store.Put(ctx, more, "more", nil, store.Always)
						for err != nil && ctx.Err() == nil {
							time.Sleep(time.Second)
							_, err = store.Put(ctx, more, "more", nil, store.Always)
						}
						return err
					},
				})}
			},
			Messages: []workspace.Message{
				say("1", "Pay."), {ID: "2", Decisions: []tool.Decision{tool.Approve("call_1")}}, say("3", "Thanks."),
			},
			Check: paidOnce,
		},
	}
}
