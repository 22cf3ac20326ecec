package mcpstate

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// States gives each request the state of its sender. Its methods are safe for
// concurrent use.
type States interface {
	// View returns the state as it is now, as the sender may see it.
	View(ctx context.Context, req mcp.Request) (View, error)

	// Do calls fn once, as one unit of work on the state, with the rights of
	// the sender.
	Do(ctx context.Context, req mcp.Request, fn func(ctx context.Context, st *state.State) error) error
}

// View is a state at one moment, as the sender of a request may see it.
type View struct {
	User   string                   // the name of the state in the URIs of its fields
	State  *state.State             // with the rights of the sender
	Redact func(text string) string // masks all secrets, also those that the sender may not read
}

// Memory returns the States of a server with one state, such as a server that a
// client starts as its own process. agent returns the agent that sent a request;
// nil stands for the rights of st itself. What fn writes in Do stays, even if fn
// returns an error. In URIs, the user is "local".
func Memory(st *state.State, agent func(req mcp.Request) (string, error)) States {
	return &memory{st, agent}
}

type memory struct {
	st    *state.State
	agent func(req mcp.Request) (string, error)
}

func (m *memory) sender(req mcp.Request) (*state.State, error) {
	if m.agent == nil {
		return m.st, nil
	}
	agent, err := m.agent(req)
	if err != nil {
		return nil, err
	}
	return m.st.As(agent), nil
}

func (m *memory) View(_ context.Context, req mcp.Request) (View, error) {
	st, err := m.sender(req)
	if err != nil {
		return View{}, err
	}
	return View{"local", st.Snapshot(), m.st.Snapshot().Redact}, nil
}

func (m *memory) Do(ctx context.Context, req mcp.Request, fn func(context.Context, *state.State) error) error {
	st, err := m.sender(req)
	if err != nil {
		return err
	}
	return fn(ctx, st)
}

// Workspaces returns the States of a server with a workspace for each user. who
// returns the user who sent a request, and the agent whose rights it has. The
// sender must be authenticated: for example by the token in
// [mcp.RequestExtra]. Do is [workspace.Manager.Do]: it waits for its turn, and
// nothing is stored if fn returns an error.
func Workspaces(m *workspace.Manager, who func(req mcp.Request) (user, agent string, err error)) States {
	return &workspaces{m, who}
}

type workspaces struct {
	m   *workspace.Manager
	who func(req mcp.Request) (user, agent string, err error)
}

func (w *workspaces) View(ctx context.Context, req mcp.Request) (View, error) {
	user, agent, err := w.who(req)
	if err != nil {
		return View{}, err
	}
	view, err := w.m.View(ctx, user)
	if err != nil {
		return View{}, err
	}
	return View{user, view.State().As(agent), view.Redact}, nil
}

func (w *workspaces) Do(ctx context.Context, req mcp.Request, fn func(context.Context, *state.State) error) error {
	user, agent, err := w.who(req)
	if err != nil {
		return err
	}
	return w.m.Do(ctx, user, func(ctx context.Context, run *workspace.Run) error {
		return fn(ctx, run.State().As(agent))
	})
}
