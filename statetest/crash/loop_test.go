package crash_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// The tests of this file let processes of workspace.Loop die at every point. The
// laws are those of compareRequests and of each crash.Test: a request is made
// again only if its answer was not committed, and never after the last word; an
// effect is made once for its key; each call has a result or waits; a message
// ends once, with one reply; and the provider accepts each request.

var (
	intent     = &state.Field[string]{Name: "intent", Owner: "triage", Read: state.Public}
	paid       = &state.Field[float64]{Name: "paid", Owner: "billing", Read: state.Public, Handler: state.Sum[float64]()}
	loopSchema = state.MustSchema(state.Team{"triage": {"billing"}}, intent, paid)
)

// pay refunds with the key of its call, and writes what it has paid.
func pay(p *crash.Process, opts ...tool.Option) *tool.Tool {
	return tool.Must(tool.New("pay", "Pays.", func(ctx context.Context, in refundIn) (float64, error) {
		_, err := retried(ctx, p, "pay", callKey(ctx), in)
		return in.Amount, err
	}, append(opts, tool.To(paid, ""))...))
}

// callKey returns the key that the documentation of workspace.Loop names.
func callKey(ctx context.Context) string {
	run, _ := workspace.FromContext(ctx)
	call, _ := tool.CallOf(ctx)
	return run.ID() + "/" + call.ID
}

// look is a tool without an effect, which knows only W1.
var look = tool.Must(tool.New("look", "Looks an order up.", func(_ context.Context, in struct {
	Order string `json:"order"`
}) (string, error) {
	if in.Order != "W1" {
		return "", errors.New("there is no such order")
	}
	return "delivered", nil
}))

// approved lets refunds of more than 100 wait for a person.
func approved() tool.Option {
	return tool.NeedsApproval(func(_ context.Context, in refundIn) (string, bool) {
		return "more than 100", in.Amount > 100
	})
}

// billing is a loop of one agent.
func billing(ask func(context.Context, *tool.Turn) error, tools ...*tool.Tool) *workspace.Options {
	return &workspace.Options{Schema: loopSchema, Run: workspace.Loop(&tool.Loop{
		Agents: map[string]tool.Agent{"billing": {Ask: ask, Tools: tools}},
	})}
}

// endsWithResult reports whether a request has something to answer at its end: a
// result that came late is not left in the middle.
func endsWithResult(r statetest.Request) bool {
	return r.Messages[len(r.Messages)-1].Type() == "tool_result"
}

func say(id, text string) workspace.Message {
	return workspace.Message{ID: id, Content: state.UserText(text)}
}

// paidOnce requires that a workspace has paid 129.9, and that no call waits.
func paidOnce(t testing.TB, v *workspace.View) {
	require.Equal(t, 129.9, paid.Or(v.State(), 0))
	require.Empty(t, v.Suspended())
}

