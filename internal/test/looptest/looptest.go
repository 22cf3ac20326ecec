// Package looptest is the programs of workspace.Loop whose processes die at every
// point, on each store. Only tests import it.
//
// The laws are those of each [crash.Test]: a request is made again only if its
// answer was not committed, and never after the last word; an effect is made once
// for its key; each call has a result or waits; a message ends once, with one
// reply; and the provider accepts each request.
package looptest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

var (
	intent     = &state.Field[string]{Name: "intent", Owner: "triage", Read: state.Public}
	paid       = &state.Field[float64]{Name: "paid", Owner: "billing", Read: state.Public, Handler: state.Sum[float64]()}
	loopSchema = state.MustSchema(state.Team{"triage": {"billing"}, "eve": nil}, intent, paid)
)

// pay refunds with the key of its call, and writes what it has paid.
func pay(p *crash.Process, opts ...tool.Option) *tool.Tool {
	return tool.Must(tool.New("pay", "Pays.", func(ctx context.Context, in refundIn) (float64, error) {
		_, err := Retried(ctx, p, "pay", callKey(ctx), in)
		return in.Amount, err
	}, append(opts, tool.To(paid, ""))...))
}

type refundIn struct {
	Amount float64 `json:"amount"`
}

// Retried makes an effect, again with its key while its outcome is unknown.
func Retried(ctx context.Context, p *crash.Process, name, key string, in any) (state.JSON, error) {
	for {
		out, err := p.Effect(ctx, name, key, in)
		if err == nil || ctx.Err() != nil {
			return out, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// callKey returns the key that the documentation of workspace.Loop names.
func callKey(ctx context.Context) string {
	call, _ := tool.CallOf(ctx)
	return call.Key
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
func billing(ask func(context.Context, *loop.Turn) error, tools ...*tool.Tool) *workspace.Options {
	return &workspace.Options{Schema: loopSchema, Run: workspace.Loop(&loop.Loop{
		Agents: map[string]loop.Agent{"billing": {Ask: ask, Tools: tools}},
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
	require.Equal(t, 129.9, paid.GetOr(v.State(), 0))
	require.Empty(t, v.Suspended())
}
