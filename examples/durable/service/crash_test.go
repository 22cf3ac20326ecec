package main

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// The processes of the service die at each point, in memory.
func TestSurvivesCrashes(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "key")
	crash.Test{
		Open: func(p *crash.Process) *workspace.Options {
			m := p.Model(provider.OpenAI, statetest.Call("refund", `{"order":"#W1","amount":120}`),
				statetest.Say("A colleague looks at it."), statetest.Say("It is refunded."))
			return options(&http.Client{Transport: &wire.Transport{Converse: true, Base: m}}, func(ctx context.Context, key string, in order) error {
				_, err := p.Effect(ctx, "refund", key, in)
				for err != nil && ctx.Err() == nil { // what has come of it is not known
					time.Sleep(time.Second)
					_, err = p.Effect(ctx, "refund", key, in)
				}
				return err
			})
		},
		Messages: []workspace.Message{
			{ID: "1", Content: state.UserText("Refund my order #W1.")},
			{ID: "2", Content: state.UserText("Are you there?")},
			{ID: "3", Approve: []string{"call_1"}, Agent: "eve"},
		},
		Check: func(t testing.TB, v *workspace.View) {
			require.Equal(t, map[string]float64{"#W1": 120}, refunds.Or(v.State(), nil))
		},
	}.Run(t)
}
