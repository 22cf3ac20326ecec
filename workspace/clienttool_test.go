package workspace_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// What a person edits is stored with what they say, with the rights of the page.
func TestMessageFields(t *testing.T) {
	title := &state.Field[string]{Name: "title", Read: state.Public, Write: state.Public, Owner: "desk"}
	list := &state.Field[[]int64]{Name: "list", Read: state.Public, Write: state.Public, Owner: "desk"}
	own := &state.Field[string]{Name: "own", Owner: "desk"}
	var seen []string
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(title, list, own, state.Team{"desk": {"page"}}),
		Run: func(_ context.Context, run *workspace.Run) error {
			value, _ := run.State().KV().JSON("list")
			seen = append(seen, title.GetOr(run.State(), "none")+" "+string(value))
			return nil
		},
	})
	require.NoError(t, err)
	defer m.Close()
	say := func(id string, fields map[string]state.JSON) error {
		_, err := m.Handle(t.Context(), "ann", workspace.Message{ID: id, Content: state.UserText("Hi"), Agent: "page", Fields: fields})
		return err
	}
	require.NoError(t, say("1", map[string]state.JSON{"title": `"a"`, "list": "[9007199254740993]"}))
	require.NoError(t, say("2", map[string]state.JSON{"list": "[2]"})) // not appended
	require.NoError(t, say("3", map[string]state.JSON{"title": "null"}))
	require.NoError(t, say("3", map[string]state.JSON{"title": `"late"`})) // is a duplicate
	require.Equal(t, []string{"a [9007199254740993]", "a [2]", "none [2]"}, seen)
	for name, fields := range map[string]map[string]state.JSON{
		"own":     {"title": `"x"`, "own": `"x"`},
		"unknown": {"title": `"x"`, "unknown": `"x"`},
		"title":   {"title": "7"},
		"list":    {"list": "{"},
	} {
		require.ErrorContains(t, say("4", fields), name)
	}
	require.ErrorIs(t, say("4", map[string]state.JSON{"own": `"x"`}), state.ErrDenied)
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.Empty(t, v.State().KV().Has("title"))
	require.Len(t, seen, 3)
}

func TestFieldsThatWaitAreMasked(t *testing.T) {
	card := &state.Field[string]{Name: "card", Secret: true}
	begun, end := make(chan bool), make(chan bool)
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{
		Schema: state.MustSchema(card),
		Run: func(context.Context, *workspace.Run) error {
			begun <- true
			<-end
			return nil
		},
	})
	require.NoError(t, err)
	defer m.Close()
	for _, id := range []string{"1", "2"} {
		msg := workspace.Message{ID: id, Content: state.UserText("Hi"), Fields: map[string]state.JSON{"card": `"4242"`}}
		_, err := m.Submit(t.Context(), "ann", msg)
		require.NoError(t, err)
	}
	<-begun
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.Contains(t, string(data), `"card":"[SECRET]"`)
	require.NotContains(t, string(data), "4242")
	close(end)
	<-begun
	require.NoError(t, m.Wait(t.Context()))
}

// A call of a tool of the sender waits for the sender, whichever process has the run.
func TestClientTools(t *testing.T) {
	show := workspace.ClientTool{Name: "show", Schema: `{"type":"object","properties":{"text":{"type":"string"}}}`}
	var asked []int
	own := tool.Must(tool.New("own", "", func(context.Context, struct{}) (string, error) { return "ours", nil }))
	options := &workspace.Options{Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"": {
		Tools: []*tool.Tool{own},
		Ask: func(ctx context.Context, turn *loop.Turn) error {
			run, _ := workspace.FromContext(ctx)
			asked = append(asked, len(turn.Tools()))
			msgs := state.Messages.GetOr(run.State(), nil)
			r := state.InferenceResult{Output: []state.Message{state.AssistantText("It says " + msgs[len(msgs)-1].Text())}}
			if len(msgs) == 1 {
				r.Output = []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "show"}, state.ToolCall{ID: "2", Name: "own"})}
			}
			return turn.Said(ctx, r)
		},
	}}})}
	db := store.NewMemory()
	handle := func(msg workspace.Message) (workspace.Outcome, error) {
		m, err := workspace.Open(t.Context(), db, options)
		require.NoError(t, err)
		defer m.Close()
		return m.Handle(t.Context(), "ann", msg)
	}
	_, err := handle(workspace.Message{Content: state.UserText("Hi"), Tools: []workspace.ClientTool{show, {Name: "own"}}})
	require.NoError(t, err)
	require.Equal(t, []int{2}, asked) // the agent's own tool stays
	m, err := workspace.Open(t.Context(), db, options)
	require.NoError(t, err)
	v, err := m.View(t.Context(), "ann")
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.Len(t, v.Suspended(), 1)
	require.True(t, v.Suspended()[0].Client)
	out, err := handle(workspace.Message{Decisions: []tool.Decision{tool.AnswerWith(v.Suspended()[0].Key, `"blue"`)}})
	require.NoError(t, err)
	require.Equal(t, "It says ours", out.Reply)

	for _, tools := range [][]workspace.ClientTool{
		{show, show}, {{Name: ""}}, {{Name: "x", Schema: "[]"}}, make([]workspace.ClientTool, 129),
	} {
		_, err = handle(workspace.Message{Content: state.UserText("Hi"), Tools: tools})
		require.ErrorIs(t, err, workspace.ErrInvalid)
	}
}
