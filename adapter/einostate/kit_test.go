package einostate_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	einotool "github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// desk returns the adapter of the shared scenario, with agents that stream or
// not, and with checkpoints or without.
func desk(checkpoints adk.CheckPointStore, streaming bool) adaptertest.Adapter {
	return adaptertest.Adapter{
		Fields: []state.Part{einostate.CheckpointField},
		Open: func(ctx context.Context, file string) (store.Store, error) {
			return sqlitestore.Open(ctx, file, nil)
		},
		Answer: func(ctx context.Context, run *workspace.Run, d *adaptertest.Desk) error {
			runner := func(agent string) *adk.Runner {
				return adk.NewRunner(ctx, adk.RunnerConfig{Agent: deskAgent(d, agent), CheckPointStore: checkpoints, EnableStreaming: streaming})
			}
			agents := adaptertest.Agents(run.Message())
			if len(agents) == 1 {
				return einostate.Handle(runner(agents[0]), nil)(ctx, run)
			}
			msgs, err := einostate.FromMessages(state.Messages.GetOr(run.State(), nil)...)
			if err != nil {
				return err
			}
			return branched(ctx, run.State(), agents, func(ctx context.Context, agent string) error {
				_, err := drain(runner(agent).Run(ctx, msgs))
				return err
			})
		},
	}
}

func TestDeskKilled(t *testing.T) { adaptertest.Killed(t, desk(einostate.Checkpoints(), false)) }

func TestDesk(t *testing.T)                   { adaptertest.Run(t, desk(einostate.Checkpoints(), false)) }
func TestDeskStreaming(t *testing.T)          { adaptertest.Run(t, desk(einostate.Checkpoints(), true)) }
func TestDeskWithoutCheckpoints(t *testing.T) { adaptertest.Run(t, desk(nil, false)) }

// team returns the adapter of the scenario of two agents, whose agent build makes
// of theirs.
func team(build func(ctx context.Context, search func(tools ...einotool.BaseTool) adk.Agent, billing adk.Agent) (adk.Agent, error)) adaptertest.Adapter {
	a := desk(nil, false)
	a.Answer = func(ctx context.Context, run *workspace.Run, d *adaptertest.Desk) error {
		own := func(name string, tools ...einotool.BaseTool) adk.Agent {
			play := playing(func(prompt []state.Message) (state.Message, error) { return d.NextOfTeam(name, prompt) })
			return agent(name, play, append(einostate.Tools(d.Tools(name)...), tools...), einostate.Middleware(name, nil))
		}
		both, err := build(ctx, func(tools ...einotool.BaseTool) adk.Agent { return own("search", tools...) }, own("billing"))
		if err != nil {
			return err
		}
		return einostate.Handle(adk.NewRunner(ctx, adk.RunnerConfig{Agent: both, CheckPointStore: einostate.Checkpoints()}), nil)(ctx, run)
	}
	return a
}

func TestDeskSequence(t *testing.T) {
	adaptertest.Sequence(t, team(func(ctx context.Context, search func(...einotool.BaseTool) adk.Agent, billing adk.Agent) (adk.Agent, error) {
		return adk.NewSequentialAgent(ctx, &adk.SequentialAgentConfig{Name: "desk", SubAgents: []adk.Agent{search(), billing}})
	}))
}

func TestDeskNested(t *testing.T) {
	adaptertest.Nested(t, team(func(ctx context.Context, search func(...einotool.BaseTool) adk.Agent, billing adk.Agent) (adk.Agent, error) {
		return search(adk.NewAgentTool(ctx, billing)), nil
	}))
}

// branched lets agents work at the same time, each on a branch of a state, and
// joins the branches in the order of the agents.
func branched(ctx context.Context, st *state.State, agents []string, run func(ctx context.Context, agent string) error) error {
	branches, errs := make([]*state.State, len(agents)), make([]error, len(agents))
	var wg sync.WaitGroup
	for i, agent := range agents {
		branches[i] = st.Fork()
		wg.Go(func() { errs[i] = run(state.NewContext(ctx, branches[i]), agent) })
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), st.Join(branches...))
}

// deskAgent returns an agent of the scenario.
func deskAgent(d *adaptertest.Desk, name string) adk.Agent {
	play := playing(func(prompt []state.Message) (state.Message, error) { return d.Next(name, prompt) })
	return agent(name, play, einostate.Tools(d.Tools(name)...), einostate.Middleware(name, &einostate.Options{
		Window:  adaptertest.Window,
		Context: func(_ context.Context, st *state.State) string { return st.Describe() },
	}))
}

// playing is a chat model that is shown messages of a state, and says one.
func playing(next func(prompt []state.Message) (state.Message, error)) scripted {
	return func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
		prompt, err := einostate.Messages(msgs...)
		if err != nil {
			return nil, err
		}
		m, err := next(prompt)
		if err != nil {
			return nil, err
		}
		said, err := einostate.FromMessages(m)
		if err != nil {
			return nil, err
		}
		return said[0], nil
	}
}

func TestTalks(t *testing.T) {
	fields := []state.Part{einostate.CheckpointField}
	for name, checkpoints := range map[string]adk.CheckPointStore{"checkpoints": einostate.Checkpoints(), "none": nil} {
		t.Run(name, func(t *testing.T) {
			adaptertest.Talks(t, fields, func(ctx context.Context, run *workspace.Run, talk *adaptertest.Talk) error {
				play := playing(func(prompt []state.Message) (state.Message, error) { return talk.Next(run.State().As("ann"), prompt) })
				a := agent("ann", play, einostate.Tools(talk.Tools...), einostate.Middleware("ann", &einostate.Options{Context: talk.Describe}))
				return einostate.Handle(adk.NewRunner(ctx, adk.RunnerConfig{Agent: a, CheckPointStore: checkpoints}), nil)(ctx, run)
			})
		})
	}
}

func TestOwnCalls(t *testing.T) {
	adaptertest.OwnCalls(t, []state.Part{einostate.CheckpointField}, func(
		ctx context.Context, run *workspace.Run, tools []*tool.Tool, next func(prompt []state.Message) (state.Message, error),
	) error {
		a := agent("search", playing(next), einostate.Tools(tools...), einostate.Middleware("search", nil))
		return einostate.Handle(adk.NewRunner(ctx, adk.RunnerConfig{Agent: a, CheckPointStore: einostate.Checkpoints()}), nil)(ctx, run)
	})
}
