package tool_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// A model is shown only the tools that its agent may use.
func ExampleUsable() {
	var (
		Card   = &state.Field[string]{Name: "card", Owner: "billing"}
		Refund = &state.Field[int]{Name: "refund", Owner: "billing", Read: state.Public}
	)
	schema := state.MustSchema(Card, Refund, state.Team{"billing": {"search"}})
	nothing := func(context.Context, struct {
		Card string `json:"card,omitempty"`
	}) (int, error) {
		return 1, nil
	}
	tools := []*tool.Tool{
		tool.Must(tool.New("look", "Look something up.", nothing)),
		tool.Must(tool.New("charge", "Charge the card.", nothing, tool.From(Card, "card"))),
		tool.Must(tool.New("refund", "Refund an amount.", nothing, tool.To(Refund, ""))),
	}
	st := state.New(schema)
	for _, agent := range []string{"billing", "search"} {
		fmt.Print(agent, ":")
		for _, t := range tool.Usable(st.As(agent), tools) {
			fmt.Print(" ", t.Name())
		}
		fmt.Println()
	}
	// Output:
	// billing: look charge refund
	// search: look
}

func TestUsable(t *testing.T) {
	mine := &state.Field[string]{Name: "mine", Owner: "a"}
	drop := &state.Field[string]{Name: "drop", Owner: "a", Read: state.Public, Write: state.Public}
	plan := &state.Field[string]{Name: "plan", Owner: "a", Read: state.Public}
	schema := state.MustSchema(mine, drop, plan, state.Team{"a": {"b"}})
	make := func(opts ...tool.Option) []*tool.Tool {
		return []*tool.Tool{tool.Must(tool.New("t", "", func(context.Context, struct {
			In string `json:"in,omitempty"`
		}) (string, error) {
			return "", nil
		}, opts...))}
	}
	tests := []struct {
		name  string
		tools []*tool.Tool
		want  []string // the agents that may use it; "" is the host
	}{
		{"without fields", make(), []string{"", "a", "b", "stranger"}},
		{"reads an unset field of the owner", make(tool.From(mine, "in")), []string{"", "a"}},
		{"writes a field of the owner", make(tool.To(mine, "")), []string{"", "a"}},
		{"writes what all write", make(tool.To(drop, "")), []string{"", "a", "b"}},
		{"reads what all read", make(tool.From(plan, "in")), []string{"", "a", "b"}},
		{"writes what all read", make(tool.To(plan, "")), []string{"", "a"}},
		{"reads and writes", make(tool.From(plan, "in"), tool.To(drop, "")), []string{"", "a", "b"}},
		{"reads a field that does not exist", make(tool.FromName("other", "in")), nil},
		{"writes a field that does not exist", make(tool.ToName("other", "")), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := state.New(schema)
			for _, host := range []*state.State{st, st.Snapshot()} {
				var got []string
				for _, agent := range []string{"", "a", "b", "stranger"} {
					handle := host
					if agent != "" {
						handle = host.As(agent)
					}
					if len(tool.Usable(handle, tt.tools)) > 0 {
						got = append(got, agent)
					}
				}
				require.Equal(t, tt.want, got)
				require.Empty(t, host.KV().Keys(), "Usable has changed the state")
			}
		})
	}
	free := state.New(nil) // any name is accepted
	require.Len(t, tool.Usable(free, make(tool.FromName("unset", "in"), tool.ToName("key", ""))), 1)
	require.Empty(t, tool.Usable(free, []*tool.Tool{nil}))
}
