package tool_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// client has methods that nobody may call.
type client struct{ Ch chan int }

func (*client) MarshalJSON() ([]byte, error) { panic("MarshalJSON") }
func (*client) UnmarshalJSON([]byte) error   { panic("UnmarshalJSON") }

func TestReferencesAreNotInjected(t *testing.T) {
	ref := &state.Field[*client]{Name: "client", Ephemeral: true, NoCopy: true}
	text := &state.Field[string]{Name: "text"}
	schema := state.MustSchema(ref, text)
	st := state.New(schema)
	c := &client{}
	require.NoError(t, ref.Set(st, c))

	type in struct {
		C any `json:"c"`
	}
	typed, err := tool.New("typed", "", func(context.Context, in) (string, error) { return "", nil }, tool.From(ref, "c"))
	require.NoError(t, err)
	named, err := tool.New("named", "", func(context.Context, map[string]any) (string, error) { return "", nil }, tool.FromName("client", "c"))
	require.NoError(t, err)
	raw, err := tool.Raw("raw", "", `{"type":"object","properties":{"c":{}}}`, func(context.Context, state.JSON) (state.JSON, error) { return "", nil }, tool.FromName("client", "c"))
	require.NoError(t, err)
	for _, x := range []*tool.Tool{typed, named, raw} {
		_, err := x.Call(t.Context(), st, `{}`)
		var input *tool.InputError
		require.ErrorAs(t, err, &input)
		require.Equal(t, "client", input.Field)
		require.ErrorIs(t, err, state.ErrWrongType)
		require.ErrorContains(t, err, "a reference")
	}

	// A stateful tool reads it, and a model is not asked for one.
	var got *client
	stateful, err := tool.NewStateful("read", "", func(_ context.Context, st *state.State, _ struct{}) (string, error) {
		got = ref.Or(st, nil)
		return "", nil
	})
	require.NoError(t, err)
	_, err = stateful.Call(t.Context(), st, `{}`)
	require.NoError(t, err)
	require.True(t, got == c)
	team := state.MustSchema(state.Team{"a": nil}, &state.Field[*client]{Name: "client", Ephemeral: true, NoCopy: true, Owner: "a"}, &state.Field[string]{Name: "text", Owner: "a"})
	update, err := tool.Updater(team, "a")
	require.NoError(t, err)
	require.NotContains(t, string(update.Schema()), "client")
}