func TestLoopSurvivesCrashes(t *testing.T) {
	call := func() statetest.Reply { return statetest.Call("pay", `{"amount":129.9}`) }
	for name, test := range map[string]crash.Test{
		"one agent": {
			Open: func(p *crash.Process) *workspace.Options {
				return billing(p.Model(provider.OpenAI, call(), statetest.Say("Paid."), statetest.Say("You are welcome.")).Ask, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Thanks.")},
			Check:    paidOnce,
		},
		"calls of one answer, and text with it": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.Anthropic, statetest.Answer(func(statetest.Request) ([]state.Message, error) {
					return []state.Message{state.AssistantText("I pay."), state.ToolCalls(
						state.ToolCall{ID: "a", Name: "pay", Input: `{"amount":100}`}, state.ToolCall{ID: "b", Name: "look", Input: `{"order":"W1"}`},
						state.ToolCall{ID: "c", Name: "pay", Input: `{"amount":29.9}`},
					)}, nil
				}), statetest.Say("Paid."))
				return billing(m.Ask, pay(p), look)
			},
			Messages: []workspace.Message{say("1", "Pay.")},
			Check:    paidOnce,
		},
		"a tool that fails": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, statetest.Call("look", `{"order":"W2"}`), statetest.Call("look", `{"order":"W1"}`).Reads("no such order"),
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
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Are you there?"), {ID: "3", Approve: []string{"call_1"}, Agent: "eve"}, say("4", "Thanks.")},
			Check:    paidOnce,
		},
		"an approval at once, with words": {
			Open: func(p *crash.Process) *workspace.Options {
				return billing(p.Model(provider.Gemini, call(), statetest.Say("Paid.")).Ask, pay(p, approved()))
			},
			Messages: []workspace.Message{say("1", "Pay."), {ID: "2", Approve: []string{"call_1"}, Content: state.UserText("It is approved.")}},
			Check:    paidOnce,
		},
		"a refusal with a message in between": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.Anthropic, call(), statetest.Say("A colleague looks at it."), statetest.Say("I may not pay.").When(endsWithResult).Reads("refused"))
				return billing(m.Ask, pay(p, approved()))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Are you there?"), {ID: "3", Refuse: []string{"call_1"}}},
			Check: func(t testing.TB, v *workspace.View) {
				require.False(t, paid.Has(v.State()))
				require.Empty(t, v.Suspended())
			},
		},
		"an expiry": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, call(), statetest.Say("A colleague looks at it."),
					statetest.Say("Nobody has looked at it.").When(endsWithResult).Reads("in time"), statetest.Say("You are welcome."))
				ask := func(ctx context.Context, turn *tool.Turn) error {
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
					state.ToolCall{ID: "a", Name: "pay", Input: `{"amount":100.9}`}, state.ToolCall{ID: "b", Name: "pay", Input: `{"amount":29}`},
				), statetest.Say("Paid."))
				return billing(m.Ask, pay(p, approved()))
			},
			Messages: []workspace.Message{say("1", "Pay."), {ID: "2", Approve: []string{"a"}}},
			Check:    paidOnce,
		},
		"a result from outside": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, statetest.Call("ask", `{}`), statetest.Say("I have asked."), call().When(endsWithResult).Reads("they agree"), statetest.Say("Paid."))
				return billing(m.Ask, pay(p), tool.Must(tool.New("ask", "Asks.", func(context.Context, struct{}) (string, error) {
					return "", tool.Suspend(errors.New("somebody is asked"))
				})))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Well?"), {ID: "3", Answers: []state.ToolResultMessage{
				state.ToolResult(state.ToolCall{ID: "call_1", Name: "ask"}, `"they agree"`),
			}}},
			Check: paidOnce,
		},
		"a program that stores more": { // its Commit may fail behind the last word
			Open: func(p *crash.Process) *workspace.Options {
				more := p.Store(store.NewMemory())
				m := p.Model(provider.OpenAI, call(), statetest.Say("Paid."), statetest.Say("You are welcome."))
				return &workspace.Options{Schema: loopSchema, Run: workspace.Loop(&tool.Loop{
					Agents: map[string]tool.Agent{"billing": {Ask: m.Ask, Tools: []*tool.Tool{pay(p, approved())}}},
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
			Messages: []workspace.Message{say("1", "Pay."), {ID: "2", Approve: []string{"call_1"}}, say("3", "Thanks.")},
			Check:    paidOnce,
		},
	} {
		t.Run(name, test.Run)
	}
}

// team is a loop of two agents.
func team(m *statetest.Model, next func(*state.State) (string, bool), tools ...*tool.Tool) *workspace.Options {
	update := tool.Must(tool.Updater(loopSchema, "triage"))
	return &workspace.Options{Schema: loopSchema, Run: workspace.Loop(&tool.Loop{
		Agents: map[string]tool.Agent{
			"triage":  {Ask: m.Ask, Tools: []*tool.Tool{update}},
			"billing": {Ask: m.Ask, Tools: tools},
		},
		Route: next,
	})}
}

func TestLoopOfTwoAgentsSurvivesCrashes(t *testing.T) {
	router := route.Must(route.New(
		route.When(route.Not(route.Has(intent)), "triage"),
		route.When(route.Not(route.Has(paid)), "billing"),
	))
	// The customer has the last word of billing.
	byHistory := func(st *state.State) (string, bool) {
		if agent, ok := router.Next(st); ok {
			return agent, true
		}
		last, _ := st.History().Last()
		return "billing", last.Agent != "billing" || len(last.ToolCalls) > 0 || lastSpeaker(st) == "user"
	}
	triage := func() statetest.Reply {
		return statetest.Call("update_state", `{"intent":"refund"}`).To("triage")
	}
	call := func() statetest.Reply { return statetest.Call("pay", `{"amount":129.9}`).To("billing") }
	for name, test := range map[string]crash.Test{
		"a router": {
			Open: func(p *crash.Process) *workspace.Options {
				return team(p.Model(provider.OpenAI, triage(), call()), router.Next, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay.")},
			Check:    paidOnce,
		},
		"a last word": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, triage(), call(), statetest.Say("Paid.").To("billing"), statetest.Say("You are welcome.").To("billing"))
				return team(m, byHistory, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Thanks.")},
			Check:    paidOnce,
		},
		"an approval": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, triage(), call(), statetest.Say("Paid.").To("billing"))
				return team(m, byHistory, pay(p, approved()))
			},
			Messages: []workspace.Message{say("1", "Pay."), {ID: "2", Approve: []string{"call_2"}, Agent: "eve"}},
			Check:    paidOnce,
		},
	} {
		t.Run(name, test.Run)
	}
}

