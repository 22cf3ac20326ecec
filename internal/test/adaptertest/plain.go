package adaptertest

import (
	"context"
	"errors"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// Plain returns the Answer of an Adapter without a framework, for tools from
// anywhere. It shows what an adapter has to do.
func Plain(
	tools func(ctx context.Context, run *workspace.Run, d *Desk, agent string) ([]*tool.Tool, error),
) func(ctx context.Context, run *workspace.Run, d *Desk) error {
	return func(ctx context.Context, run *workspace.Run, d *Desk) error {
		answer := func(st *state.State, agent string) error {
			tools, err := tools(ctx, run, d, agent)
			if err != nil {
				return err
			}
			loop := loop.Loop{Agents: map[string]loop.Agent{agent: {Ask: d.ask, Tools: tools}}}
			if _, err = loop.Run(ctx, st); errors.Is(err, tool.ErrSuspended) {
				return nil
			}
			return err
		}
		st, agents := run.State(), Agents(run.Message())
		if len(agents) == 1 {
			return answer(st, agents[0])
		}
		branches, errs := make([]*state.State, len(agents)), make([]error, len(agents))
		var wg sync.WaitGroup
		for i, agent := range agents {
			branches[i] = st.Fork()
			wg.Go(func() { errs[i] = answer(branches[i], agent) })
		}
		wg.Wait()
		return errors.Join(errors.Join(errs...), st.Join(branches...))
	}
}

// ask asks the model with what the window shows, and the description of the State
// behind it.
func (d *Desk) ask(ctx context.Context, turn *loop.Turn) error {
	st := turn.State()
	shown, err := Window.Messages(ctx, st, 0)
	if err == nil {
		shown, err = turn.Prompt(ctx, shown)
	}
	if err != nil {
		return err
	}
	said, err := d.Next(st.Agent(), append(shown, state.UserText("<context>\n"+st.Describe()+"</context>")))
	if err != nil {
		return err
	}
	return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
}
