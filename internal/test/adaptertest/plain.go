package adaptertest

import (
	"context"
	"errors"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// Plain returns the Answer of an Adapter without a framework, for tools from
// anywhere. It shows what an adapter has to do.
func Plain(
	tools func(ctx context.Context, run *workspace.Run, d *Desk, agent string) ([]*tool.Tool, error),
) func(ctx context.Context, run *workspace.Run, d *Desk) error {
	return func(ctx context.Context, run *workspace.Run, d *Desk) error {
		answer := func(st *state.State, commit func(context.Context) error) error {
			tools, err := tools(ctx, run, d, st.Agent())
			if err != nil {
				return err
			}
			return loop(ctx, d, st, tools, commit)
		}
		st, agents := run.State(), Agents(run.Message())
		if len(agents) == 1 {
			return answer(st.As(agents[0]), run.Commit)
		}
		branches, errs := make([]*state.State, len(agents)), make([]error, len(agents))
		var wg sync.WaitGroup
		for i, agent := range agents {
			branches[i] = st.Fork()
			wg.Go(func() {
				errs[i] = answer(branches[i].As(agent), func(context.Context) error { return nil })
			})
		}
		wg.Wait()
		return errors.Join(errors.Join(errs...), st.Join(branches...))
	}
}

// loop asks the model and makes its calls until it says a text, or until a call
// is suspended.
func loop(
	ctx context.Context, d *Desk, st *state.State, tools []*tool.Tool, commit func(context.Context) error,
) error {
	trim := transcript.KeepLast(Window)
	for {
		prompt := append([]state.Message{state.SystemText(st.Describe())}, state.Messages.Or(st, nil)...)
		said, err := d.Next(st.Agent(), trim(prompt))
		if err != nil {
			return err
		}
		err = errors.Join(state.Messages.Set(st, []state.Message{said}), commit(ctx))
		calls, ok := said.(state.ToolCallMessage)
		if err != nil || !ok {
			return err
		}
		results, err := tool.Run(ctx, st, tools, calls.Calls())
		if err != nil {
			return err
		}
		for _, r := range results {
			err = errors.Join(err, state.Messages.Set(st, []state.Message{r.Message}))
		}
		if err = errors.Join(err, commit(ctx)); err != nil || len(results) < len(calls.Calls()) {
			return err
		}
	}
}
