package einostate

import (
	"context"
	"fmt"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// Parallel returns the agent of [adk.NewParallelAgent] in which each sub-agent
// works on a branch of the state. When all have ended, the branches are joined
// in the order of the sub-agents. If they cannot be joined, the last event is
// the error, and nothing of them is kept.
//
// If a sub-agent is interrupted, what was done is joined all the same. After
// the resumption, the sub-agents that go on have new branches.
func Parallel(ctx context.Context, config *adk.ParallelAgentConfig) (adk.ResumableAgent, error) {
	branched := *config
	branched.SubAgents = make([]adk.Agent, len(config.SubAgents))
	for i, agent := range config.SubAgents {
		branched.SubAgents[i] = &branchAgent{agent, i}
	}
	agent, err := adk.NewParallelAgent(ctx, &branched)
	if err != nil {
		return nil, fmt.Errorf("einostate: parallel agent %q: %w", config.Name, err)
	}
	return &parallelAgent{agent, len(config.SubAgents)}, nil
}

type parallelAgent struct {
	adk.ResumableAgent
	n int
}

func (p *parallelAgent) Run(ctx context.Context, input *adk.AgentInput, opts ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	return p.branched(ctx, input.Messages, func(ctx context.Context) *adk.AsyncIterator[*adk.AgentEvent] {
		return p.ResumableAgent.Run(ctx, input, opts...)
	})
}

func (p *parallelAgent) Resume(ctx context.Context, info *adk.ResumeInfo, opts ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	return p.branched(ctx, nil, func(ctx context.Context) *adk.AsyncIterator[*adk.AgentEvent] {
		return p.ResumableAgent.Resume(ctx, info, opts...)
	})
}

// branched runs the agents in branches, and joins these behind the last event.
// The messages of the user are in all of them.
func (p *parallelAgent) branched(ctx context.Context, msgs []*schema.Message, run func(context.Context) *adk.AsyncIterator[*adk.AgentEvent]) *adk.AsyncIterator[*adk.AgentEvent] {
	out, events := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	base, ok := baseState(ctx)
	err := errNoState
	if ok {
		err = nil
		if _, inRun := workspace.FromContext(ctx); !inRun && ctx.Value(turnKey{}) == nil {
			err = hear(base, msgs)
		}
	}
	if err != nil {
		events.Send(&adk.AgentEvent{Err: err})
		events.Close()
		return out
	}
	forks := make([]*state.State, p.n)
	for i := range forks {
		forks[i] = base.Fork()
	}
	in := run(context.WithValue(ctx, forksKey{}, forks))
	go func() {
		defer events.Close()
		for event, ok := in.Next(); ok; event, ok = in.Next() {
			events.Send(event)
		}
		if err := base.Join(forks...); err != nil {
			events.Send(&adk.AgentEvent{Err: fmt.Errorf("einostate: join the agents: %w", err)})
		}
	}()
	return out
}

type forksKey struct{}

// branchAgent runs an agent in one of the branches of a parallelAgent.
type branchAgent struct {
	adk.Agent
	i int
}

func (a *branchAgent) inBranch(ctx context.Context) context.Context {
	return state.NewContext(ctx, ctx.Value(forksKey{}).([]*state.State)[a.i])
}

func (a *branchAgent) Run(ctx context.Context, input *adk.AgentInput, opts ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	return a.Agent.Run(a.inBranch(ctx), input, opts...)
}

func (a *branchAgent) Resume(ctx context.Context, info *adk.ResumeInfo, opts ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	if agent, ok := a.Agent.(adk.ResumableAgent); ok {
		return agent.Resume(a.inBranch(ctx), info, opts...)
	}
	out, events := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	events.Send(&adk.AgentEvent{Err: fmt.Errorf("einostate: agent %q cannot be resumed", a.Name(ctx))})
	events.Close()
	return out
}