// lastSpeaker returns the role of the last message.
func lastSpeaker(st *state.State) string {
	msgs := state.Messages.Or(st, nil)
	return msgs[len(msgs)-1].Role()
}

// overHTTP asks a model with nothing but a client and package wire.
func overHTTP(m *statetest.Model, path, body string) func(context.Context, *tool.Turn) error {
	client := &http.Client{Transport: &wire.Transport{Converse: true, Base: m}}
	return func(ctx context.Context, _ *tool.Turn) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://model"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, answer)
		}
		return err
	}
}

const (
	chatPath, chatBody         = "/v1/chat/completions", `{"model":"m","stream":true,"messages":[]}`
	messagesPath, messagesBody = "/v1/messages", `{"model":"m","max_tokens":100,"stream":true,"messages":[]}`
)

// The model is away for a while: it is asked again, in the same run.
func TestLoopSurvivesOutagesOfTheModel(t *testing.T) {
	for name, outage := range map[string][]statetest.Reply{
		"429":                     {statetest.Status(http.StatusTooManyRequests, `{"error":{"message":"slowly"}}`)},
		"503, twice":              {statetest.Status(http.StatusServiceUnavailable, `{}`).Times(2)},
		"a timeout":               {statetest.Fail(context.DeadlineExceeded)},
		"a broken connection":     {statetest.Fail(io.ErrUnexpectedEOF)},
		"a stream that breaks":    {statetest.Say("Half of an answer.").Cut(1)},
		"a stream without a word": {statetest.Say("Half of an answer.").Cut(0)},
		"a call that breaks":      {statetest.Call("pay", `{"amount":129.9}`).Cut(1)},
	} {
		for vendor, open := range map[string]func(p *crash.Process, replies ...statetest.Reply) func(context.Context, *tool.Turn) error{
			"OpenAI": func(p *crash.Process, replies ...statetest.Reply) func(context.Context, *tool.Turn) error {
				return overHTTP(p.Model(provider.OpenAI, replies...), chatPath, chatBody)
			},
			"Anthropic": func(p *crash.Process, replies ...statetest.Reply) func(context.Context, *tool.Turn) error {
				return overHTTP(p.Model(provider.Anthropic, replies...), messagesPath, messagesBody)
			},
			"Ask": func(p *crash.Process, replies ...statetest.Reply) func(context.Context, *tool.Turn) error {
				return p.Model(provider.OpenAI, replies...).Ask
			},
		} {
			pairs := -1
			if name == "503, twice" {
				pairs = 20
			}
			t.Run(name+"/"+vendor, crash.Test{
				Open: func(p *crash.Process) *workspace.Options {
					replies := append(append(append([]statetest.Reply{}, outage...), statetest.Call("pay", `{"amount":129.9}`)), outage...)
					return billing(open(p, append(replies, statetest.Say("Paid."))...), pay(p))
				},
				Messages: []workspace.Message{say("1", "Pay.")},
				Check:    paidOnce,
				Pairs:    pairs,
			}.Run)
		}
	}
}
