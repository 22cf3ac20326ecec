package wire_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

func saysCall(name string) func(*http.Request) (*http.Response, error) {
	return status(200, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"`+name+`","type":"function","function":{"name":"`+name+`","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
}

// Large results of tools and of people are no reason not to ask the model, in later
// messages and in another process as well. What it is shown of them is the same in
// each request, and the view has the whole.
func TestLargeResultsInWorkspaces(t *testing.T) {
	const secret = "correct horse battery staple"
	vault := &state.Field[string]{Name: "vault", Secret: true}
	schema := state.MustSchema(vault, &state.Field[string]{Name: "output"})
	long := strings.Repeat("0123456789 "+secret+"\n", 10_000)
	read := tool.Must(tool.Raw("read", "Reads.", `{"type":"object"}`, func(context.Context, state.JSON) (state.JSON, error) { return state.JSONText(long), nil }, tool.Reveal()))
	ask := tool.Must(tool.Raw("ask", "Asks.", `{"type":"object"}`, func(context.Context, state.JSON) (state.JSON, error) { return "", tool.Suspend(nil) }))
	for _, recall := range []bool{true, false} {
		p := &provided{answers: []func(*http.Request) (*http.Response, error){
			saysCall("read"), saysText("Read."), saysText("Yes."), saysCall("ask"), saysText("Heard."), saysText("Ja."),
		}}
		db, tools := store.NewMemory(), []*tool.Tool{read, ask}
		if recall {
			tools = append(tools, loop.Recall())
		}
		client := &http.Client{Transport: &wire.Transport{Base: p, Redact: true, Window: &transcript.Window{Target: 30_000}}}
		agent := loop.Agent{Tools: tools, Ask: func(ctx context.Context, _ *loop.Turn) error {
			return callModel(ctx, client, "http://model"+chatPath, `{"model":"m"}`)
		}}
		send := func(msg workspace.Message) *workspace.View {
			m, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: schema, Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"": agent}})})
			require.NoError(t, err)
			defer m.Close()
			out, err := m.Handle(t.Context(), "ann", msg)
			require.NoError(t, err)
			require.Empty(t, out.Reason)
			view, err := m.View(t.Context(), "ann")
			require.NoError(t, err)
			return view
		}
		fields := map[string]state.JSON{"vault": state.JSONText(secret)}
		send(workspace.Message{Content: state.UserText("Read."), Fields: fields})
		send(workspace.Message{Content: state.UserText("Again?")})
		require.Len(t, p.bodies, 3)
		view := send(workspace.Message{Content: state.UserText("Ask.")})
		require.Len(t, view.Suspended(), 1)
		send(workspace.Message{Decisions: []tool.Decision{tool.AnswerWith(view.Suspended()[0].Key, state.JSONText(long))}})
		view = send(workspace.Message{Content: state.UserText("And?")})
		require.Empty(t, view.DeadLetters)
		require.Len(t, p.bodies, 6)

		results := 0
		for _, m := range state.Messages.GetOr(view.State(), nil) {
			if r, ok := m.(state.ToolResultMessage); ok {
				results++
				require.Len(t, r.Text(), len(long), "it is stored whole")
				size, _ := r.Extra("shown")
				require.NotEmpty(t, size)
			}
		}
		require.Equal(t, 2, results)
		for i, body := range p.bodies {
			require.Less(t, len(body), 40<<10)
			require.NotContains(t, body, "horse")
			require.NotContains(t, body, "correct")
			require.NotContains(t, body, "staple")
			if i > 0 {
				require.Equal(t, recall, strings.Contains(body, "The tool recall finds words in them."))
				require.True(t, strings.HasPrefix(body, strings.TrimSuffix(p.bodies[i-1], "]}")), "request %d begins like the one before", i)
			}
		}
	}
}

// A model that reads pictures gets those that tools return, by Chat Completions too.
func TestPicturesOfTools(t *testing.T) {
	for model, want := range map[string]bool{"gpt-4o": true, "gpt-3.5-turbo": false} {
		p := &provided{answers: []func(*http.Request) (*http.Response, error){saysText("A map.")}}
		st := state.New(nil)
		call := state.ToolCall{ID: "a", Name: "shot", Input: `{}`}
		require.NoError(t, st.UserSays("Look."))
		require.NoError(t, state.Messages.Set(st, []state.Message{
			state.ToolCalls(call), state.ToolResult(call, `[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]`),
		}))
		client := &http.Client{Transport: &wire.Transport{Base: p}}
		_, err := readAll(post(t, client, st, "http://model"+chatPath, `{"model":"`+model+`"}`))
		require.NoError(t, err)
		require.Equal(t, want, strings.Contains(p.bodies[0], "data:image/png;base64,iVBORw0KGgo="), p.bodies[0])
		require.Equal(t, !want, strings.Contains(p.bodies[0], "[image left out]"), p.bodies[0])
	}
}
