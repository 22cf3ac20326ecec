package einostate

import (
	"context"
	"fmt"
	"sync"

	"github.com/cloudwego/eino/compose"

	"github.com/agentstate/state"
)

// Branches returns a context for the run of a graph in which each node made by
// [Node] with one of the names works on a branch of the state. Join the branches
// with a node of [Join], or with [JoinBranches] when the graph has ended.
//
//	out, err := graph.Invoke(einostate.Branches(ctx, "billing", "search"), in)
func Branches(ctx context.Context, names ...string) context.Context {
	return context.WithValue(ctx, branchesKey{}, &branches{names: names})
}

type branchesKey struct{}

// branches are the branches of one run of a graph.
type branches struct {
	names []string
	mu    sync.Mutex
	base  *state.State
	forks []*state.State // of base, one for each name; nil while there are none
}

// Node returns the node of an agent of that name. fn gets the state of the
// context with the rights of the agent: a branch, if the name is one of
// [Branches]. All branches begin when the first of their nodes does.
func Node[I, O any](name string, fn func(ctx context.Context, st *state.State, in I) (O, error)) *compose.Lambda {
	return compose.InvokableLambda(func(ctx context.Context, in I) (out O, err error) {
		base, ok := baseState(ctx)
		if !ok {
			return out, errNoState
		}
		if b, ok := ctx.Value(branchesKey{}).(*branches); ok {
			base = b.of(name, base)
		}
		st := base.As(name)
		ctx = context.WithValue(state.NewContext(ctx, st), baseKey{}, narrowed{base, st})
		return fn(ctx, st, in)
	})
}

// of returns the branch of a name, or base if there is none.
func (b *branches) of(name string, base *state.State) *state.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, known := range b.names {
		if known != name {
			continue
		}
		if b.forks == nil {
			b.base = base
			for range b.names {
				b.forks = append(b.forks, base.Fork())
			}
		}
		return b.forks[i]
	}
	return base
}

// Join returns a node that joins the branches in the order of their names, and
// passes on what it gets. It belongs behind all nodes of the branches. Nodes
// behind it may have branches again.
func Join[T any]() *compose.Lambda {
	return compose.InvokableLambda(func(ctx context.Context, in T) (T, error) {
		return in, JoinBranches(ctx)
	})
}

// JoinBranches joins the branches of a context of [Branches] in the order of
// their names: after a graph without a node of [Join], or to keep what the nodes
// have done before an interrupt. If they cannot be joined, they stay. Without
// branches it does nothing.
func JoinBranches(ctx context.Context) error {
	b, ok := ctx.Value(branchesKey{}).(*branches)
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.forks == nil {
		return nil
	}
	if err := b.base.Join(b.forks...); err != nil {
		return fmt.Errorf("einostate: join the branches: %w", err)
	}
	b.forks = nil
	return nil
}
