// Package lcstate lets chains of langchaingo work on a state: chat histories and
// memories that keep calls of tools, and an agent with typed tools.
//
// Everything takes the state from the context, in which [state.NewContext] or the
// run of a workspace has put it, and the rights of the agent that it is made for.
// A chain is made once and serves all users:
//
//	desk := &lcstate.Agent{Name: "billing", LLM: llm, Tools: []*tool.Tool{refund}}
//	reply, err := chains.Run(state.NewContext(ctx, st), desk, "The keyboard is broken.")
//
// Chains that run at the same time, each on a fork of the state, leave the same
// state whichever is first: see [state.State.Join].
package lcstate

import (
	"context"
	"errors"

	"github.com/agentstate/state"
)

// ErrNoState is returned if the context carries no state.
var ErrNoState = errors.New("lcstate: no state in the context")

// stateOf returns the state of ctx with the rights of an agent, which are those
// of the handle if the name is empty.
func stateOf(ctx context.Context, agent string) (*state.State, error) {
	st, ok := state.FromContext(ctx)
	if !ok {
		return nil, ErrNoState
	}
	if agent != "" {
		st = st.As(agent)
	}
	return st, nil
}
