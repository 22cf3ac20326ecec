package looptest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// team is a loop of two agents.
func team(m *statetest.Model, next func(*state.State) (string, bool), tools ...*tool.Tool) *workspace.Options {
	update := tool.Must(tool.Updater(loopSchema, "triage"))
	return &workspace.Options{Schema: loopSchema, Run: workspace.Loop(&loop.Loop{
		Agents: map[string]loop.Agent{
			"triage":  {Ask: m.Ask, Tools: []*tool.Tool{update}},
			"billing": {Ask: m.Ask, Tools: tools},
		},
		Route: next,
	})}
}

// TwoAgents returns the tests of loops of two agents.
func TwoAgents() map[string]crash.Test {
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
	return map[string]crash.Test{
		"a router": {
			Open: func(p *crash.Process) *workspace.Options {
				return team(p.Model(provider.OpenAI, triage(), call()), router.Next, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay.")},
			Check:    paidOnce,
		},
		"a last word": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, triage(), call(), statetest.Say("Paid.").To("billing"),
					statetest.Say("You are welcome.").To("billing"))
				return team(m, byHistory, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Thanks.")},
			Check:    paidOnce,
		},
		"an answer that is refused, and a router that goes on": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.Anthropic, triage(),
					statetest.Say("I would rather not.").Stops("refusal").To("billing"), call().Reads("Please."))
				return team(m, router.Next, pay(p))
			},
			Messages: []workspace.Message{say("1", "Pay."), say("2", "Please.")},
			Check: func(t testing.TB, v *workspace.View) {
				paidOnce(t, v)
				require.Equal(t, []state.Stop{state.StopRefused, ""}, []state.Stop{v.Ended[0].Stop, v.Ended[1].Stop})
			},
		},
		"an approval": {
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, triage(), call(), statetest.Say("Paid.").To("billing"))
				return team(m, byHistory, pay(p, approved()))
			},
			Messages: []workspace.Message{
				say("1", "Pay."), {ID: "2", Decisions: []tool.Decision{tool.Approve("call_2")}, Agent: "eve"},
			},
			Check: paidOnce,
		},
	}
}

// lastSpeaker returns the role of the last message.
func lastSpeaker(st *state.State) string {
	msgs := state.Messages.GetOr(st, nil)
	return msgs[len(msgs)-1].Role()
}
