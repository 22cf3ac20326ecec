package einostate_test

import (
	"context"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/internal/test/adaptertest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
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
			team, err := deskAgents(ctx, run, d)
			if err != nil {
				return err
			}
			runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: team, CheckPointStore: checkpoints, EnableStreaming: streaming})
			return einostate.Handle(runner, nil)(ctx, run)
		},
	}
}

func TestDeskKilled(t *testing.T) { adaptertest.Killed(t, desk(einostate.Checkpoints(), false)) }

func TestDesk(t *testing.T)                   { adaptertest.Run(t, desk(einostate.Checkpoints(), false)) }
func TestDeskStreaming(t *testing.T)          { adaptertest.Run(t, desk(einostate.Checkpoints(), true)) }
func TestDeskWithoutCheckpoints(t *testing.T) { adaptertest.Run(t, desk(nil, false)) }

// deskAgents returns the agents that answer a message.
func deskAgents(ctx context.Context, run *workspace.Run, d *adaptertest.Desk) (adk.Agent, error) {
	var team []adk.Agent
	for _, name := range adaptertest.Agents(run.Message()) {
		play := func(_ context.Context, msgs []*schema.Message, _ ...model.Option) (*schema.Message, error) {
			prompt, err := einostate.Messages(msgs...)
			if err != nil {
				return nil, err
			}
			next, err := d.Next(name, prompt)
			if err != nil {
				return nil, err
			}
			said, err := einostate.FromMessages(next)
			if err != nil {
				return nil, err
			}
			return said[0], nil
		}
		team = append(team, agent(name, scripted(play), einostate.Tools(d.Tools(name)...), einostate.Middleware(name, &einostate.Options{
			Trim:   einostate.Format.KeepTokens(adaptertest.Window-1, sizeOf),
			Prompt: func(_ context.Context, st *state.State) string { return st.Describe() },
		})))
	}
	if len(team) == 1 {
		return team[0], nil
	}
	return einostate.Parallel(ctx, &adk.ParallelAgentConfig{Name: "desk", Description: "desk", SubAgents: team})
}

// sizeOf returns how many messages of a state a message is, beside which there
// is the system prompt.
func sizeOf(m *schema.Message) int {
	if m.Content != "" && len(m.ToolCalls) > 0 {
		return 2
	}
	return 1
}
